// Package manifest turns the text that a render tool read or wrote into
// objects: it splits YAML and JSON streams, decodes documents as Kubernetes
// does, expands lists and refuses what is no Kubernetes object, naming the
// file, the document and the line.
//
// Ring: adapter (render); it does no I/O. Directory, kustomize and Helm all end here, so that an object is
// checked in one way whatever made it.
package manifest
