package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rutterhq/rutter"
)

// Contested is the cause of a field that is not put back for a while.
const Contested = "contested"

// driftOf is what is remembered of a field that differs.
func driftOf(d *rutter.Drift, path string) (rutter.FieldDrift, bool) {
	if d == nil {
		return rutter.FieldDrift{}, false
	}
	i := slices.IndexFunc(d.Fields, func(f rutter.FieldDrift) bool { return f.Path == path })
	if i < 0 {
		return rutter.FieldDrift{}, false
	}
	return d.Fields[i], true
}

// contested are the fields that a self-heal leaves alone for a while.
func contested(s Situation) []Cause {
	var out []Cause
	for _, r := range Differing(s.Report) {
		for _, f := range r.Drift.Contested() {
			what, object := f.Path+" of "+r.Ref.String(), r.Ref.String()
			cede := fmt.Sprintf("give the field up: rutter cede %s %s '%s'.", s.Application, object, f.Path)
			if f.Path == "" {
				what, cede = r.Ref.String(), "take it out of Git."
			}
			rival := cmp.Or(f.Manager, "somebody")
			out = append(out, Cause{Contested,
				fmt.Sprintf("%s came back %d times after it was put back, written by %s; it is left alone until %s, and everything else is healed", what, f.Returned, rival, rfc3339(f.RestsUntil)),
				fmt.Sprintf("Stop %s from writing it, or %s", rival, cede)})
		}
	}
	return out
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
