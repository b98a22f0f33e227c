// Package jq reads path expressions: jq that names fields of an object, as
// ignoreDifferences and ignoreApplicationDifferences hold it.
//
// An expression is somebody else's program and runs in the controller, so it
// may only choose: what makes values, loops without end or looks at the machine
// is refused when it is compiled (allowed.go), and what is left ends after a
// number of steps and not of seconds, so that the same expression on the same
// object always has the same answer.
//
// The package is in the PURE ring: values in, values out.
package jq
