package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/matrix"
)

// compareOutputs are the forms of a matrix.
var compareOutputs = []string{"table", "json", "yaml", "markdown"}

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
			"--app is the name of an ApplicationSet, or what the names of Applications have besides their cluster's, or one Application,\n" +
			"which is compared with those of the same ApplicationSet, chart or folder.\n\n" +
			"Exit codes: 0 the same everywhere, 1 different, 2 an error, or something that could not be looked at.",
		Example: "  rutter compare --app api\n  rutter compare --app api eu-west us-east --only accidental\n  rutter compare --label app=api -o json",
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if !slices.Contains(compareOutputs, f.output) {
				return rutter.Errorf(rutter.CodeInvalid, "-o %q: use table, json, yaml or markdown", f.output)
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
	fl.StringVarP(&f.output, "output", "o", "table", "output: table, json, yaml or markdown")
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
	found := matrixSummary(m)
	if f.only != "" {
		m = m.Keep(matrix.Verdict(f.only))
	}
	switch r.output = f.output; f.output {
	case "table":
		showMatrix(r.out, m, found)
	case "markdown":
		markdownMatrix(r.out, m, found)
	default:
		if err := r.print(m, table{}); err != nil {
			return err
		}
	}
	switch {
	case slices.ContainsFunc(m.Columns, func(c matrix.Column) bool { return c.Problem != "" }),
		slices.ContainsFunc(m.Rows, func(row matrix.Row) bool { return row.Verdict == matrix.NotCompared }):
		return exit{ExitError}
	case len(m.Rows) > 0:
		return exit{ExitDifferent}
	}
	return nil
}
