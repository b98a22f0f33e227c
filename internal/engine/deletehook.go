package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// annDeletion on a hook names the deletion that it runs for. One that carries
// another name, or none, is of an earlier run and runs anew.
const annDeletion = "rutter.dev/deletion"

// deleteHooks are what d declares of hooks of a deletion.
func (d *desired) deleteHooks() *rutter.DeleteHooks {
	x := &rutter.DeleteHooks{}
	for i := range d.objects {
		x.Pre = x.Pre || d.objects[i].Meta.PreDelete
		x.Post = x.Post || d.objects[i].Meta.PostDelete
	}
	return x
}

// hooksOf are the positions of the hooks of a stage, as they are to be created:
// by wave and, within one, in the order of kinds.
func (d *desired) hooksOf(stage rutter.DeletionStage) []int {
	var all []int
	for i := range d.objects {
		if isDeleteHook(d.objects[i].Meta, stage) {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int {
		x, y := &d.objects[a], &d.objects[b]
		return cmp.Or(cmp.Compare(x.Meta.Wave, y.Meta.Wave), plan.CompareKinds(x.Ref.Kind, y.Ref.Kind))
	})
	return all
}

func isDeleteHook(m plan.Meta, stage rutter.DeletionStage) bool {
	switch stage {
	case rutter.StagePreDelete, rutter.StagePreCleanup:
		return m.PreDelete
	default:
		return m.PostDelete
	}
}

// hookNamespaces are those of the unit's own namespaces in which PostDelete hooks run.
func (u *state) hookNamespaces() map[string]bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := map[string]bool{}
	if u.desired != nil {
		for _, i := range u.desired.hooksOf(rutter.StagePostDelete) {
			all[u.desired.objects[i].Ref.Namespace] = true
		}
	}
	for ref, x := range u.live {
		if x.Exists && x.meta.PostDelete {
			all[ref.Namespace] = true
		}
	}
	for name := range all {
		if x := u.live[rutter.Ref{Kind: "Namespace", Name: name}]; x == nil || !x.Exists {
			delete(all, name)
		}
	}
	return all
}

// runDeleteHooks creates the hooks of a stage that are not there, all at once, and
// is done when none runs any more. One that fails is run anew after a pause.
func (e *Engine) runDeleteHooks(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster, del *deletion, stage rutter.DeletionStage) outcome {
	d, err := e.renewHooks(ctx, u, unit, c, del)
	if err != nil {
		return outcome{err: fmt.Errorf("which %s hooks there are is not known: %w", stage, err)}
	}
	var running []string
	out := outcome{}
	for _, i := range d.hooksOf(stage) {
		if why := d.objects[i].Refused; why != "" {
			return outcome{err: rutter.Errorf(rutter.CodeForbidden, "%s hook %s: %s", stage, d.objects[i].Ref, why)}
		}
		ref, ended, err := e.runDeleteHook(ctx, u, unit, c, del, d, i)
		switch {
		case err != nil && out.err == nil:
			out.err = fmt.Errorf("%s hook %s: %w", stage, ref, err)
		case err == nil && !ended:
			running = append(running, ref.String())
		}
	}
	switch {
	case out.err != nil:
		out.again = retryRender(del.attempts)
	case len(running) > 0:
		out.waiting, out.again = fmt.Sprintf("waits for the %s hooks %s", stage, strings.Join(running, ", ")), lookAgainIn
	default:
		out.done, del.attempts = []rutter.DeletionStage{stage}, 0
	}
	return out
}

// renewHooks is what the sources declare now: a hook that fails is mended in Git.
func (e *Engine) renewHooks(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster, del *deletion) (*desired, error) {
	u.mu.Lock()
	d := u.desired
	u.mu.Unlock()
	if d != nil && del.level == refreshNone {
		return d, nil
	}
	if unit.Problem != nil {
		return nil, unit.Problem
	}
	d, err := e.render(ctx, u, unit, c, del.level == refreshLatest, false)
	if err != nil {
		return nil, err
	}
	del.level = refreshNone
	u.mu.Lock()
	defer u.mu.Unlock()
	e.adoptDesired(u, d)
	return d, nil
}

// runDeleteHook looks after one hook, and reports whether it has ended well.
func (e *Engine) runDeleteHook(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster, del *deletion, d *desired, i int) (ref rutter.Ref, ended bool, err error) {
	want, err := e.object(unit, d, i)
	if err != nil {
		u.mu.Lock()
		e.renderAgain(u)
		u.mu.Unlock()
		return d.objects[i].Ref, false, err
	}
	nameHook(want, del.ID, i)
	ref = rutter.RefOf(want)
	gvk := d.objects[i].gvk
	live, err := c.Get(ctx, gvk, ref.Namespace, ref.Name)
	switch {
	case rutter.CodeOf(err) == rutter.CodeNotFound:
		if del.ended[ref] {
			return ref, true, nil // it went after it had ended
		}
		_, err = c.Apply(ctx, want, rutter.ApplyOptions{})
		e.stats.Applies.Add(1)
		return ref, false, err //nolint:wrapcheck // the caller names the hook
	case err != nil:
		return ref, false, err //nolint:wrapcheck // the caller names the hook
	case live.GetAnnotations()[annDeletion] != del.ID:
		return ref, false, e.removeHook(ctx, c, gvk, live)
	}
	switch h := e.assess(live); h.Status {
	case rutter.Progressing:
		return ref, false, nil
	case rutter.Degraded:
		return ref, false, e.failedHook(ctx, c, del, gvk, live, h)
	default: // it has ended, or has no health
	}
	del.ended[ref] = true
	return ref, true, nil
}

// nameHook marks a hook as of this deletion. One that leaves its name to the
// server gets the same one each time, so that a restart finds it again.
func nameHook(want *unstructured.Unstructured, deletion string, i int) {
	annotations := want.GetAnnotations()
	annotations[annDeletion] = deletion // plan.Sent has set others
	want.SetAnnotations(annotations)
	if want.GetName() == "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", deletion, i))
		want.SetName(want.GetGenerateName() + hex.EncodeToString(sum[:4]))
	}
}

// failedHook keeps a hook that has failed for a while, so that it can be looked
// into, and removes it then, so that it is run anew.
func (e *Engine) failedHook(ctx context.Context, c rutter.Cluster, del *deletion, gvk rutter.GVK, live *unstructured.Unstructured, h rutter.Health) error {
	ref, now := rutter.RefOf(live), e.now()
	since, seen := del.failed[ref]
	if !seen {
		del.failed[ref], since = now, now
		del.attempts++
	}
	if now.Sub(since) >= retryRender(del.attempts) {
		delete(del.failed, ref)
		if err := e.removeHook(ctx, c, gvk, live); err != nil {
			return err
		}
	}
	return rutter.Errorf(rutter.CodeInvalid, "it has failed, and is run again: %s", cmp.Or(h.Message, "its health is "+string(h.Status)))
}

func (e *Engine) removeHook(ctx context.Context, c rutter.Cluster, gvk rutter.GVK, live *unstructured.Unstructured) error {
	if live.GetDeletionTimestamp() != nil {
		return nil
	}
	return c.Delete(ctx, gvk, live.GetNamespace(), live.GetName(), rutter.DeleteOptions{UID: string(live.GetUID()), Propagation: "background"}) //nolint:wrapcheck // the caller names the hook
}

// cleanDeleteHooks removes the hooks of a stage that have run, as their policies
// say: those without a policy always, as the reference documents it.
func (e *Engine) cleanDeleteHooks(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster, stage rutter.DeletionStage) outcome {
	hooks, verdict, err := e.liveHooks(ctx, u, unit, c, stage)
	if err != nil {
		return outcome{err: err}
	}
	for _, h := range hooks {
		m := plan.MetaOf(h.GetAnnotations())
		switch {
		case m.DeleteUnset:
		case slices.Contains(m.Delete, plan.HookSucceeded) && verdict == rutter.Healthy:
		case slices.Contains(m.Delete, plan.HookFailed) && verdict == rutter.Degraded:
		default:
			continue
		}
		if err := e.removeHook(ctx, c, rutter.GVKOf(h), h); err != nil {
			return outcome{err: fmt.Errorf("remove hook %s: %w", rutter.RefOf(h), err)}
		}
	}
	return outcome{done: []rutter.DeletionStage{stage}}
}

// liveHooks reads the hooks of a stage that are there: what the sources declare,
// as far as that is known, and what the watches have shown.
func (e *Engine) liveHooks(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster, stage rutter.DeletionStage) ([]*unstructured.Unstructured, rutter.HealthState, error) {
	kinds := map[rutter.Ref]rutter.GVK{}
	u.mu.Lock()
	for ref, x := range u.live {
		if x.Exists && isDeleteHook(*x.meta, stage) {
			kinds[ref] = x.gvk
		}
	}
	if u.desired != nil {
		for _, i := range u.desired.hooksOf(stage) {
			if o := &u.desired.objects[i]; o.Ref.Name != "" {
				kinds[o.Ref] = o.gvk
			}
		}
	}
	u.mu.Unlock()
	var hooks []*unstructured.Unstructured
	verdict := rutter.Healthy
	for ref, gvk := range kinds {
		live, err := c.Get(ctx, gvk, ref.Namespace, ref.Name)
		if rutter.CodeOf(err) == rutter.CodeNotFound || err == nil && live.GetLabels()[rutter.LabelUnit] != unit.ID.Hash() {
			continue
		}
		if err != nil {
			return nil, "", fmt.Errorf("read hook %s: %w", ref, err)
		}
		switch e.assess(live).Status {
		case rutter.Degraded:
			verdict = rutter.Degraded
		case rutter.Progressing, rutter.Missing, rutter.HealthUnknown:
			if verdict != rutter.Degraded {
				verdict = rutter.Progressing
			}
		default:
		}
		hooks = append(hooks, live)
	}
	return hooks, verdict, nil
}
