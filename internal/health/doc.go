// Package health says how a live object does, and why, in words with numbers.
//
// Of assesses one object by the rules of its kind (reference 4.2), and any
// other custom resource by the conventions of kstatus, where it follows them.
// Aggregate assesses a unit by its objects (reference 4.4). A controller that
// has not yet seen the newest spec makes its object Progressing, so that no
// wave counts an old answer as a new one.
//
// The package is in the PURE ring: it has no clock, so an assessment depends
// on the object alone.
package health
