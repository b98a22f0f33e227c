package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os/user"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

type syncFlags struct {
	revision  string
	revisions []string
	prune     bool
	dryRun    bool
	force     bool
	replace   bool
	server    bool
	changed   bool
	async     bool
	strategy  string
	resources []string
	timeout   seconds
	selector  string
	retry     v1alpha1.RetryStrategy
	backoff   v1alpha1.Backoff
	factor    int64
}

func (r *root) appSync() *cobra.Command {
	f := &syncFlags{}
	c := &cobra.Command{
		Use: "sync NAME...", Short: "Make Applications equal to their sources now",
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			if args, err = r.namesOf(c.Context(), cl, args, f.selector); err != nil {
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
	f.add(c)
	return c
}

func (f *syncFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.revision, "revision", "", "sync to this revision instead of the target revision")
	flags.StringArrayVar(&f.revisions, "revisions", nil, "the same for each of several sources, in their order, repeatable")
	flags.BoolVar(&f.prune, "prune", false, "delete what is no longer declared")
	flags.BoolVar(&f.dryRun, "dry-run", false, "ask the cluster only")
	flags.BoolVar(&f.force, "force", false, "delete and create again what cannot be changed in place")
	flags.BoolVar(&f.replace, "replace", false, "replace whole objects, so that nothing stays of what is not declared")
	flags.BoolVar(&f.server, "server-side", false, "server-side apply, as every sync is")
	flags.BoolVar(&f.changed, "apply-out-of-sync-only", false, "leave alone what is in sync, as every sync does")
	flags.BoolVar(&f.async, "async", false, "do not wait for the end")
	flags.StringVar(&f.strategy, "strategy", "hook", "hook, or apply for a sync without hooks")
	flags.StringArrayVar(&f.resources, "resource", nil, "sync only these resources: GROUP:KIND:[NAMESPACE/]NAME with * as a wildcard, !GROUP:KIND:NAME for all but these; repeatable")
	flags.VarP(&f.timeout, "timeout", "", "give up waiting after this time; 0 waits without end")
	flags.StringVarP(&f.selector, "selector", "l", "", "sync the Applications with these labels")
	flags.Int64Var(&f.retry.Limit, "retry-limit", 0, "how often a failed sync is tried again; negative without end")
	flags.BoolVar(&f.retry.Refresh, "retry-refresh", false, "try again with the newest revision")
	flags.StringVar(&f.backoff.Duration, "retry-backoff-duration", "5s", "pause before the first retry")
	flags.StringVar(&f.backoff.MaxDuration, "retry-backoff-max-duration", "3m", "longest pause between retries")
	flags.Int64Var(&f.factor, "retry-backoff-factor", 2, "how much longer each pause is")
}

// namesOf are the names that were given, or those of the Applications with labels.
func (r *root) namesOf(ctx context.Context, cl client.Client, args []string, selector string) ([]string, error) {
	if selector == "" {
		if len(args) == 0 {
			return nil, rutter.Errorf(rutter.CodeInvalid, "name an Application, or choose some by --selector")
		}
		return args, nil
	}
	s, err := k8slabels.Parse(selector)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "--selector %q: %w", selector, err)
	}
	var list v1alpha1.ApplicationList
	if err := cl.List(ctx, &list, client.InNamespace(r.namespace), client.MatchingLabelsSelector{Selector: s}); err != nil {
		return nil, fmt.Errorf("list Applications: %w", err)
	}
	for i := range list.Items {
		args = append(args, list.Items[i].Name)
	}
	if len(args) == 0 {
		return nil, rutter.Errorf(rutter.CodeNotFound, "no Application has the labels %s", selector)
	}
	return args, nil
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
	op, err := f.operation(app)
	if err != nil {
		return err
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
	return r.awaitOperation(ctx, cl, name, time.Duration(f.timeout))
}

// operation is what the flags ask for.
func (f *syncFlags) operation(app *v1alpha1.Application) (v1alpha1.Operation, error) {
	op := v1alpha1.Operation{InitiatedBy: v1alpha1.OperationInitiator{Username: username()}, Retry: f.retry,
		Sync: &v1alpha1.SyncOperation{Revision: f.revision, Revisions: f.revisions, Prune: f.prune, DryRun: f.dryRun}}
	if f.retry.Limit != 0 || f.retry.Refresh {
		op.Retry.Backoff = &v1alpha1.Backoff{Duration: f.backoff.Duration, MaxDuration: f.backoff.MaxDuration, Factor: &f.factor}
	}
	if sp := app.Spec.SyncPolicy; sp != nil {
		op.Sync.SyncOptions = slices.Clone(sp.SyncOptions)
	}
	for option, asked := range map[string]bool{"Replace=true": f.replace, "ServerSideApply=true": f.server, "ApplyOutOfSyncOnly=true": f.changed} {
		if asked && !slices.Contains(op.Sync.SyncOptions, option) {
			op.Sync.SyncOptions = append(op.Sync.SyncOptions, option)
		}
	}
	switch f.strategy {
	case "apply":
		op.Sync.SyncStrategy = &v1alpha1.SyncStrategy{Apply: &v1alpha1.SyncStrategyApply{Force: f.force}}
	case "hook", "":
		if f.force {
			op.Sync.SyncStrategy = &v1alpha1.SyncStrategy{Hook: &v1alpha1.SyncStrategyHook{SyncStrategyApply: v1alpha1.SyncStrategyApply{Force: true}}}
		}
	default:
		return op, rutter.Errorf(rutter.CodeInvalid, "--strategy %q: use hook or apply", f.strategy)
	}
	var err error
	if len(f.resources) > 0 {
		op.Sync.Resources, err = selectResources(app, f.resources)
	}
	return op, err
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

func username() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "cli"
}

func (r *root) appWait() *cobra.Command {
	var sync, health, operation, suspended, degraded bool
	var timeout seconds
	var selector string
	c := &cobra.Command{
		Use: "wait NAME...", Short: "Wait until Applications are Synced, Healthy and idle",
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			if args, err = r.namesOf(c.Context(), cl, args, selector); err != nil {
				return err
			}
			wanted := healths(health, suspended, degraded)
			all := !sync && len(wanted) == 0 && !operation
			if all {
				wanted = healths(true, false, false)
			}
			for _, name := range args {
				app, err := r.awaitApp(c.Context(), cl, name, time.Duration(timeout), func(app *v1alpha1.Application) bool {
					op := app.Status.OperationState
					return ((!all && !sync) || app.Status.Sync.Status == string(rutter.Synced)) &&
						(len(wanted) == 0 || slices.Contains(wanted, rutter.HealthState(app.Status.Health.Status))) &&
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
	c.Flags().BoolVar(&suspended, "suspended", false, "wait for Suspended")
	c.Flags().BoolVar(&degraded, "degraded", false, "wait for Degraded")
	c.Flags().BoolVar(&operation, "operation", false, "wait for the end of a running operation")
	c.Flags().Var(&timeout, "timeout", "give up after this time, with exit code 1; 0 waits without end")
	c.Flags().StringVarP(&selector, "selector", "l", "", "wait for the Applications with these labels")
	return c
}

// healths are the states that are waited for, any of which will do.
func healths(healthy, suspended, degraded bool) []rutter.HealthState {
	var out []rutter.HealthState
	for state, asked := range map[rutter.HealthState]bool{rutter.Healthy: healthy, rutter.Suspended: suspended, rutter.Degraded: degraded} {
		if asked {
			out = append(out, state)
		}
	}
	return out
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
