package rutter

import "time"

// Drift is what is remembered of an object that is not as Git declares it.
type Drift struct {
	// Since is when it was first seen so, the time that the unit has differed now.
	Since time.Time
	// Fields are the ones that differ, in the order of their paths.
	Fields []FieldDrift
}

// FieldDrift is one field that differs, or the whole object where it is missing.
type FieldDrift struct {
	// Path is as in FieldDiff; empty for an object that is missing.
	Path  string
	Since time.Time
	// Returned is how often it has come back after it was put back.
	Returned int
	// Manager last wrote the live value, when that is known.
	Manager string
	// RestsUntil is set for a field that is contested: it is not put back before then.
	RestsUntil time.Time
}

// Contested are the fields that are not put back for a while, because somebody
// writes them again each time.
func (d *Drift) Contested() []FieldDrift {
	if d == nil {
		return nil
	}
	var out []FieldDrift
	for _, f := range d.Fields {
		if !f.RestsUntil.IsZero() {
			out = append(out, f)
		}
	}
	return out
}

// OtherEngine reports whether a field manager is a tool that keeps objects equal
// to a declaration of its own, as Rutter does: two such on one object never end.
func OtherEngine(manager string) bool {
	switch manager {
	case "argocd-controller", "argocd-application-controller", "kustomize-controller", "helm-controller", "fleetagent", "config-sync":
		return true
	}
	return false
}
