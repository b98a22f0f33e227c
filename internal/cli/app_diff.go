package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rutterhq/rutter"
)

func (r *root) appDiff() *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "diff NAME", Short: "Show how an Application's cluster differs from Git; exit code 1 when it does", Args: cobra.ExactArgs(1),
		Long: "Renders the Application's sources and compares them with its cluster, from this process and with the server's own dry run.\n" +
			"Exit codes: 0 no difference, 1 some, 2 an error. Values of Secrets are never shown.",
		RunE: func(c *cobra.Command, args []string) error {
			rc, err := r.rest()
			if err != nil {
				return err
			}
			report, err := r.deps.Diff(c.Context(), DiffOptions{REST: rc, Namespace: r.namespace, App: AppName{r.namespace, args[0]}})
			if err != nil {
				return err
			}
			return r.showDiff(report)
		},
	})
}

// difference is one resource that differs, as it is printed.
type difference struct {
	Resource string             `json:"resource"`
	State    string             `json:"state"`
	Reason   string             `json:"reason,omitempty"`
	File     string             `json:"file,omitempty"`
	Fields   []rutter.FieldDiff `json:"fields,omitempty"`
}

func (r *root) showDiff(report rutter.Report) error {
	out := struct {
		Differences []difference `json:"differences"`
	}{Differences: []difference{}}
	for _, res := range report.Resources {
		if res.Hook || res.State == rutter.Synced {
			continue
		}
		d := difference{Resource: res.Ref.String(), State: string(res.State), Reason: res.Reason, File: res.Origin.File, Fields: res.Diffs}
		if res.RequiresPruning {
			d.Reason = "requires pruning: not declared in Git"
		}
		out.Differences = append(out.Differences, d)
	}
	if r.output == "json" || r.output == "yaml" {
		if err := r.print(out, table{}); err != nil {
			return err
		}
	} else {
		for _, d := range out.Differences {
			fmt.Fprintf(r.out, "===== %s ===== %s", d.Resource, d.Reason)
			if d.File != "" {
				fmt.Fprintf(r.out, " (%s)", d.File)
			}
			fmt.Fprintln(r.out)
			for _, f := range d.Fields {
				fmt.Fprintf(r.out, "  %s\n  - %s", f.Path, orDash(f.Live))
				if f.Manager != "" {
					fmt.Fprintf(r.out, "   (written by %s)", f.Manager)
				}
				fmt.Fprintf(r.out, "\n  + %s\n", orDash(f.Desired))
			}
		}
	}
	for _, cond := range report.Conditions {
		fmt.Fprintf(r.err, "%s: %s\n", cond.Type, cond.Message)
	}
	if len(out.Differences) > 0 {
		return exit{ExitDifferent}
	}
	if report.Sync == rutter.SyncUnknown {
		return rutter.Errorf(rutter.CodeUnavailable, "the application could not be compared")
	}
	return nil
}
