// Package actions knows what a person can have done to a live object beside making it
// what Git declares: restart it, pause it, run a Job of it now. It says which actions an
// object has, and what one changes or creates (reference 4.3 and 4.7): those that are
// built in, and the operator's own in Lua. It carries nothing out.
//
// It is in the PURE ring.
package actions
