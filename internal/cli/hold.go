package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// HoldRow is one hold in the JSON of rutter holds.
type HoldRow struct {
	Application string `json:"application"`
	Namespace   string `json:"namespace"`
	Who         string `json:"who"`
	Why         string `json:"why"`
	Until       string `json:"until"`
	// Problem says why a hold cannot be read; it is in force nevertheless.
	Problem string `json:"problem,omitempty"`
}

func (r *root) holdCommand() *cobra.Command {
	var who, why, until string
	var length time.Duration
	c := &cobra.Command{
		Use: "hold APP... --why TEXT (--for DURATION | --until TIME)", Short: "Pause the automated sync of Applications until a time", Args: cobra.MinimumNArgs(1),
		Long: "A hold pauses the automated sync and the self-heal of an Application. Its ApplicationSet does not undo it and\n" +
			"does not delete the Application meanwhile; a manual sync is still possible. It ends by itself.",
		Example: "  rutter hold shop-prod --why 'INC-42: database moves' --for 2h\n  rutter unhold shop-prod",
		RunE: func(c *cobra.Command, args []string) error {
			hold := generate.ApplicationHold{Who: who, Why: why}
			var err error
			if hold.Until, err = holdEnd(until, length, time.Now()); err != nil {
				return err
			}
			return r.annotateHold(c, args, hold.String(), func(name string) string {
				return fmt.Sprintf("%s is held until %s", name, hold.Until.UTC().Format(time.RFC3339))
			})
		},
	}
	c.Flags().StringVar(&who, "who", username(), "who holds it")
	c.Flags().StringVar(&why, "why", "", "why, for those who find it")
	c.Flags().DurationVar(&length, "for", 0, "how long, such as 2h")
	c.Flags().StringVar(&until, "until", "", "until when, such as 2026-08-01T12:00:00Z")
	_ = c.MarkFlagRequired("why") // the flag exists
	return c
}

// holdEnd is when a hold ends.
func holdEnd(until string, length time.Duration, now time.Time) (time.Time, error) {
	switch {
	case (until == "") == (length == 0):
		return time.Time{}, rutter.Errorf(rutter.CodeInvalid, "a hold ends by itself: use either --for, such as --for 2h, or --until")
	case length < 0:
		return time.Time{}, rutter.Errorf(rutter.CodeInvalid, "--for %s: is not ahead", length)
	case length > 0:
		return now.Add(length), nil
	}
	end, err := time.Parse(time.RFC3339, until)
	if err != nil {
		return end, rutter.Errorf(rutter.CodeInvalid, "--until %q: write a time such as 2026-08-01T12:00:00Z", until)
	}
	if !end.After(now) {
		return end, rutter.Errorf(rutter.CodeInvalid, "--until %s: is not ahead", until)
	}
	return end, nil
}

func (r *root) unholdCommand() *cobra.Command {
	return &cobra.Command{
		Use: "unhold APP...", Short: "End a hold before its time", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return r.annotateHold(c, args, nil, func(name string) string { return name + " is not held any more" })
		},
	}
}

// annotateHold writes the hold of some Applications; nil takes it off.
func (r *root) annotateHold(c *cobra.Command, names []string, hold any, say func(name string) string) error {
	cl, err := r.client()
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{generate.AnnotationHold: hold}}})
	if err != nil {
		return fmt.Errorf("encode the hold: %w", err)
	}
	for _, name := range names {
		app, err := r.getApp(c.Context(), cl, name)
		if err != nil {
			return err
		}
		if _, held := app.Annotations[generate.AnnotationHold]; hold == nil && !held {
			fmt.Fprintf(r.out, "%s was not held: nothing was done\n", name)
			continue
		}
		if err := cl.Patch(c.Context(), app, client.RawPatch(types.MergePatchType, patch), fieldOwner); err != nil {
			return fmt.Errorf("write the hold of application %q: %w", name, err)
		}
		fmt.Fprintln(r.out, say(name))
	}
	return nil
}

func (r *root) holdsCommand() *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "holds", Short: "List the holds of the fleet", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			var list v1alpha1.ApplicationList
			if err := cl.List(c.Context(), &list); err != nil {
				return fmt.Errorf("list Applications: %w", err)
			}
			rows := holdsOf(list.Items, time.Now())
			t := table{header: []string{"APPLICATION", "NAMESPACE", "UNTIL", "WHO", "WHY"}}
			for _, h := range rows {
				t.rows = append(t.rows, []string{h.Application, h.Namespace, orDash(h.Until), orDash(h.Who), orDash(strings.TrimSpace(h.Why + " " + h.Problem))})
			}
			return r.print(rows, t)
		},
	})
}

// holdsOf are the holds in force, those that end first first.
func holdsOf(apps []v1alpha1.Application, now time.Time) []HoldRow {
	rows := []HoldRow{}
	for i := range apps {
		h, err := generate.HoldOf(&apps[i], now)
		if h == nil {
			continue
		}
		row := HoldRow{Application: apps[i].Name, Namespace: apps[i].Namespace, Who: h.Who, Why: h.Why}
		if !h.Until.IsZero() {
			row.Until = h.Until.UTC().Format(time.RFC3339)
		}
		if err != nil {
			row.Problem = err.Error()
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b HoldRow) int { return strings.Compare(a.Until, b.Until) })
	return rows
}
