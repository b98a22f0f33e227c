// Package lint finds in the files of a GitOps repository the mistakes that the
// guides warn of, before anything is deployed: mutable tags, plaintext Secrets,
// projects that allow everything, generators that may delete a fleet, names
// that are spelled wrong. Each finding has a file, a line and a remedy.
//
// It reads YAML as nodes, so that lines are exact, and knows the kinds of Argo
// CD, Flux, kustomize and Kubernetes that its rules are about; everything else
// passes. Files of a chart's templates folder are no YAML and are left out.
//
// Ring: pure, at the edge: files come in as values, findings go out.
package lint
