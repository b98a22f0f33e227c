// Package gitserver serves the bare Git repositories of a folder over smart
// HTTP on loopback, for the demo and for tests: clone, fetch and push, by Git's
// own http-backend. It is a driver of the outermost ring and knows nothing of
// the engine: what happens after a push is its caller's business.
package gitserver
