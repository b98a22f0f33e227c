// Package rutter is the vocabulary of the engine: what a source, a rendered
// object, a unit, a verdict and a plan are, and the small interfaces (ports)
// over which the engine speaks to the technologies that carry them out.
//
// It holds types and pure functions only; it does no I/O, reads no clock and
// starts no goroutine. Every other package speaks in these words, so a reader
// who knows this package knows what Rutter does.
package rutter
