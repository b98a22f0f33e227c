// Package apply carries out a rutter.Plan against one cluster: groups in
// order, batches in order, the steps of a batch in parallel. ADAPTER ring, but
// over ports only: it knows no client library and decides nothing that the
// plan has not decided.
//
// It never sleeps: between groups it waits until what it applied has been seen
// healthy (Live.Await), which a watch event ends at once. It can be stopped at
// every step through its context; what was applied stays, and the next plan
// starts from what the watches then show.
package apply
