package rutter

// Committed is a Snapshot of a system in which each revision is an object that
// can be signed.
type Committed interface {
	// Commit is the object that Revision names, as it is stored.
	Commit() ([]byte, error)
}

// Signature is what was found of the signature of a revision.
type Signature struct {
	// Object is what is, or is not, signed.
	Object string
	// Keys are the names of the key that signed it, the most precise first; none
	// where it is not signed.
	Keys []string
	// Invalid says why the signature does not hold: changed content, an expired or
	// revoked key, a key that is not known.
	Invalid string
}
