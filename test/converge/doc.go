// Package converge proves that comparing converges: objects of every kind and of
// every shape that has ever confused a comparison are applied to a real API
// server and must be Synced at once, every edit of a field that is ours must be
// found and named, and no other edit may be. It holds tests only.
//
// A new shape is a document in testdata/shapes; nothing else is needed.
package converge
