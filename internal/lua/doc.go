// Package lua runs the operator's own assessments of health and actions (reference
// 4.3), which are written in Lua. A script sees the object and nothing else: no
// file, no process, no clock. What it may use is counted: instructions, the depth of
// its calls and the bytes of the texts that it makes, so that the same script on the
// same object always ends in the same way, on whatever machine.
//
// It is in the PURE ring.
package lua
