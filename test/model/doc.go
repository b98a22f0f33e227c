// Package model runs the engine against a simulated cluster, Git and status store
// in virtual time, through random histories of what may befall a sync: commits,
// waves, hooks, refusals, live edits, outages, kinds that come late, requests and
// restarts at any moment. A small specification watches every write: the order of
// phases and waves is kept, no hook runs twice for one identity, nothing is deleted
// that Git has, and once the trouble is over everything comes to be in sync.
//
// It holds tests only; nothing imports it.
package model
