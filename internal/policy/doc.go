// Package policy answers whether an application may use a source, go to a
// destination and manage a kind there, and by which rule of its AppProject.
// PURE ring.
//
// The semantics are those of reference 06-appproject with one principle put
// above its quirks: something must allow it, and nothing may deny it. A rule
// that denies (an entry with "!") never allows anything, so that adding one
// never widens a project. A rule that denies and cannot be read denies
// everything; one that allows and cannot be read allows nothing.
package policy
