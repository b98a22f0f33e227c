package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

type syncFlags struct {
	revision  string
	prune     bool
	dryRun    bool
	force     bool
	async     bool
	resources []string
	timeout   time.Duration
}

func (r *root) appSync() *cobra.Command {
	f := &syncFlags{}
	c := &cobra.Command{
		Use: "sync NAME...", Short: "Make Applications equal to their sources now", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			for _, name := range args {
				if err := r.syncOne(c.Context(), cl, name, f); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&f.revision, "revision", "", "sync to this revision instead of the target revision")
	c.Flags().BoolVar(&f.prune, "prune", false, "delete what is no longer declared")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "ask the cluster only")
	c.Flags().BoolVar(&f.force, "force", false, "delete and create again what cannot be changed in place")
	c.Flags().BoolVar(&f.async, "async", false, "do not wait for the end")
	c.Flags().StringArrayVar(&f.resources, "resource", nil, "sync only this resource: GROUP:KIND:[NAMESPACE/]NAME, repeatable")
	c.Flags().DurationVar(&f.timeout, "timeout", 0, "give up waiting after this time; 0 waits without end")
	return c
}

func (r *root) syncOne(ctx context.Context, cl client.WithWatch, name string, f *syncFlags) error {
	app, err := r.getApp(ctx, cl, name)
	if err != nil {
		return err
	}
	if app.Operation != nil {
		return rutter.Errorf(rutter.CodeConflict, "application %q: another operation is already in progress", name)
	}
	sp := app.Spec.SyncPolicy
	if f.revision != "" && !f.dryRun && sp != nil && sp.Automated != nil && (sp.Automated.Enabled == nil || *sp.Automated.Enabled) {
		return rutter.Errorf(rutter.CodeInvalid, "application %q: cannot sync to %q while auto-sync is on: change spec.source.targetRevision in Git", name, f.revision)
	}
	op := v1alpha1.Operation{InitiatedBy: v1alpha1.OperationInitiator{Username: username()},
		Sync: &v1alpha1.SyncOperation{Revision: f.revision, Prune: f.prune, DryRun: f.dryRun}}
	if sp != nil {
		op.Sync.SyncOptions = sp.SyncOptions
	}
	if f.force {
		op.Sync.SyncStrategy = &v1alpha1.SyncStrategy{Apply: &v1alpha1.SyncStrategyApply{Force: true}}
	}
	for _, s := range f.resources {
		res, err := parseResource(s)
		if err != nil {
			return err
		}
		op.Sync.Resources = append(op.Sync.Resources, res)
	}
	patch, err := json.Marshal(map[string]any{"operation": op})
	if err != nil {
		return fmt.Errorf("encode the operation: %w", err)
	}
	if err := r.patchApp(ctx, cl, name, patch); err != nil {
		return err
	}
	if f.async {
		fmt.Fprintf(r.out, "application %s: sync requested\n", name)
		return nil
	}
	return r.awaitOperation(ctx, cl, name, f.timeout)
}

// awaitOperation prints the result of the operation that was asked for. The
// controller writes the result first and takes the request away after that.
func (r *root) awaitOperation(ctx context.Context, cl client.WithWatch, name string, timeout time.Duration) error {
	app, err := r.awaitApp(ctx, cl, name, timeout, func(app *v1alpha1.Application) bool {
		return app.Operation == nil && app.Status.OperationState != nil
	})
	if err != nil {
		return err
	}
	op := app.Status.OperationState
	t := table{header: []string{"GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "MESSAGE"}}
	if op.SyncResult != nil {
		for _, res := range op.SyncResult.Resources {
			t.rows = append(t.rows, []string{orDash(res.Group), res.Kind, orDash(res.Namespace), res.Name, res.Status, res.Message})
		}
	}
	if err := r.table(t); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "\napplication %s: %s: %s\n", name, op.Phase, op.Message)
	if op.Phase != string(rutter.OperationSucceeded) {
		return exit{ExitDifferent}
	}
	return nil
}

// parseResource reads GROUP:KIND:[NAMESPACE/]NAME.
func parseResource(s string) (v1alpha1.SyncOperationResource, error) {
	parts := strings.SplitN(s, ":", 3)
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return v1alpha1.SyncOperationResource{}, rutter.Errorf(rutter.CodeInvalid, "--resource %q: write GROUP:KIND:[NAMESPACE/]NAME, such as apps:Deployment:web or :Service:shop/web", s)
	}
	out := v1alpha1.SyncOperationResource{Group: parts[0], Kind: parts[1], Name: parts[2]}
	if ns, name, ok := strings.Cut(parts[2], "/"); ok {
		out.Namespace, out.Name = ns, name
	}
	return out, nil
}

func username() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "cli"
}

func (r *root) appWait() *cobra.Command {
	var sync, health, operation bool
	var timeout time.Duration
	c := &cobra.Command{
		Use: "wait NAME...", Short: "Wait until Applications are Synced, Healthy and idle", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			all := !sync && !health && !operation
			for _, name := range args {
				app, err := r.awaitApp(c.Context(), cl, name, timeout, func(app *v1alpha1.Application) bool {
					op := app.Status.OperationState
					return ((!all && !sync) || app.Status.Sync.Status == string(rutter.Synced)) &&
						((!all && !health) || app.Status.Health.Status == string(rutter.Healthy)) &&
						((!all && !operation) || app.Operation == nil && (op == nil || rutter.OperationPhase(op.Phase).Completed()))
				})
				if err != nil {
					return err
				}
				fmt.Fprintf(r.out, "application %s: %s, %s\n", name, app.Status.Sync.Status, app.Status.Health.Status)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&sync, "sync", false, "wait for Synced")
	c.Flags().BoolVar(&health, "health", false, "wait for Healthy")
	c.Flags().BoolVar(&operation, "operation", false, "wait for the end of a running operation")
	c.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time, with exit code 1; 0 waits without end")
	return c
}

// awaitApp watches one Application until ok, and says on a time-out where it stands.
func (r *root) awaitApp(ctx context.Context, cl client.WithWatch, name string, timeout time.Duration, ok func(*v1alpha1.Application) bool) (*v1alpha1.Application, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	last, err := r.getApp(ctx, cl, name)
	if err != nil {
		return nil, err
	}
	for !ok(last) {
		w, err := cl.Watch(ctx, &v1alpha1.ApplicationList{}, client.InNamespace(r.namespace),
			client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)})
		if err != nil {
			return nil, fmt.Errorf("watch application %q: %w", name, err)
		}
		for ev := range w.ResultChan() {
			if app, isApp := ev.Object.(*v1alpha1.Application); isApp {
				if last = app; ok(last) {
					break
				}
			}
		}
		w.Stop()
		if ctx.Err() != nil && !ok(last) {
			row := RowOf(last, nil)
			why := row.Message
			if op := last.Status.OperationState; why == "" && op != nil {
				why = op.Phase + " " + op.Message
			}
			fmt.Fprintf(r.err, "rutter: gave up waiting: application %s is %s and %s: %s\n", name, row.Sync, row.Health, orDash(why))
			return nil, exit{ExitDifferent}
		}
	}
	return last, nil
}
