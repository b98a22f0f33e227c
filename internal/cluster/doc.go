// Package cluster is the connection to member clusters: discovery, server-side
// apply, deletion, and watches that select Rutter's own mark on the server's
// side. ADAPTER ring. It keeps no copy of any cluster: what a watch brings is
// decoded once, handed to the sink, and forgotten.
//
// A member that does not answer fails fast and costs nobody else anything; a
// kind that cannot be listed taints that kind alone.
package cluster
