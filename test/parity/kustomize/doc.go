// Package kustomizeparity compares what Rutter renders with what the real
// `kustomize build` prints, object by object and in order: over trees of ours
// that cover each field and option, and over those that kustomize's own tests
// and the module cache hold.
//
// Ring: test.
package kustomizeparity
