package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// printExplanations prints how each source is rendered.
func (r *root) printExplanations(all []rutter.Explanation) error {
	if r.output == "json" || r.output == "yaml" {
		return r.print(map[string]any{"sources": all}, table{})
	}
	for i, e := range all {
		if i > 0 {
			fmt.Fprintln(r.out)
		}
		fmt.Fprintf(r.out, "%s: %d objects by %s at %s: %s\n", e.Source, e.Objects, e.Tool, short(e.Revision), e.Reason)
		if len(e.Values) > 0 {
			fmt.Fprintln(r.out, "\nHelm values, lowest layer first; the last of a value is in force:")
			if err := r.table(valuesTable(e.Values)); err != nil {
				return err
			}
		}
		fmt.Fprintln(r.out, "\nread:")
		if err := r.table(inputsTable(e.Inputs)); err != nil {
			return err
		}
	}
	return nil
}

func valuesTable(layers []rutter.ValueLayer) table {
	t := table{header: []string{"VALUE", "LAYER", "WHERE", "SET TO"}}
	layers = slices.Clone(layers)
	slices.SortStableFunc(layers, func(a, b rutter.ValueLayer) int { return strings.Compare(a.Path, b.Path) })
	for _, l := range layers {
		t.rows = append(t.rows, []string{printable(l.Path), l.Layer, where(l), valueText(l)})
	}
	return t
}

// where names the place of a layer.
func where(l rutter.ValueLayer) string {
	switch {
	case l.File == "":
		return "the Application"
	case l.Line > 0:
		return fmt.Sprintf("%s:%d", printable(l.File), l.Line)
	}
	return printable(l.File)
}

// valueText is a value on one line, as JSON.
func valueText(l rutter.ValueLayer) string {
	if l.Removed {
		return "(removed)"
	}
	text, err := json.Marshal(l.Value)
	if err != nil {
		return printable(fmt.Sprint(l.Value))
	}
	const most = 100
	if runes := []rune(string(text)); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(text)
}

func inputsTable(inputs []rutter.Input) table {
	t := table{header: []string{"WHAT", "PATH", "SOURCE", "HASH"}}
	for _, in := range inputs {
		hash := in.Hash
		switch {
		case hash == "":
			hash = "(absent)"
		case len(hash) > 12:
			hash = hash[:12]
		}
		t.rows = append(t.rows, []string{string(in.Kind), printable(in.Path), strconv.Itoa(in.Source), hash})
	}
	return t
}

// printable keeps what comes from a repository from steering the terminal.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			return '\uFFFD'
		}
		return c
	}, s)
}

// printTrace prints the layers of one value, and of what lies below it.
func (r *root) printTrace(path string, all []rutter.Explanation) error {
	var found []rutter.ValueLayer
	known := map[string]bool{}
	for _, e := range all {
		for _, l := range e.Values {
			known[l.Path] = true
			if concerns(l, path) {
				found = append(found, l)
			}
		}
	}
	if len(found) == 0 {
		return rutter.Errorf(rutter.CodeNotFound, "no layer sets %s%s", path, similar(path, known))
	}
	if r.output == "json" || r.output == "yaml" {
		return r.print(map[string]any{"value": path, "layers": found}, table{})
	}
	return r.table(valuesTable(found))
}

// concerns reports whether a layer set the value, something within it, or
// something that it lies in.
func concerns(l rutter.ValueLayer, path string) bool {
	within := func(inner, outer string) bool {
		rest, ok := strings.CutPrefix(inner, outer)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	return within(l.Path, path) || within(path, l.Path)
}

// similar names the values that end as the one that was asked for.
func similar(path string, known map[string]bool) string {
	last := path[strings.LastIndex(path, ".")+1:]
	var near []string
	for k := range known {
		if k[strings.LastIndex(k, ".")+1:] == last {
			near = append(near, k)
		}
	}
	slices.Sort(near)
	if len(near) == 0 {
		return ": see --explain for all values"
	}
	return ": there is " + strings.Join(near[:min(len(near), 5)], ", ")
}
