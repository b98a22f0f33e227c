package argo

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

const finalizer = argo.FinalizerResources

// nextStage lets a deletion go on when a stage of it was written down.
var nextStage = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectNew.GetDeletionTimestamp() != nil && !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
	},
}

// delete has the engine do what the finalizers ask for; without one the unit
// is forgotten and its objects stay (reference 2.9), as they do where another set
// is about to make the Application again.
func (a *applications) delete(ctx context.Context, app *v1alpha1.Application, unit rutter.Unit, conditions []rutter.Condition) (reconcile.Result, error) {
	if !argo.Deletes(app) {
		a.opts.Engine.Remove(unit.ID)
		return reconcile.Result{}, nil
	}
	d, problems := argo.Deletion(app, a.opts.DeletionDeadline)
	d.WaitForCluster, d.Approved = a.clusterGoneWaits(), unit.Approved
	if !d.Orphan {
		switch keep, wait, err := a.sets.fate(ctx, app); {
		case err != nil:
			return reconcile.Result{}, err
		case keep:
			err := a.release(ctx, app, rutter.DeletionStages(), "application deleted, its resources stay: its set preserves them, or another set has them")
			if apierrors.IsConflict(err) {
				return reconcile.Result{RequeueAfter: 100 * time.Millisecond}, nil // the cache was behind
			}
			return reconcile.Result{}, err
		case wait > 0:
			return reconcile.Result{RequeueAfter: wait}, nil
		}
	}
	a.mu.Lock()
	a.conditions[unit.ID] = append(slices.Clip(conditions), problems...)
	a.mu.Unlock()
	a.opts.Engine.Delete(unit, d)
	return reconcile.Result{}, nil
}

// answerDeletion takes off the finalizers of what is done of a deletion. Of an
// Application that is not being deleted it keeps those of its hooks right.
func (a *applications) answerDeletion(ctx context.Context, app *v1alpha1.Application, report rutter.Report) error {
	switch d := report.Deletion; {
	case app.DeletionTimestamp == nil:
		return a.keepHookFinalizers(ctx, app, report.DeleteHooks)
	case d == nil || len(d.Done) == 0 || d.ID != string(app.UID):
		return nil
	case d.ClusterGone:
		if err := a.leaveBehind(ctx, app); err != nil {
			return err
		}
		return a.release(ctx, app, d.Done, "application released: its cluster is gone, and its resources are left there")
	default:
		return a.release(ctx, app, d.Done, "stages of the deletion of an application are done")
	}
}

// keepHookFinalizers sees to it that the hooks of a deletion are waited for.
func (a *applications) keepHookFinalizers(ctx context.Context, app *v1alpha1.Application, hooks *rutter.DeleteHooks) error {
	if hooks == nil || !a.opts.manages(app.Namespace) {
		return nil
	}
	next := app.DeepCopy()
	if next.Finalizers = argo.WithHooks(app.Finalizers, *hooks); slices.Equal(next.Finalizers, app.Finalizers) {
		return nil
	}
	patch := client.MergeFromWithOptions(app, client.MergeFromWithOptimisticLock{})
	if err := a.client.Patch(ctx, next, patch, FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("set the finalizers for the hooks of Application %s/%s: %w", app.Namespace, app.Name, err)
	}
	return nil
}

// withoutDeletion is a copy of app whose deletion leaves everything as it is.
func withoutDeletion(app *v1alpha1.Application) *v1alpha1.Application {
	freed := app.DeepCopy()
	freed.Finalizers = argo.Without(freed.Finalizers, rutter.DeletionStages())
	return freed
}

// release removes the finalizers of stages, and logs why.
func (a *applications) release(ctx context.Context, app *v1alpha1.Application, stages []rutter.DeletionStage, event string) error {
	freed := app.DeepCopy()
	if freed.Finalizers = argo.Without(app.Finalizers, stages); len(freed.Finalizers) == len(app.Finalizers) {
		return nil
	}
	patch := client.MergeFromWithOptions(app, client.MergeFromWithOptimisticLock{})
	if err := a.client.Patch(ctx, freed, patch, FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizers of Application %s/%s: %w", app.Namespace, app.Name, err)
	}
	a.opts.Logger.Info(event, "application", app.Namespace+"/"+app.Name, "stages", stages)
	return nil
}
