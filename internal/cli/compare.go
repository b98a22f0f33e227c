package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/matrix"
)

type compareFlags struct {
	app, label, only, output string
}

func (r *root) compareCommand() *cobra.Command {
	f := &compareFlags{}
	c := &cobra.Command{
		Use: "compare (--app NAME | --label SELECTOR) [CLUSTER...]", Short: "Say what differs between clusters: what was meant to, and what has drifted",
		Long: "Compares what several clusters have of one application, field by field. A difference that Git declares is *intended*, and it is\n" +
			"said which file and line, or which parameter, it comes from; one that only a cluster has is *accidental*: drift from Git, with\n" +
			"who wrote it and since when. Clusters that agree are one line, however many they are. Nothing is changed.\n\n" +
			"--app is the name of the Applications, of their ApplicationSet, or what their names have besides their cluster's.\n\n" +
			"Exit codes: 0 the same everywhere, 1 different, 2 an error, or a cluster that could not be looked at.",
		Example: "  rutter compare --app api\n  rutter compare --app api eu-west us-east --only accidental\n  rutter compare --label app=api -o json",
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if !slices.Contains([]string{"text", "json", "yaml"}, f.output) {
				return rutter.Errorf(rutter.CodeInvalid, "-o %q: use text, json or yaml", f.output)
			}
			if !slices.Contains([]string{"", string(matrix.Intended), string(matrix.Accidental)}, f.only) {
				return rutter.Errorf(rutter.CodeInvalid, "--only %q: use intended or accidental", f.only)
			}
			if (f.app == "") == (f.label == "") {
				return rutter.Errorf(rutter.CodeInvalid, "say what to compare: --app NAME, or --label SELECTOR")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return r.compare(c, f, args) },
	}
	fl := c.Flags()
	fl.StringVar(&f.app, "app", "", "name of the Applications, or of their ApplicationSet")
	fl.StringVarP(&f.label, "label", "l", "", "labels of the Applications, over the whole fleet")
	fl.StringVar(&f.only, "only", "", "intended or accidental differences only")
	fl.StringVarP(&f.output, "output", "o", "text", "output: text, json or yaml")
	return c
}

func (r *root) compare(c *cobra.Command, f *compareFlags, clusters []string) error {
	rc, err := r.rest()
	if err != nil {
		return err
	}
	m, err := r.deps.Compare(c.Context(), CompareOptions{REST: rc, Namespace: r.namespace, App: f.app, Labels: f.label, Clusters: clusters})
	if err != nil {
		return err
	}
	if f.only != "" {
		m = m.Keep(matrix.Verdict(f.only))
	}
	if r.output = f.output; f.output != "text" {
		if err := r.print(m, table{}); err != nil {
			return err
		}
	} else {
		showMatrix(r.out, m)
	}
	switch {
	case slices.ContainsFunc(m.Columns, func(c matrix.Column) bool { return c.Problem != "" }):
		return exit{ExitError}
	case len(m.Rows) > 0:
		return exit{ExitDifferent}
	}
	return nil
}

// mostNames are the clusters of a line that are named.
const mostNames = 6

func showMatrix(w io.Writer, m matrix.Matrix) {
	object := ""
	for _, row := range m.Rows {
		if name := nameOfRow(row); name != object {
			object = name
			fmt.Fprintf(w, "%s\n", name)
		}
		fmt.Fprintf(w, "  %-10s  %s\n", row.Verdict, orElse(row.Field, "(the whole object)"))
		for _, c := range row.Cells {
			fmt.Fprintf(w, "      %s: %s\n", someNames(c.Columns), cellText(c))
		}
	}
	intended, accidental := 0, 0
	for _, row := range m.Rows {
		if row.Verdict != matrix.Accidental {
			intended++
		}
		if row.Verdict != matrix.Intended {
			accidental++
		}
	}
	compared := 0
	for _, c := range m.Columns {
		if c.Problem == "" {
			compared++
		}
	}
	fmt.Fprintf(w, "%d clusters compared: %d intended differences, %d accidental; %d objects are the same everywhere\n", compared, intended, accidental, m.Equal)
	for _, c := range m.Columns {
		if c.Problem != "" {
			fmt.Fprintf(w, "not compared: %s (%s): %s\n", c.Name, c.Application, c.Problem)
		}
	}
}

func nameOfRow(row matrix.Row) string {
	return rutter.Ref{Group: row.Group, Kind: row.Kind, Namespace: row.Namespace, Name: row.Name}.String()
}

func cellText(c matrix.Cell) string {
	text := orElse(c.Declared, "(not declared)")
	if c.Drifted {
		text = orElse(c.Live, "(not there)") + "   instead of " + text
	}
	if c.Because != "" {
		text += "   " + c.Because
	}
	return text
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func someNames(names []string) string {
	if len(names) > mostNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
	}
	return strings.Join(names, ", ")
}
