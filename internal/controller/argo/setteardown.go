package argo

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// detachFinalizer is on sets of which some Applications outlive them, or would
// delete what is to stay, so that those are marked, and the others go in order,
// before the garbage collector comes; their second owner (setkeeper.go) keeps them
// from it in any case. It is there only while it is needed, so that sets can be
// deleted when no controller runs.
const detachFinalizer = "rutter.dev/detach"

// AnnotationDetached says of which set an Application was, that outlived it.
const AnnotationDetached = "rutter.dev/detached-from"

// guard puts the finalizer on a set, or takes it off. It is done before anything
// is made that the garbage collector must not delete.
func (s *applicationSets) guard(ctx context.Context, set *v1alpha1.ApplicationSet, o *outcome) error {
	needs := len(o.decision.Holds) > 0 || o.decision.Freeing || !generate.Deletes(set, generate.Policy{Applications: s.opts.Sets.Policy, AllowOverride: s.opts.Sets.AllowOverride})
	if needs == controllerutil.ContainsFinalizer(set, detachFinalizer) || s.opts.Sets.DryRun {
		return nil
	}
	next := set.DeepCopy()
	if needs {
		controllerutil.AddFinalizer(next, detachFinalizer)
	} else {
		controllerutil.RemoveFinalizer(next, detachFinalizer)
	}
	if err := s.client.Patch(ctx, next, client.MergeFromWithOptions(set, client.MergeFromWithOptimisticLock{}), setOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("set the finalizer of ApplicationSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	next.DeepCopyInto(set)
	return nil
}

// teardown is for a set that is being deleted and has a finalizer; without one
// the garbage collector of the control plane deletes its Applications.
func (s *applicationSets) teardown(ctx context.Context, set *v1alpha1.ApplicationSet) (reconcile.Result, error) {
	ours := slices.DeleteFunc(slices.Clone(set.Finalizers), func(f string) bool { return f != finalizer && f != detachFinalizer })
	if len(ours) == 0 || s.opts.Sets.DryRun {
		return reconcile.Result{}, nil
	}
	live, err := s.children(ctx, set)
	if err != nil {
		return reconcile.Result{}, err
	}
	policy, err := s.policy(ctx, set)
	if err != nil {
		return reconcile.Result{}, err
	}
	policy.Elsewhere = s.elsewhere(set, live)
	o := outcome{decision: generate.Decision{Changes: generate.Teardown(set, s.staying(set, live), policy)}}
	if err := s.handOver(ctx, set, &o); err != nil {
		return reconcile.Result{}, err
	}
	detached := 0
	for i := range o.decision.Changes {
		if c := &o.decision.Changes[i]; c.Verb == generate.Update {
			c.Application = withAnnotation(c.Application, AnnotationDetached, set.Name)
			detached++
		}
	}
	s.writeAll(ctx, set, &o, o.decision.Changes, func(generate.Change) bool { return true })
	if len(o.failures) > 0 {
		return reconcile.Result{}, o.failures[0].err
	}
	if o.requeue > 0 { // something is handed over: the garbage collector must not come before
		return reconcile.Result{RequeueAfter: o.requeue}, nil
	}
	freed := set.DeepCopy()
	for _, f := range ours {
		controllerutil.RemoveFinalizer(freed, f)
	}
	if err := s.client.Patch(ctx, freed, client.MergeFrom(set), FieldOwner); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("remove the finalizer of ApplicationSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	s.opts.Logger.Info("applicationset deleted", "set", set.Namespace+"/"+set.Name, "applications", len(o.decision.Changes), "detached", detached)
	return reconcile.Result{}, nil
}

// withAnnotation is an Application with one annotation more; what else it has
// is shared.
func withAnnotation(app *v1alpha1.Application, key, value string) *v1alpha1.Application {
	out := *app
	out.Annotations = make(map[string]string, len(app.Annotations)+1)
	maps.Copy(out.Annotations, app.Annotations)
	out.Annotations[key] = value
	return &out
}
