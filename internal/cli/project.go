package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/policy"
	"github.com/rutterhq/rutter/internal/syncwindow"
)

func (r *root) projectCommand() *cobra.Command {
	c := &cobra.Command{Use: "project", Aliases: []string{"proj", "projects", "appproject"}, Short: "Look at AppProjects and ask what they allow"}
	c.AddCommand(r.projectList(), r.projectGet(), r.projectCan(), r.projectWindows())
	return c
}

func (r *root) projectList() *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List AppProjects, with how many of their rules are wrong or wide", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			var list v1alpha1.AppProjectList
			if err := cl.List(c.Context(), &list, client.InNamespace(r.namespace)); err != nil {
				return fmt.Errorf("list AppProjects: %w", err)
			}
			out := struct {
				Projects []ProjectView `json:"projects"`
			}{Projects: []ProjectView{}}
			t := table{header: []string{"NAME", "SOURCES", "DESTINATIONS", "WINDOWS", "PROBLEMS", "WARNINGS", "DESCRIPTION"}, wide: 1}
			for i := range list.Items {
				v := viewProject(&list.Items[i])
				out.Projects = append(out.Projects, v)
				s := list.Items[i].Spec
				t.rows = append(t.rows, []string{v.Name, orDash(few(s.SourceRepos)), strconv.Itoa(len(s.Destinations)), strconv.Itoa(len(s.SyncWindows)),
					strconv.Itoa(len(v.Problems)), strconv.Itoa(len(v.Warnings)), orDash(s.Description)})
			}
			return r.print(out, t)
		},
	})
}

// few is the first of a list, and how many more there are.
func few(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return fmt.Sprintf("%s and %d more", list[0], len(list)-1)
}

// ProjectView is an AppProject with what is to be said of it.
type ProjectView struct {
	Name string                  `json:"name"`
	Spec v1alpha1.AppProjectSpec `json:"spec"`
	// Inherits are the global projects whose rules are in force too.
	Inherits []string `json:"inherits,omitempty"`
	// Problems are rules that cannot be used as they are written, and Warnings what
	// is allowed and hardly meant.
	Problems []string         `json:"problems"`
	Warnings []policy.Warning `json:"warnings"`
}

func viewProject(p *v1alpha1.AppProject) ProjectView {
	v := ProjectView{Name: p.Name, Spec: p.Spec, Problems: []string{}, Warnings: append([]policy.Warning{}, policy.Warnings(p)...)}
	for _, problem := range policy.Validate(p) {
		v.Problems = append(v.Problems, problem.Error())
	}
	return v
}

func (r *root) getProject(ctx context.Context, cl client.Client, name string) (*v1alpha1.AppProject, error) {
	var p v1alpha1.AppProject
	if err := cl.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, &p); err != nil {
		return nil, fmt.Errorf("read project %q in namespace %q: %w", name, r.namespace, err)
	}
	return &p, nil
}

func (r *root) projectGet() *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "get NAME", Short: "Show an AppProject: its rules, what it inherits, and what is wrong or wide in it", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			p, err := r.getProject(c.Context(), cl, args[0])
			if err != nil {
				return err
			}
			v := viewProject(p)
			var cm corev1.ConfigMap
			if err := cl.Get(c.Context(), client.ObjectKey{Namespace: r.namespace, Name: argo.ConfigMapName}, &cm); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("read ConfigMap %s: %w", argo.ConfigMapName, err)
			}
			settings, err := argo.GlobalProjects(&cm)
			if err != nil {
				return err
			}
			_, _ = policy.Globals(p, settings, func(name string) (*v1alpha1.AppProject, bool) {
				v.Inherits = append(v.Inherits, name)
				return nil, false
			})
			if r.output == "json" || r.output == "yaml" {
				return r.print(v, table{})
			}
			r.showProject(v)
			return nil
		},
	})
}

// showProject prints what people ask for first; everything is in -o yaml.
func (r *root) showProject(v ProjectView) {
	line := func(name string, values ...string) {
		fmt.Fprintf(r.out, "%-22s %s\n", name+":", orDash(strings.Join(values, ", ")))
	}
	line("Name", v.Name)
	line("Description", v.Spec.Description)
	line("Inherits", v.Inherits...)
	line("Sources", v.Spec.SourceRepos...)
	for _, d := range v.Spec.Destinations {
		line("Destination", cmp.Or(d.Name, d.Server)+" namespace "+cmp.Or(d.Namespace, "(none)"))
	}
	line("Source namespaces", v.Spec.SourceNamespaces...)
	kinds := func(name string, of []v1alpha1.GroupKind) {
		var all []string
		for _, k := range of {
			all = append(all, cmp.Or(k.Group, "core")+"/"+k.Kind)
		}
		line(name, all...)
	}
	cluster := func(list []v1alpha1.ClusterResourceRestriction) (out []v1alpha1.GroupKind) {
		for _, k := range list {
			out = append(out, v1alpha1.GroupKind{Group: k.Group, Kind: k.Kind})
		}
		return out
	}
	kinds("Cluster kinds", cluster(v.Spec.ClusterResourceWhitelist))
	kinds("  but not", cluster(v.Spec.ClusterResourceBlacklist))
	if v.Spec.NamespaceResourceWhitelist == nil {
		line("Namespaced kinds", "all")
	} else {
		kinds("Namespaced kinds", *v.Spec.NamespaceResourceWhitelist)
	}
	kinds("  but not", v.Spec.NamespaceResourceBlacklist)
	line("Sync windows", strconv.Itoa(len(v.Spec.SyncWindows)))
	line("Orphaned resources", map[bool]string{true: "watched", false: "not watched"}[v.Spec.OrphanedResources != nil])
	for _, p := range v.Problems {
		line("Problem", p)
	}
	for _, w := range v.Warnings {
		line("Warning", w.Field+": "+w.Message)
	}
}

func (r *root) projectWindows() *cobra.Command {
	c := &cobra.Command{Use: "windows", Aliases: []string{"window"}, Short: "Look at and change the sync windows of an AppProject"}
	c.AddCommand(r.windowsList(), r.windowsAdd(), r.windowsDelete())
	return c
}

// WindowRow is a sync window in the JSON of windows list.
type WindowRow struct {
	ID int `json:"id"`
	v1alpha1.SyncWindow
	// Active says whether it counts now, and Until when that changes.
	Active  bool      `json:"active"`
	Until   time.Time `json:"until,omitzero"`
	Problem string    `json:"problem,omitempty"`
}

func windowRows(p *v1alpha1.AppProject, now time.Time) []WindowRow {
	rows := []WindowRow{}
	for i, w := range policy.New(p, policy.Around{}).AllWindows() {
		row := WindowRow{ID: i, SyncWindow: p.Spec.SyncWindows[i], Problem: w.Problem}
		if w.Problem == "" {
			row.Active, row.Until = syncwindow.Active(w, now)
		}
		rows = append(rows, row)
	}
	return rows
}

func (r *root) windowsList() *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "list PROJECT", Aliases: []string{"ls"}, Short: "List the sync windows, which are active, and until when", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			p, err := r.getProject(c.Context(), cl, args[0])
			if err != nil {
				return err
			}
			rows := windowRows(p, time.Now())
			t := table{header: []string{"ID", "STATUS", "UNTIL", "KIND", "SCHEDULE", "DURATION", "TIMEZONE", "MANUALSYNC", "APPLICATIONS", "NAMESPACES", "CLUSTERS", "AND", "DESCRIPTION"}}
			for _, w := range rows {
				status, until := "Inactive", "-"
				switch {
				case w.Problem != "":
					status = "Broken: " + w.Problem
				case w.Active:
					status = "Active"
				}
				if !w.Until.IsZero() {
					until = w.Until.UTC().Format(time.RFC3339)
				}
				t.rows = append(t.rows, []string{strconv.Itoa(w.ID), status, until, w.Kind, w.Schedule, w.Duration, cmp.Or(w.TimeZone, "UTC"), strconv.FormatBool(w.ManualSync),
					orDash(strings.Join(w.Applications, ",")), orDash(strings.Join(w.Namespaces, ",")), orDash(strings.Join(w.Clusters, ",")), strconv.FormatBool(w.UseAndOperator), orDash(w.Description)})
			}
			return r.print(rows, t)
		},
	})
}

func (r *root) windowsAdd() *cobra.Command {
	var w v1alpha1.SyncWindow
	c := &cobra.Command{
		Use: "add PROJECT --kind allow|deny --schedule CRON --duration TIME", Short: "Add a sync window", Args: cobra.ExactArgs(1),
		Example: "  rutter proj windows add team --kind deny --schedule '0 22 * * 5' --duration 60h --applications '*' --time-zone Europe/Berlin --description 'no deployments at weekends'",
		RunE: func(c *cobra.Command, args []string) error {
			return r.changeWindows(c.Context(), args[0], func(list []v1alpha1.SyncWindow) ([]v1alpha1.SyncWindow, string, error) {
				return append(list, w), fmt.Sprintf("window %d is added to project %s", len(list), args[0]), nil
			})
		},
	}
	f := c.Flags()
	f.StringVarP(&w.Kind, "kind", "k", "", "allow or deny")
	f.StringVar(&w.Schedule, "schedule", "", "when it begins, as cron has it: '0 22 * * *'")
	f.StringVar(&w.Duration, "duration", "", "how long it lasts, such as 1h")
	f.StringSliceVar(&w.Applications, "applications", nil, "names of Applications, with * for any")
	f.StringSliceVar(&w.Namespaces, "namespaces", nil, "namespaces of destinations")
	f.StringSliceVar(&w.Clusters, "clusters", nil, "clusters, by name or server")
	f.BoolVar(&w.ManualSync, "manual-sync", false, "let a person sync while it forbids syncs")
	f.StringVar(&w.TimeZone, "time-zone", "", "time zone of the schedule, such as Europe/Berlin (default UTC)")
	f.BoolVar(&w.UseAndOperator, "use-and-operator", false, "concern what all lists match, not one of them")
	f.BoolVar(&w.SyncOverrun, "sync-overrun", false, "let a sync that has begun go on with its retries")
	f.StringVar(&w.Description, "description", "", "why, for those who read it")
	for _, name := range []string{"kind", "schedule", "duration"} {
		_ = c.MarkFlagRequired(name) // the flag exists
	}
	return c
}

func (r *root) windowsDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete PROJECT ID", Aliases: []string{"rm"}, Short: "Delete a sync window by its ID in the list", Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return r.changeWindows(c.Context(), args[0], func(list []v1alpha1.SyncWindow) ([]v1alpha1.SyncWindow, string, error) {
				id, err := strconv.Atoi(args[1])
				if err != nil || id < 0 || id >= len(list) {
					return nil, "", rutter.Errorf(rutter.CodeInvalid, "window %q: project %s has %d windows: see 'rutter proj windows list %[2]s'", args[1], args[0], len(list))
				}
				return append(list[:id:id], list[id+1:]...), fmt.Sprintf("window %d of project %s is deleted", id, args[0]), nil
			})
		},
	}
}

// changeWindows writes what change makes of the windows, unless somebody else has
// changed the project meanwhile or something is wrong with them.
func (r *root) changeWindows(ctx context.Context, name string, change func([]v1alpha1.SyncWindow) ([]v1alpha1.SyncWindow, string, error)) error {
	cl, err := r.client()
	if err != nil {
		return err
	}
	p, err := r.getProject(ctx, cl, name)
	if err != nil {
		return err
	}
	had := len(p.Spec.SyncWindows)
	list, said, err := change(p.Spec.SyncWindows)
	if err != nil {
		return err
	}
	p.Spec.SyncWindows = list
	for _, problem := range policy.Validate(p) { // what was wrong before is not this change's matter
		if len(list) > had && strings.Contains(problem.Error(), fmt.Sprintf("spec.syncWindows[%d]", had)) {
			return problem
		}
	}
	if err := cl.Update(ctx, p, fieldOwner); apierrors.IsConflict(err) {
		return rutter.Errorf(rutter.CodeConflict, "project %s has been changed meanwhile: try again", name)
	} else if err != nil {
		return fmt.Errorf("write project %s: %w", name, err)
	}
	fmt.Fprintln(r.out, said)
	return nil
}
