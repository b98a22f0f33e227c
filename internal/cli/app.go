package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

const fieldOwner = client.FieldOwner("rutter-cli")

func (r *root) appCommand() *cobra.Command {
	c := &cobra.Command{Use: "app", Aliases: []string{"application", "applications", "apps"}, Short: "Look at and act on Applications"}
	c.AddCommand(r.appList(), r.appGet(), r.appDiff(), r.appSync(), r.appTerminate(), r.appWait(), r.appHistory(), r.appDelete(), r.appConfirmDeletion(), r.appRefresh(), r.appActions())
	return c
}

// AppRow is one Application in the JSON of app list and of the demo.
type AppRow struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	Sync      string `json:"sync"`
	Health    string `json:"health"`
	Revision  string `json:"revision"`
	Project   string `json:"project,omitempty"`
	Target    string `json:"targetNamespace,omitempty"`
	// Held says that a person paused its automated sync.
	Held bool `json:"held,omitempty"`
	// Waiting says that its removal waits for an approval.
	Waiting bool `json:"removalWaits,omitempty"`
	// Message is the first condition, when there is one, and that of a hold before.
	Message string `json:"message,omitempty"`
}

// RowOf summarises an Application; names translates servers to cluster names.
func RowOf(app *v1alpha1.Application, names map[string]string) AppRow {
	row := AppRow{Name: app.Name, Namespace: app.Namespace, Cluster: app.Spec.Destination.Name, Sync: app.Status.Sync.Status,
		Health: app.Status.Health.Status, Revision: app.Status.Sync.Revision, Project: app.Spec.Project, Target: app.Spec.Destination.Namespace}
	if row.Cluster == "" {
		row.Cluster = app.Spec.Destination.Server
		if n := names[strings.TrimSuffix(row.Cluster, "/")]; n != "" {
			row.Cluster = n
		}
	}
	if row.Revision == "" {
		row.Revision = strings.Join(app.Status.Sync.Revisions, ",")
	}
	if row.Sync == "" {
		row.Sync = string(rutter.SyncUnknown)
	}
	if row.Health == "" {
		row.Health = string(rutter.HealthUnknown)
	}
	for _, c := range app.Status.Conditions {
		if held := c.Type == rutter.CondHeld; held || row.Message == "" {
			row.Held, row.Message = row.Held || held, c.Type+": "+c.Message
		}
	}
	return row
}

func (r *root) appList() *cobra.Command {
	var all bool
	c := r.outputFlag(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List Applications", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			var list v1alpha1.ApplicationList
			if err := cl.List(c.Context(), &list, r.within(all)); err != nil {
				return fmt.Errorf("list Applications: %w", err)
			}
			names, err := r.clusterNames(c.Context(), cl)
			if err != nil {
				return err
			}
			waiting, err := r.waitingRemovals(c, cl, all)
			if err != nil {
				return err
			}
			out := struct {
				Applications []AppRow `json:"applications"`
			}{Applications: []AppRow{}}
			t := table{header: []string{"NAME", "CLUSTER", "SYNC", "HEALTH", "REVISION", "AGE", "NAMESPACE", "PROJECT", "MESSAGE"}, wide: 3}
			for i := range list.Items {
				row := RowOf(&list.Items[i], names)
				row.Waiting = waiting[client.ObjectKeyFromObject(&list.Items[i])]
				out.Applications = append(out.Applications, row)
				sync := row.Sync
				if row.Held {
					sync += " (held)"
				}
				if row.Waiting {
					sync += " (removal waits)"
				}
				t.rows = append(t.rows, []string{row.Name, row.Cluster, sync, row.Health, orDash(short(row.Revision)), age(&list.Items[i]), orDash(row.Target), orDash(row.Project), orDash(row.Message)})
			}
			return r.print(out, t)
		},
	})
	c.Flags().BoolVarP(&all, "all-namespaces", "A", false, "Applications of every namespace")
	return c
}

// age is how long an Application has been there, as kubectl shows it.
func age(app *v1alpha1.Application) string {
	return duration.HumanDuration(time.Since(app.CreationTimestamp.Time))
}

// within restricts a list to the chosen namespace.
func (r *root) within(all bool) client.ListOption {
	if all {
		return client.InNamespace("")
	}
	return client.InNamespace(r.namespace)
}

func (r *root) getApp(ctx context.Context, cl client.Client, name string) (*v1alpha1.Application, error) {
	var app v1alpha1.Application
	if err := cl.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, &app); err != nil {
		return nil, fmt.Errorf("read application %q in namespace %q: %w", name, r.namespace, err)
	}
	return &app, nil
}

func (r *root) appGet() *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "get NAME", Short: "Show one Application and its resources", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			app, err := r.getApp(c.Context(), cl, args[0])
			if err != nil {
				return err
			}
			if r.output == "json" || r.output == "yaml" {
				app.ManagedFields = nil
				return r.print(app, table{})
			}
			return r.describe(app)
		},
	})
}

func (r *root) describe(app *v1alpha1.Application) error {
	s := app.Status
	row := RowOf(app, nil)
	fmt.Fprintf(r.out, "Name:         %s/%s\nProject:      %s\nCluster:      %s\nNamespace:    %s\n", app.Namespace, app.Name, app.Spec.Project, row.Cluster, row.Target)
	for _, src := range sourcesOf(app) {
		fmt.Fprintf(r.out, "Source:       %s %s @ %s\n", src.RepoURL, orDash(src.Path), orDash(src.TargetRevision))
	}
	fmt.Fprintf(r.out, "Sync:         %s to %s\nHealth:       %s\n", row.Sync, orDash(short(row.Revision)), strings.TrimSpace(row.Health+" "+s.Health.Message))
	if op := s.OperationState; op != nil {
		fmt.Fprintf(r.out, "Operation:    %s %s\n", op.Phase, op.Message)
	}
	for _, cond := range s.Conditions {
		fmt.Fprintf(r.out, "Condition:    %s: %s\n", cond.Type, cond.Message)
	}
	fmt.Fprintln(r.out)
	t := table{header: []string{"GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "MESSAGE"}}
	for _, res := range s.Resources {
		health, message := "", ""
		if res.Health != nil {
			health, message = res.Health.Status, res.Health.Message
		}
		status := res.Status
		if res.RequiresPruning {
			status += " (requires pruning)"
		}
		t.rows = append(t.rows, []string{orDash(res.Group), res.Kind, orDash(res.Namespace), res.Name, status, orDash(health), message})
	}
	return r.table(t)
}

func sourcesOf(app *v1alpha1.Application) []v1alpha1.ApplicationSource {
	if len(app.Spec.Sources) > 0 {
		return app.Spec.Sources
	}
	if app.Spec.Source != nil {
		return []v1alpha1.ApplicationSource{*app.Spec.Source}
	}
	return nil
}

func (r *root) appHistory() *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "history NAME", Short: "List the syncs of an Application, oldest first", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			app, err := r.getApp(c.Context(), cl, args[0])
			if err != nil {
				return err
			}
			t := table{header: []string{"ID", "DATE", "REVISION", "BY"}}
			for _, h := range app.Status.History {
				by := h.InitiatedBy.Username
				if h.InitiatedBy.Automated {
					by = "automated"
				}
				rev := h.Revision
				if rev == "" {
					rev = strings.Join(h.Revisions, ",")
				}
				t.rows = append(t.rows, []string{strconv.FormatInt(h.ID, 10), h.DeployedAt.UTC().Format("2006-01-02 15:04:05"), short(rev), orDash(by)})
			}
			return r.print(struct {
				History []v1alpha1.RevisionHistory `json:"history"`
			}{app.Status.History}, t)
		},
	})
}

func (r *root) appRefresh() *cobra.Command {
	var hard bool
	c := &cobra.Command{
		Use: "refresh NAME...", Short: "Ask Git now and compare again", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			kind := "normal"
			if hard {
				kind = "hard"
			}
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"argocd.argoproj.io/refresh":%q}}}`, kind)
			for _, name := range args {
				if err := r.patchApp(c.Context(), cl, name, []byte(patch)); err != nil {
					return err
				}
				fmt.Fprintf(r.out, "application %s: refresh requested\n", name)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&hard, "hard", false, "also forget what is remembered of its rendering")
	return c
}

func (r *root) patchApp(ctx context.Context, cl client.Client, name string, patch []byte) error {
	app := &v1alpha1.Application{}
	app.Namespace, app.Name = r.namespace, name
	if err := cl.Patch(ctx, app, client.RawPatch("application/merge-patch+json", patch), fieldOwner); err != nil {
		return fmt.Errorf("patch application %q: %w", name, err)
	}
	return nil
}
