package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// asHook prepares a hook: a name, the name of its run, and the finalizer that keeps
// it until how it ended is recorded, whatever clock of its own removes it (B30).
func (r *run) asHook(s rutter.Step, obj *unstructured.Unstructured) plan.HookRun {
	this := r.HookRun(s)
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(plan.HookName(obj.GetGenerateName(), r.Revision, s.Phase, this.Started))
		obj.SetGenerateName("")
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[rutter.AnnotationHookRun] = this.String()
	obj.SetAnnotations(annotations)
	if f := obj.GetFinalizers(); !slices.Contains(f, rutter.FinalizerHook) {
		obj.SetFinalizers(append(f, rutter.FinalizerHook))
	}
	return this
}

// earlierHook looks for an object by the hook's name. One of this very run, from
// before a restart, is gone on with; any other is removed and waited for, so that
// each sync sees its own run (reference 2.2, scenario B32).
func (r *run) earlierHook(ctx context.Context, s rutter.Step, gvk rutter.GVK, obj *unstructured.Unstructured, this plan.HookRun) (goesOn *unstructured.Unstructured, err error) {
	ref := rutter.RefOf(obj)
	old, err := r.Cluster.Get(ctx, gvk, ref.Namespace, ref.Name)
	if rutter.CodeOf(err) == rutter.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for an earlier run of the hook: %w", err)
	}
	if live, ok := plan.ParseHookRun(old.GetAnnotations()[rutter.AnnotationHookRun]); ok && this.Continues(live, ended(r.Live.Health(old)) == rutter.OperationSucceeded) {
		return old, nil
	}
	opts := rutter.DeleteOptions{UID: string(old.GetUID()), Propagation: "background"}
	if err := r.Cluster.Delete(ctx, gvk, ref.Namespace, ref.Name, opts); err != nil {
		return nil, fmt.Errorf("remove the earlier run of the hook: %w", err)
	}
	if err := r.Cluster.Unfinalize(ctx, gvk, ref.Namespace, ref.Name, string(old.GetUID()), rutter.FinalizerHook); err != nil {
		return nil, fmt.Errorf("let go of the earlier run of the hook: %w", err)
	}
	r.Live.Removed(withName(s, old))
	return nil, r.gone(ctx, gvk, old)
}

// gone waits for the end of an object that may not carry our mark, as a hook of
// another tool: the watches do not show it.
func (r *run) gone(ctx context.Context, gvk rutter.GVK, old *unstructured.Unstructured) error {
	if old.GetLabels()[rutter.LabelUnit] == r.Mark {
		if err := r.Live.AwaitGone(ctx, []rutter.Ref{rutter.RefOf(old)}); err != nil {
			return err
		}
	}
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

// ended is how a hook with that health has ended; Running when it has not
// (reference 2.2).
func ended(h rutter.Health) rutter.OperationPhase {
	switch h.Status {
	case rutter.Healthy, "":
		return rutter.OperationSucceeded
	case rutter.Progressing, rutter.Suspended:
		return rutter.OperationRunning
	default:
		return rutter.OperationFailed
	}
}

// settleHooks writes how hooks ended into their results.
func (r *run) settleHooks(want []Awaited, healths []rutter.Health) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.results {
		res := &r.results[i]
		if !res.Hook || res.HookPhase != string(rutter.OperationRunning) {
			continue
		}
		for j, w := range want {
			if w.Hook && j < len(healths) && w.UID == r.sent[stepKey{res.Index, res.Phase}].UID {
				res.HookPhase = string(ended(healths[j]))
				if m := healths[j].Message; m != "" {
					res.Message = m
				}
			}
		}
	}
}

// awaitHooks waits, after something of their group failed, until its hooks have
// ended as well: what follows a failure must not run beside them.
func (r *run) awaitHooks(ctx context.Context, g rutter.Group) {
	var hooks []Awaited
	for _, w := range r.awaited(g) {
		if w.Hook {
			hooks = append(hooks, w)
		}
	}
	if len(hooks) == 0 || r.stopped() {
		return
	}
	r.progress(fmt.Sprintf("has failed; waiting for the end of %d hooks of %s wave %d", len(hooks), g.Phase, g.Wave))
	for i := range hooks {
		healths, _ := r.Live.Await(ctx, hooks[i:i+1]) // how each ended is in its health
		r.settleHooks(hooks[i:i+1], healths)
	}
}
