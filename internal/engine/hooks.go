package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// keptHook is the run that a hook belongs to, nil for what is none, or has been let
// go already.
func keptHook(obj *unstructured.Unstructured) *plan.HookRun {
	run, ok := plan.ParseHookRun(obj.GetAnnotations()[rutter.AnnotationHookRun])
	if !ok || !slices.Contains(obj.GetFinalizers(), rutter.FinalizerHook) {
		return nil
	}
	return &run
}

// hookRun names the run of a hook in an operation.
func (o *operation) hookRun(d *desired, s rutter.Step) plan.HookRun {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%v\n%s", d.objects[s.Index].Hash, d.revisions, s.Phase))
	return plan.HookRun{Started: o.report.StartedAt, Attempt: o.report.RetryCount, Of: hex.EncodeToString(sum[:8])}
}

// vanished notes how an object was when it went, for a sync that waits for it; u.mu
// is held.
func (u *state) vanished(uid string, h rutter.Health) {
	if u.op == nil {
		return
	}
	if u.op.vanished == nil {
		u.op.vanished = map[string]rutter.Health{}
	}
	u.op.vanished[uid] = h
}

// lastHealth is how an object was in the last state that the server tells of it.
func (e *Engine) lastHealth(old *entry, obj *unstructured.Unstructured) rutter.Health {
	if !old.meta.IsHook {
		return old.Health
	}
	last := obj.DeepCopy()
	last.SetDeletionTimestamp(nil)
	return e.assess(last)
}

// checked reports whether the server has said already that it takes the object as
// it is now: it was sent before, or the difference was seen in a dry run.
func (e *Engine) checked(u *state, req rutter.SyncRequest, d *desired, i int) bool {
	if req.SelfHeal {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	x := u.live[d.objects[i].Ref]
	return x != nil && x.Exists && !d.objects[i].Meta.IsHook && x.DesiredHash == d.objects[i].Hash && !x.suspect && len(x.Diffs) > 0
}

// unserved reports whether the cluster does not serve the kind of an object.
func (e *Engine) unserved(ctx context.Context, c rutter.Cluster, d *desired, i int) bool {
	_, err := c.Mapping(ctx, d.objects[i].gvk)
	return rutter.CodeOf(err) == rutter.CodeNotFound
}

// keptRun is a hook to let go of.
type keptRun struct {
	ref    rutter.Ref
	gvk    rutter.GVK
	uid    string
	remove bool
}

// tidyHooks lets go of the hooks of operations that are over, and deletes those whose
// policy says so: HookSucceeded when the whole sync succeeded, HookFailed whenever it
// failed (reference 2.2), and those that still run after it was stopped. It comes once
// the end is recorded: without the hooks a controller that starts then could not
// know that they ran. A failure is tried again.
func (e *Engine) tidyHooks(ctx context.Context, u *state, c rutter.Cluster) {
	u.mu.Lock()
	kept := u.hooksToTidy()
	u.mu.Unlock()
	for _, h := range kept {
		var err error
		if h.remove {
			err = c.Delete(ctx, h.gvk, h.ref.Namespace, h.ref.Name, rutter.DeleteOptions{UID: h.uid, Propagation: "background"})
		}
		if err == nil {
			err = c.Unfinalize(ctx, h.gvk, h.ref.Namespace, h.ref.Name, h.uid, rutter.FinalizerHook)
		}
		if err != nil {
			e.opts.Logger.Warn("cannot let go of a hook", "unit", u.id.String(), "hook", h.ref.String(), "err", err)
			e.queue.addAfter(u.id, retryRender(2))
		}
	}
}

func (u *state) hooksToTidy() []keptRun {
	last := u.last
	switch {
	case u.op != nil, last != nil && !u.recorded.Equal(last.StartedAt):
		return nil
	case last == nil && u.mayResume():
		return nil
	case last == nil:
		last = u.unit.Last
	}
	var kept []keptRun
	for ref, x := range u.live {
		if x.hook == nil {
			continue
		}
		policy := plan.HookFailed
		if last != nil && last.Phase == rutter.OperationSucceeded {
			policy = plan.HookSucceeded
		}
		running := x.Health.Status == rutter.Progressing || x.Health.Status == rutter.Suspended
		kept = append(kept, keptRun{ref, x.gvk, x.UID, running || last != nil && slices.Contains(x.meta.Delete, policy)})
	}
	return kept
}

// dropHooks lets go of all hooks of a unit that is being deleted, or is no more.
func (e *Engine) dropHooks(ctx context.Context, u *state, c rutter.Cluster) error {
	u.mu.Lock()
	var kept []keptRun
	for ref, x := range u.live {
		if x.hook != nil {
			kept = append(kept, keptRun{ref: ref, gvk: x.gvk, uid: x.UID})
		}
	}
	u.mu.Unlock()
	for _, h := range kept {
		if err := c.Unfinalize(ctx, h.gvk, h.ref.Namespace, h.ref.Name, h.uid, rutter.FinalizerHook); err != nil {
			return fmt.Errorf("let go of hook %s: %w", h.ref, err)
		}
	}
	return nil
}
