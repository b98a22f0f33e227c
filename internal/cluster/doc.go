// Package cluster is the connection to member clusters: discovery, server-side
// apply, deletion, and watches that select Rutter's own mark on the server's
// side. ADAPTER ring. It keeps no copy of any cluster: what a watch brings is
// decoded once, handed to the sink, and forgotten.
//
// A Registry holds the members. Each has a link of its own (connections that no
// other member shares), a limiter of its writes that yields to a busy server, a
// breaker that finds out when it stops answering and when it answers again, the
// kinds that it serves, and one watch for each kind that somebody asked for.
//
// A member that does not answer fails fast and costs nobody else anything; a
// kind that cannot be listed taints that kind alone; what could not be looked
// at is an error and never an absence.
package cluster
