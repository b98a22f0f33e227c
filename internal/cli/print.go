package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// table is rows under a header; wide holds the number of columns that only -o
// wide shows, at the end.
type table struct {
	header []string
	rows   [][]string
	wide   int
}

// print writes v as json or yaml, or t as a table.
func (r *root) print(v any, t table) error {
	switch r.output {
	case "json":
		enc := json.NewEncoder(r.out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(v); err != nil {
			return fmt.Errorf("write json: %w", err)
		}
		return nil
	case "yaml":
		data, err := yaml.Marshal(v)
		if err != nil {
			return fmt.Errorf("write yaml: %w", err)
		}
		_, err = r.out.Write(data)
		return err
	case "table", "wide", "":
		return r.table(t)
	default:
		return rutter.Errorf(rutter.CodeInvalid, "-o %q: use table, wide, json or yaml", r.output)
	}
}

func (r *root) table(t table) error {
	n := len(t.header)
	if r.output != "wide" {
		n -= t.wide
	}
	w := tabwriter.NewWriter(r.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(t.header[:n], "\t"))
	for _, row := range t.rows {
		fmt.Fprintln(w, strings.Join(row[:n], "\t"))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// short is a commit as people read it.
func short(revision string) string {
	const n = 7
	if len(revision) == 40 {
		return revision[:n]
	}
	return revision
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
