// Package compare decides whether a live object equals what Git declares, and
// which fields differ when it does not.
//
// Three comparisons answer three questions, cheapest first. OwnedHash says in
// some microseconds whether anything that Rutter owns has changed since the
// last time the object was known to be right. Local compares the declared
// object with the live one without asking anybody; it may answer "different"
// when it can't be sure, and never answers "equal" when an apply would change
// something. Predicted compares the server's own dry run with the live object
// and is exact, because defaults, webhooks and conversions are already in it.
//
// What all three lean on is the ownership that the API server records in
// metadata.managedFields: as long as our Apply entry lists a field, nobody else
// has changed it since we applied it; and what the entry lists although Git no
// longer declares it, the next apply will remove.
//
// Local goes by the types of the fields as far as they are known (types.go for
// the built-in kinds, a cluster's own description for others); where there is no
// server to ask, Options.Final makes its answer the last one. Rules say what is
// left out, on both sides (ignore.go); some fields are left out because a
// controller is known to write them (scaler.go). Respect is what to send so that
// what is left out keeps its live value, and Takeover what makes an object ours
// that another tool applied before.
//
// The package is in the PURE ring: values in, values out.
package compare
