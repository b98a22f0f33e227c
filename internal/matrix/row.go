package matrix

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/explain"
)

// compareObject gives the rows of one object.
func compareObject(k objectKey, sides []*side, origins *origins, masks *masks) []Row {
	rows := compareFields(k, sides, origins, masks)
	if row, whole := compareWhole(k, sides); whole {
		rows = append([]Row{row}, rows...)
	}
	return rows
}

// compareWhole is a row for an object that is not everywhere, and for what can be said
// of it only as a whole.
func compareWhole(k objectKey, sides []*side) (Row, bool) {
	g := newGrouping(k, "")
	drifted, unknown, with := false, false, 0
	for _, s := range sides {
		d := s.objects[k]
		c := whole(d, s.reports[k])
		if d != nil {
			with++
			c.Declared = `"declared"`
		}
		drifted, unknown = drifted || c.Drifted, unknown || c.Unknown
		g.add(s.Name, c.Cell, c.because)
	}
	differs := with > 0 && with < len(sides)
	return g.row(differs, drifted, unknown), differs || drifted || unknown
}

type cellOf struct {
	Cell

	because string
}

// whole judges an object of one column without looking at its fields.
func whole(d *declared, r *rutter.ResourceReport) cellOf {
	switch {
	case d == nil && r == nil:
		return cellOf{}
	case r == nil:
		return cellOf{Cell{Unknown: true}, "nothing is known of it in the cluster"}
	case d == nil && !r.RequiresPruning:
		return cellOf{}
	case d == nil:
		return cellOf{Cell{Drifted: true, Live: `"there"`}, "Git declares it no more, and it has not been pruned"}
	case r.State == rutter.Synced || r.State == rutter.OutOfSync && len(r.Diffs) > 0 && r.Health.Status != rutter.Missing:
		return cellOf{}
	case r.State == rutter.OutOfSync && (r.Health.Status == rutter.Missing || r.Reason == "missing"):
		return cellOf{Cell{Drifted: true}, join("it is missing", since(r))}
	case r.State == rutter.OutOfSync:
		return cellOf{Cell{Drifted: true, Live: `"differs"`}, join(explain.ClassifyObject(explain.Facts{Resource: *r}).Words, since(r))}
	}
	return cellOf{Cell{Unknown: true}, cmp.Or(r.Reason, "it could not be compared")}
}

// having is a column that declares an object.
type having struct {
	*side

	declared *declared
	drifts   map[string]rutter.FieldDiff
}

// value is what Git declares at a path.
func (h having) value(path string) string {
	if v, ok := h.declared.fields[path]; ok {
		return v
	}
	return at(h.declared.object, path)
}

// compareFields gives the rows of the fields that are not the same, of the columns
// that declare the object.
func compareFields(k objectKey, sides []*side, origins *origins, masks *masks) []Row {
	var with []having
	paths := map[string]bool{}
	for _, s := range sides {
		d := s.objects[k]
		if d == nil {
			continue
		}
		h := having{s, d, s.diffsOf(s.reports[k])}
		with = append(with, h)
		for p := range d.fields {
			paths[p] = true
		}
		for p := range h.drifts {
			paths[p] = true
		}
	}
	var rows []Row
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		if row, ok := compareField(k, p, with, origins, masks); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

func compareField(k objectKey, path string, with []having, origins *origins, masks *masks) (Row, bool) {
	values := make([]string, len(with))
	differs, drifted := false, false
	for i, h := range with {
		values[i] = h.value(path)
		differs = differs || values[i] != values[0]
		drifted = drifted || h.drifts[path].Path != ""
	}
	if !differs && !drifted || strings.HasSuffix(path, orderOf) && slices.ContainsFunc(values, func(v string) bool { return !sameElements(v, values[0]) }) {
		return Row{}, false
	}
	g := newGrouping(k, path)
	for i, h := range with {
		c := Cell{Declared: masks.declared(k, path, values[i])}
		because := ""
		if differs && values[i] != "" {
			because = origins.of(h.side, h.declared, path, values[i])
		}
		if d, ok := h.drifts[path]; ok {
			c.Drifted, c.Live = true, masks.live(k, path, d.Live)
			because = join(because, wrote(d, h.reports[k]))
		}
		g.add(h.Name, c, because)
	}
	return g.row(differs, drifted, false), true
}

// diffsOf are the fields of an object that have drifted.
func (s *side) diffsOf(r *rutter.ResourceReport) map[string]rutter.FieldDiff {
	out := map[string]rutter.FieldDiff{}
	if r == nil || r.State == rutter.Synced || r.Health.Status == rutter.Missing {
		return out
	}
	for _, d := range r.Diffs {
		out[s.names.in(d.Path)] = d
	}
	return out
}

// wrote says who wrote a live value, and since when it is so.
func wrote(d rutter.FieldDiff, r *rutter.ResourceReport) string {
	cause := explain.Classify(d, explain.Facts{Resource: *r})
	text := cause.Name
	switch {
	case cause.Name == explain.NotSynced:
		return text + ": the live value is what the last sync sent"
	case d.Manager != "" && d.Live != "":
		text += ": written by " + d.Manager
	case d.Live == "":
		text = "removed in the cluster"
	}
	if r.Drift != nil {
		for _, f := range r.Drift.Fields {
			if f.Path == d.Path && !f.Since.IsZero() {
				return text + " since " + f.Since.UTC().Format(time.RFC3339)
			}
		}
	}
	return join(text, since(r))
}

func since(r *rutter.ResourceReport) string {
	if r.Drift == nil || r.Drift.Since.IsZero() {
		return ""
	}
	return "since " + r.Drift.Since.UTC().Format(time.RFC3339)
}

func join(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return a + "; " + b
}
