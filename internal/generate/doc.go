// Package generate turns an ApplicationSet and the facts its generators ask
// for into Applications, and compares those with the live ones.
//
// It is in the PURE ring: the caller gathers the facts (clusters, snapshots of
// repositories) and carries out the changes. Every answer says how complete it
// is, because only a complete answer may propose removals: a generator that
// could not look is never read as one that found nothing. One bad element
// stops only itself.
//
// The way through the package: node.go reads spec.generators, evaluate.go runs
// them (list.go, clusters.go, git*.go, matrix.go, merge.go), render.go and the
// two engines (fasttemplate.go, gotemplate.go) make an Application of a set of
// parameters, generate.go puts it together, reconcile.go compares with what
// is live.
package generate
