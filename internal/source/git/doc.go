// Package git turns a repository and a revision into a rutter.Snapshot, by the
// git binary, into bare mirrors. ADAPTER ring. Nothing is ever checked out:
// files are read from the object store by one long-lived git process a mirror.
//
// All who ask for a repository at the same time share one look-up of its refs
// and one fetch. A revision that cannot be resolved is an error; no other
// revision is ever used in its place.
package git
