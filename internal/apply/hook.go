package apply

import (
	"context"
	"slices"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// settleHooks writes how the hooks of a group ended into their results.
func (r *run) settleHooks(g rutter.Group, err error) {
	phase := string(rutter.OperationSucceeded)
	if err != nil {
		phase = string(rutter.OperationFailed)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.results {
		res := &r.results[i]
		if res.Hook && res.Phase == g.Phase && res.Wave == g.Wave && res.HookPhase == string(rutter.OperationRunning) {
			res.HookPhase = phase
		}
	}
}

// cleanHooks deletes hooks whose policy asks for it: HookSucceeded only when
// the whole sync succeeded, HookFailed whenever it failed (reference 2.2). A
// failure to delete does not change the outcome; the next sync clears the hook.
func (r *run) cleanHooks(ctx context.Context, succeeded bool) {
	want := plan.HookFailed
	if succeeded {
		want = plan.HookSucceeded
	}
	for _, h := range r.hooks {
		if !slices.Contains(r.HookPolicies(h.step.Index), want) {
			continue
		}
		opts := rutter.DeleteOptions{UID: h.uid, Propagation: "background"}
		if err := r.Cluster.Delete(ctx, h.gvk, h.step.Ref.Namespace, h.step.Ref.Name, opts); err == nil {
			r.Live.Removed(h.step)
		}
	}
}
