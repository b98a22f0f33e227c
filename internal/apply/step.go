package apply

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// step carries out one step and says what became of it.
func (r *run) step(ctx context.Context, s rutter.Step) rutter.StepResult {
	if s.Action == rutter.ActionPrune {
		return r.prune(ctx, s)
	}
	res := rutter.StepResult{Step: s}
	obj, err := r.Object(s.Index)
	if err != nil {
		return failed(res, fmt.Errorf("load the desired object: %w", err))
	}
	gvk := gvkOf(obj)
	res.Version = gvk.Version
	if s.Hook && !r.DryRun {
		if err := r.clearHook(ctx, s, gvk, obj); err != nil {
			return failed(res, err)
		}
	}
	opts := rutter.ApplyOptions{DryRun: r.DryRun}
	if r.Takeover != nil && !s.Hook {
		opts.Takeover = r.Takeover(s.Index)
	}
	live, err := r.Cluster.Apply(ctx, obj, opts)
	if err != nil && r.Force && !r.DryRun && immutable(err) {
		live, err = r.recreate(ctx, s, gvk, obj)
	}
	if err != nil {
		return failed(res, err)
	}
	res.Status, res.Message = StatusSynced, "serverside-applied"
	if r.DryRun {
		res.Message = "serverside-applied (server dry run)"
		return res
	}
	r.Live.Applied(s, live)
	if s.Hook {
		res.HookPhase = string(rutter.OperationRunning)
		r.mu.Lock()
		r.hooks = append(r.hooks, ranHook{step: withName(s, live), gvk: gvk, uid: string(live.GetUID())})
		r.mu.Unlock()
	}
	return res
}

func (r *run) prune(ctx context.Context, s rutter.Step) rutter.StepResult {
	res := rutter.StepResult{Step: s}
	if r.DryRun {
		res.Status, res.Message = StatusPruned, "pruned (dry run)"
		return res
	}
	gvk := rutter.GVK{Group: s.Ref.Group, Version: s.Version, Kind: s.Ref.Kind}
	live, err := r.Cluster.Get(ctx, gvk, s.Ref.Namespace, s.Ref.Name)
	if rutter.CodeOf(err) == rutter.CodeNotFound {
		res.Status, res.Message = StatusPruned, "is gone already"
		return res
	}
	if err == nil && live.GetLabels()[rutter.LabelUnit] != r.Mark {
		res.Status, res.Message = StatusPruneSkipped, "ignored (another application has taken it over)"
		return res
	}
	if r.Spare != nil {
		if why := r.Spare(ctx, s.Ref); why != "" {
			res.Status, res.Message = StatusPruneSkipped, "ignored ("+why+")"
			return res
		}
	}
	err = r.Cluster.Delete(ctx, gvk, s.Ref.Namespace, s.Ref.Name, rutter.DeleteOptions{UID: s.UID, Propagation: r.Propagation})
	if err != nil {
		return failed(res, err)
	}
	r.Live.Removed(s)
	res.Status, res.Message = StatusPruned, "pruned"
	return res
}

// clearHook removes an earlier run of the hook and waits until it is gone, so
// that each sync sees its own run (reference 2.2, scenario B32).
func (r *run) clearHook(ctx context.Context, s rutter.Step, gvk rutter.GVK, obj *unstructured.Unstructured) error {
	if obj.GetName() == "" {
		return nil // generateName: each run has a name of its own
	}
	ref := rutter.RefOf(obj)
	old, err := r.Cluster.Get(ctx, gvk, ref.Namespace, ref.Name)
	if rutter.CodeOf(err) == rutter.CodeNotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for an earlier run of the hook: %w", err)
	}
	opts := rutter.DeleteOptions{UID: string(old.GetUID()), Propagation: "background"}
	if err := r.Cluster.Delete(ctx, gvk, ref.Namespace, ref.Name, opts); err != nil {
		return fmt.Errorf("remove the earlier run of the hook: %w", err)
	}
	r.Live.Removed(withName(s, old))
	if err := r.Live.AwaitGone(ctx, []rutter.Ref{ref}); err != nil {
		return err
	}
	return r.gone(ctx, gvk, old)
}

// gone waits for the end of an object that may not carry our mark, as a hook of
// another tool: the watches do not show it.
func (r *run) gone(ctx context.Context, gvk rutter.GVK, old *unstructured.Unstructured) error {
	for {
		live, err := r.Cluster.Get(ctx, gvk, old.GetNamespace(), old.GetName())
		if rutter.CodeOf(err) == rutter.CodeNotFound || err == nil && live.GetUID() != old.GetUID() {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("stopped while an earlier run of the hook ends: %w", ctx.Err())
		}
	}
}

// immutable reports whether the server refused a change that only a new object
// can have.
func immutable(err error) bool {
	return strings.Contains(err.Error(), "immutable") || strings.Contains(err.Error(), "updates to")
}

func (r *run) recreate(ctx context.Context, s rutter.Step, gvk rutter.GVK, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	old, err := r.Cluster.Get(ctx, gvk, s.Ref.Namespace, s.Ref.Name)
	if err != nil {
		return nil, fmt.Errorf("force: read what is to be created again: %w", err)
	}
	if err := r.Cluster.Delete(ctx, gvk, s.Ref.Namespace, s.Ref.Name, rutter.DeleteOptions{UID: string(old.GetUID()), Propagation: "foreground"}); err != nil {
		return nil, fmt.Errorf("force: delete before creating again: %w", err)
	}
	r.Live.Removed(s)
	if err := r.Live.AwaitGone(ctx, []rutter.Ref{s.Ref}); err != nil {
		return nil, fmt.Errorf("force: wait for the deletion: %w", err)
	}
	live, err := r.Cluster.Apply(ctx, obj, rutter.ApplyOptions{})
	if err != nil {
		return nil, fmt.Errorf("force: create again: %w", err)
	}
	return live, nil
}

// nameOf is the ref to wait for: for a hook with a generated name, the name it got.
func (r *run) nameOf(s rutter.Step) rutter.Ref {
	if !s.Hook {
		return s.Ref
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.hooks {
		if h.step.Index == s.Index && h.step.Phase == s.Phase {
			return h.step.Ref
		}
	}
	return s.Ref
}

func withName(s rutter.Step, obj *unstructured.Unstructured) rutter.Step {
	s.Ref = rutter.RefOf(obj)
	return s
}

func gvkOf(obj *unstructured.Unstructured) rutter.GVK {
	gvk := obj.GroupVersionKind()
	return rutter.GVK{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}

func failed(res rutter.StepResult, err error) rutter.StepResult {
	res.Status, res.Message = StatusFailed, err.Error()
	return res
}
