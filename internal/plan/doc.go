// Package plan decides what a sync does. PURE ring: desired objects, verdicts
// and policy in, an ordered rutter.Plan out. The controller carries the plan
// out, the CLI prints it, and both see the same value.
//
// Semantics follow Argo CD's sync engine (reference 02-sync, 2.2-2.6): phases,
// waves, the order of kinds, hooks, pruning and its options. Where the
// reference sends every object each time, this plan sends only what is not
// known to be equal already.
package plan
