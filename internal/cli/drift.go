package cli

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/generate"
)

// DriftRow is one drifted Application in the JSON of rutter drift.
type DriftRow struct { //nolint:recvcheck // it is filled by pointer and read as a value
	Application string `json:"application"`
	Namespace   string `json:"namespace"`
	Cluster     string `json:"cluster"`
	Revision    string `json:"revision"`
	// InSyncAt is the end of the last full sync: the drift is not older.
	InSyncAt time.Time `json:"inSyncAt"`
	// MaxAgeSeconds is how long ago that is.
	MaxAgeSeconds int64 `json:"maxAgeSeconds"`
	// Since is when the controller first saw the oldest drift of it, where it has
	// recorded that, and AgeSeconds how long ago that is.
	Since      *time.Time `json:"since,omitempty"`
	AgeSeconds int64      `json:"ageSeconds,omitempty"`
	// Heals says that the Application puts it back by itself.
	Heals   bool          `json:"heals"`
	Objects []DriftObject `json:"objects"`
	// More counts the objects that are not in Objects.
	More int `json:"more,omitempty"`
}

// DriftObject is one drifted object.
type DriftObject struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// What is missing, extra or differs.
	What  string     `json:"what"`
	Since *time.Time `json:"since,omitempty"`
	// Fields are those that differ, as far as the status lists them.
	Fields []string `json:"fields,omitempty"`
	// Contested are the fields that are left alone for a while, as Rivals write
	// them again each time.
	Contested []string `json:"contested,omitempty"`
	Rivals    []string `json:"rivals,omitempty"`
}

const (
	// driftPage is how many Applications are read at once.
	driftPage = 500
	// driftObjects bounds the objects that are listed of one Application.
	driftObjects = 100
)

func (r *root) driftCommand() *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "drift", Short: "List what has drifted from Git over the fleet, oldest first", Args: cobra.NoArgs,
		Long: "Lists the Applications that were synced to the revision that is current, and whose objects are not in sync any more, as\n" +
			"the controller last saw them. AGE is how long ago the oldest difference was first seen; with < it is the time since the last\n" +
			"full sync: all was in sync then, so the drift is not older (an extra object may be: a sync without pruning leaves it). A\n" +
			"change in Git that waits for a sync is no drift. A contested field is one that somebody writes again whenever it is put back.\n" +
			"'rutter explain APP' says who did it and what to do.",
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			rows, now, token := []DriftRow{}, time.Now(), ""
			for {
				var list v1alpha1.ApplicationList
				if err := cl.List(c.Context(), &list, client.Limit(driftPage), client.Continue(token)); err != nil {
					return fmt.Errorf("list Applications: %w", err)
				}
				rows = append(rows, driftOf(list.Items, now)...)
				if token = list.Continue; token == "" {
					break
				}
			}
			sortDrift(rows)
			return r.print(rows, driftTable(rows))
		},
	})
}

func driftTable(rows []DriftRow) table {
	t := table{header: []string{"AGE", "APPLICATION", "CLUSTER", "OBJECT", "WHAT", "HEALS", "NAMESPACE", "REVISION"}, wide: 2}
	for _, d := range rows {
		age := "<" + duration.HumanDuration(time.Duration(d.MaxAgeSeconds)*time.Second)
		if d.Since != nil {
			age = duration.HumanDuration(time.Duration(d.AgeSeconds) * time.Second)
		}
		heals := "no"
		if d.Heals {
			heals = "yes"
		}
		add := func(object, what string) {
			t.rows = append(t.rows, []string{age, d.Application, orDash(d.Cluster), object, what, heals, d.Namespace, short(d.Revision)})
		}
		for _, o := range d.Objects {
			what := o.What
			if len(o.Contested) > 0 {
				what += ", contested by " + orDash(strings.Join(o.Rivals, ", "))
			}
			add(rutter.Ref{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}.String(), what)
		}
		switch {
		case d.More > 0:
			add(fmt.Sprintf("and %d more", d.More), "-")
		case len(d.Objects) == 0:
			add("-", "not in the status, which was cut")
		}
	}
	return t
}

// driftOf are the drifted ones of some Applications.
func driftOf(apps []v1alpha1.Application, now time.Time) []DriftRow {
	var rows []DriftRow
	for i := range apps {
		app := &apps[i]
		at, ok := inSyncAt(app)
		if !ok || app.Status.Sync.Status != string(rutter.OutOfSync) {
			continue
		}
		d := app.Spec.Destination
		row := DriftRow{Application: app.Name, Namespace: app.Namespace, Cluster: cmp.Or(d.Name, d.Server), Revision: app.Status.Sync.Revision,
			InSyncAt: at.UTC(), MaxAgeSeconds: max(0, int64(now.Sub(at).Seconds())), Heals: heals(app, now)}
		for _, res := range app.Status.Resources {
			switch {
			case res.Hook || res.Status != string(rutter.OutOfSync):
			case len(row.Objects) == driftObjects:
				row.More++
			default:
				row.add(res, now)
			}
		}
		if len(row.Objects) == 0 { // what differs is not in a status that was cut
			row.Objects = []DriftObject{}
		}
		rows = append(rows, row)
	}
	return rows
}

// add takes an object into the row, and the time since when it differs.
func (d *DriftRow) add(res v1alpha1.ResourceStatus, now time.Time) {
	o := DriftObject{Group: res.Group, Kind: res.Kind, Namespace: res.Namespace, Name: res.Name, What: whatOf(res)}
	if known := argo.DriftOf(res); known != nil {
		since := known.Since.UTC()
		o.Since = &since
		if d.Since == nil || since.Before(*d.Since) {
			d.Since, d.AgeSeconds = &since, max(0, int64(now.Sub(since).Seconds()))
		}
		for _, f := range known.Fields {
			if f.Path != "" {
				o.Fields = append(o.Fields, f.Path)
			}
		}
		for _, f := range known.Contested() {
			o.Contested = append(o.Contested, f.Path)
			if f.Manager != "" && !slices.Contains(o.Rivals, f.Manager) {
				o.Rivals = append(o.Rivals, f.Manager)
			}
		}
	}
	d.Objects = append(d.Objects, o)
}

// from is when the drift of a row began, at the earliest.
func (d DriftRow) from() time.Time {
	if d.Since != nil {
		return *d.Since
	}
	return d.InSyncAt
}

func sortDrift(rows []DriftRow) {
	slices.SortFunc(rows, func(a, b DriftRow) int {
		return cmp.Or(a.from().Compare(b.from()), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Application, b.Application))
	})
}

// inSyncAt is the end of the last full sync to what is declared now; false when
// that has never been synced, so that what differs is a change that waits.
func inSyncAt(app *v1alpha1.Application) (time.Time, bool) {
	history := app.Status.History
	if len(history) == 0 {
		return time.Time{}, false
	}
	last, now := history[len(history)-1], app.Status.Sync
	if last.Revision != now.Revision || !slices.Equal(last.Revisions, now.Revisions) {
		return time.Time{}, false
	}
	if len(last.Sources) > 0 && !reflect.DeepEqual(last.Sources, app.Spec.Sources) ||
		len(last.Sources) == 0 && last.Source != nil && !reflect.DeepEqual(last.Source, app.Spec.Source) {
		return time.Time{}, false
	}
	at := last.DeployedAt.Time
	if op := app.Status.OperationState; op != nil && op.Phase == string(rutter.OperationSucceeded) && op.FinishedAt != nil && full(op.Operation) && op.FinishedAt.After(at) {
		at = op.FinishedAt.Time
	}
	return at, true
}

// full reports whether a sync was of all objects, and not a rehearsal.
func full(op v1alpha1.Operation) bool {
	return op.Sync != nil && !op.Sync.DryRun && len(op.Sync.Resources) == 0
}

func whatOf(res v1alpha1.ResourceStatus) string {
	switch {
	case res.RequiresPruning:
		return "extra"
	case res.Health != nil && res.Health.Status == string(rutter.Missing):
		return "missing"
	}
	return "differs"
}

// heals reports whether an Application puts drift back by itself now.
func heals(app *v1alpha1.Application, now time.Time) bool {
	p := app.Spec.SyncPolicy
	if p == nil || p.Automated == nil || !p.Automated.SelfHeal || p.Automated.Enabled != nil && !*p.Automated.Enabled {
		return false
	}
	hold, _ := generate.HoldOf(app, now) // one that cannot be read is in force
	return hold == nil
}
