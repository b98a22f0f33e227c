// Package schema knows the types of Kubernetes objects: which lists are told
// apart by keys, which are sets and which are replaced as a whole, where a
// quantity stands and what the server fills in.
//
// It reads the documents in which a server describes itself (OpenAPI v2 and v3)
// and CustomResourceDefinitions, and holds those of the built-in kinds, taken
// from a real server (builtin.go), for whoever has no server to ask. Only what
// a comparison needs is kept; descriptions are most of such a document.
//
// The package is in the PURE ring: values in, values out.
package schema
