package matrix

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rutterhq/rutter"
)

// compareObject gives the rows of one object.
func compareObject(k objectKey, sides []*side, origins *origins, masks *masks) []Row {
	if row, whole := presence(k, sides); whole {
		rows := []Row{row}
		return append(rows, compareFields(k, sides, origins, masks)...)
	}
	return compareFields(k, sides, origins, masks)
}

// presence is a row for an object that is not everywhere.
func presence(k objectKey, sides []*side) (Row, bool) {
	g := newGrouping(k, "")
	differs, drifted, declared := false, false, 0
	for _, s := range sides {
		_, has := s.objects[k]
		r := s.reports[k]
		c := Cell{}
		switch {
		case has && r != nil && r.Health.Status == rutter.Missing:
			c = Cell{Declared: `"declared"`, Drifted: true, Because: join("it is missing", since(r))}
		case has:
			c = Cell{Declared: `"declared"`}
		case r != nil && r.RequiresPruning:
			c = Cell{Drifted: true, Live: `"there"`, Because: "Git declares it no more, and it has not been pruned"}
		}
		if has {
			declared++
		}
		drifted = drifted || c.Drifted
		g.add(s.Name, c)
	}
	differs = declared > 0 && declared < len(sides)
	return g.row(differs, drifted), differs || drifted
}

// compareFields gives the rows of the fields that are not the same, of the columns
// that declare the object.
func compareFields(k objectKey, sides []*side, origins *origins, masks *masks) []Row {
	var with []*side
	paths := map[string]bool{}
	for _, s := range sides {
		if _, has := s.objects[k]; has {
			with = append(with, s)
			maps.Copy(paths, asSet(s.fields[k]))
		}
	}
	drifts := make([]map[string]rutter.FieldDiff, len(with))
	for i, s := range with {
		drifts[i] = diffsOf(s.reports[k])
		for p := range drifts[i] {
			paths[p] = true
		}
	}
	var rows []Row
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		if row, ok := compareField(k, p, with, drifts, origins, masks); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

func compareField(k objectKey, path string, with []*side, drifts []map[string]rutter.FieldDiff, origins *origins, masks *masks) (Row, bool) {
	differs, drifted := false, false
	for i, s := range with {
		differs = differs || s.fields[k][path] != with[0].fields[k][path]
		_, d := drifts[i][path]
		drifted = drifted || d
	}
	if !differs && !drifted {
		return Row{}, false
	}
	g := newGrouping(k, path)
	for i, s := range with {
		value, has := s.fields[k][path]
		c := Cell{Declared: masks.of(k, path, value)}
		if differs {
			c.Because = origins.of(s, s.objects[k], path, value, has)
		}
		if d, ok := drifts[i][path]; ok {
			c.Drifted, c.Live = true, masks.of(k, path, d.Live)
			if value == "" {
				c.Declared = masks.of(k, path, d.Desired)
			}
			c.Because = join(c.Because, wrote(d, s.reports[k]))
		}
		g.add(s.Name, c)
	}
	return g.row(differs, drifted), true
}

func diffsOf(r *rutter.ResourceReport) map[string]rutter.FieldDiff {
	out := map[string]rutter.FieldDiff{}
	if r == nil || r.State != rutter.OutOfSync || r.Health.Status == rutter.Missing {
		return out
	}
	for _, d := range r.Diffs {
		out[d.Path] = d
	}
	return out
}

// wrote says who wrote a live value, and since when it is so.
func wrote(d rutter.FieldDiff, r *rutter.ResourceReport) string {
	by := cmp.Or(d.Manager, "somebody")
	text := "written by " + by
	if d.Live == "" {
		text = "removed by somebody"
	}
	if r.Drift != nil {
		for _, f := range r.Drift.Fields {
			if f.Path == d.Path {
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

// grouping folds columns that have the same.
type grouping struct {
	out   Row
	cells []*Cell
}

func newGrouping(k objectKey, field string) *grouping {
	return &grouping{out: Row{Group: k.group, Kind: k.kind, Namespace: k.namespace, Name: k.name, Field: field}}
}

func (g *grouping) add(column string, c Cell) {
	for _, x := range g.cells {
		if x.Declared == c.Declared && x.Drifted == c.Drifted && x.Live == c.Live && x.Because == c.Because {
			x.Columns = append(x.Columns, column)
			return
		}
	}
	c.Columns = []string{column}
	g.cells = append(g.cells, &c)
}

func (g *grouping) row(differs, drifted bool) Row {
	switch {
	case differs && drifted:
		g.out.Verdict = Both
	case drifted:
		g.out.Verdict = Accidental
	default:
		g.out.Verdict = Intended
	}
	slices.SortStableFunc(g.cells, func(a, b *Cell) int { return cmp.Compare(len(b.Columns), len(a.Columns)) })
	for _, c := range g.cells {
		g.out.Cells = append(g.out.Cells, *c)
	}
	return g.out
}

func asSet(m map[string]string) map[string]bool {
	out := make(map[string]bool, len(m))
	for k := range m {
		out[k] = true
	}
	return out
}

// masks hide the values of Secrets: letters say which are the same.
type masks struct{ letters map[string]map[string]string }

func newMasks() *masks { return &masks{letters: map[string]map[string]string{}} }

// of is a value as it is shown.
func (m *masks) of(k objectKey, path, value string) string {
	if value == "" || k.kind != "Secret" || k.group != "" || !secretField(path) {
		return short(value)
	}
	field := fmt.Sprint(k, path)
	if m.letters[field] == nil {
		m.letters[field] = map[string]string{}
	}
	known := m.letters[field]
	if known[value] == "" {
		known[value] = fmt.Sprintf(`"hidden value %d"`, len(known)+1)
	}
	return known[value]
}

// mostShown is how much of a value is shown.
const mostShown = 200

func short(value string) string {
	if r := []rune(value); len(r) > mostShown {
		return string(r[:mostShown]) + "…"
	}
	return value
}
