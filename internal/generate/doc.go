// Package generate turns an ApplicationSet and the facts its generators ask
// for into Applications, and decides what becomes of the live ones.
//
// It is in the PURE ring, at the edge: the caller gathers the facts (clusters,
// snapshots of repositories, what hosting services list) and carries out the
// changes. Every answer says how complete it is, because only a complete answer
// may propose removals: a generator that could not look is never read as one
// that found nothing, and is given its last good answer. One bad element stops
// only itself. Many removals wait for somebody.
//
// The way through the package: node.go reads spec.generators and evaluate.go
// runs them (list.go, clusters.go, git*.go, scm*.go, decision.go, plugin.go,
// and matrix.go, merge.go with collisions.go for those that combine others);
// memory.go keeps the last good answers. program.go looks through the template
// once, and render.go, patch.go and the two engines (fasttemplate.go,
// gotemplate.go with rewrite.go) make an Application of each set of parameters.
// generate.go puts it together. reconcile.go decides about what is wanted
// (difference.go, fieldrule.go, hold.go, members.go) and removals.go about what is not
// (budget.go, handover.go); ownership.go is about whose an Application is.
package generate
