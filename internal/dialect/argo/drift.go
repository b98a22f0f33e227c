package argo

import (
	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// mostDriftFields bounds the fields of one object that a status lists.
const mostDriftFields = 10

// driftStatus is what a status says of the drift of an object. The contested
// fields come first where there are too many.
func driftStatus(d *rutter.Drift) *v1alpha1.ResourceDrift {
	if d == nil {
		return nil
	}
	out := &v1alpha1.ResourceDrift{Since: *stamp(d.Since)}
	for _, contested := range []bool{true, false} {
		for _, f := range d.Fields {
			if f.RestsUntil.IsZero() == contested || len(out.Fields) == mostDriftFields {
				continue
			}
			x := v1alpha1.FieldDrift{Path: f.Path, Since: *stamp(f.Since), Returned: int64(f.Returned), Manager: f.Manager}
			if contested {
				x.ContestedUntil = stamp(f.RestsUntil)
			}
			out.Fields = append(out.Fields, x)
		}
	}
	return out
}

// DriftOf is what a status records of the drift of an object, nil where nothing.
func DriftOf(r v1alpha1.ResourceStatus) *rutter.Drift {
	if r.Drift == nil {
		return nil
	}
	d := &rutter.Drift{Since: r.Drift.Since.Time}
	for _, f := range r.Drift.Fields {
		x := rutter.FieldDrift{Path: f.Path, Since: f.Since.Time, Returned: int(f.Returned), Manager: f.Manager}
		if f.ContestedUntil != nil {
			x.RestsUntil = f.ContestedUntil.Time
		}
		d.Fields = append(d.Fields, x)
	}
	return d
}

// knownDrifts are the objects that differ as the status records them.
func knownDrifts(app *v1alpha1.Application) map[rutter.Ref]rutter.Drift {
	var all map[rutter.Ref]rutter.Drift
	for _, r := range app.Status.Resources {
		d := DriftOf(r)
		if d == nil {
			continue
		}
		if all == nil {
			all = map[rutter.Ref]rutter.Drift{}
		}
		all[rutter.Ref{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}] = *d
	}
	return all
}
