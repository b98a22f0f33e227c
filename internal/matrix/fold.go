package matrix

import (
	"cmp"
	"slices"
)

// grouping folds columns that have the same, whatever made them so.
type grouping struct {
	out   Row
	cells []*Cell
	known map[cellKey]*Cell
}

// cellKey is what columns of one cell have in common.
type cellKey struct {
	declared, live   string
	drifted, unknown bool
}

func newGrouping(k objectKey, field string) *grouping {
	return &grouping{out: Row{Group: k.group, Kind: k.kind, Namespace: k.namespace, Name: k.name, Field: field}, known: map[cellKey]*Cell{}}
}

func (g *grouping) add(column string, c Cell, because string) {
	key := cellKey{c.Declared, c.Live, c.Drifted, c.Unknown}
	x := g.known[key]
	if x == nil {
		x = &c
		g.known[key] = x
		g.cells = append(g.cells, x)
	}
	x.Columns = append(x.Columns, column)
	if because == "" {
		return
	}
	if i := slices.IndexFunc(x.Because, func(b Because) bool { return b.Text == because }); i >= 0 {
		x.Because[i].Columns = append(x.Because[i].Columns, column)
		return
	}
	x.Because = append(x.Because, Because{Columns: []string{column}, Text: because})
}

// row puts the largest group first, and cuts what is long.
func (g *grouping) row(differs, drifted, unknown bool) Row {
	switch {
	case differs && drifted:
		g.out.Verdict = Both
	case drifted:
		g.out.Verdict = Accidental
	case unknown:
		g.out.Verdict = NotCompared
	default:
		g.out.Verdict = Intended
	}
	slices.SortStableFunc(g.cells, func(a, b *Cell) int { return cmp.Compare(len(b.Columns), len(a.Columns)) })
	var values []string
	for _, c := range g.cells {
		values = append(values, c.Declared, c.Live)
	}
	short := shorten(values)
	for _, c := range g.cells {
		c.Declared, c.Live = short(c.Declared), short(c.Live)
		g.out.Cells = append(g.out.Cells, *c)
	}
	return g.out
}
