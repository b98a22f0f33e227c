// Package cel runs expressions in the Common Expression Language that people write to
// say how an object does, or whether something is ready (flux-semantics 0.13). An
// expression sees the values that it is given and nothing else. What it may use is
// counted: the steps, the sizes of what they read and make; so that the same
// expression on the same values always ends in the same way, on whatever machine.
//
// It is in the PURE ring.
package cel
