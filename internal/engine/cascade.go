package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// cascade takes one step of deleting everything that the unit manages, but for the
// namespaces to keep: in the order of plan.Teardown, each step when the former is
// gone. over says that there is nothing left but those.
func (e *Engine) cascade(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster, del *deletion, keep map[string]bool) (out outcome, over bool) {
	finished := outcome{done: []rutter.DeletionStage{rutter.StageCascade}}
	if all, _ := e.doomed(u, keep); len(all) == 0 {
		return finished, true // there is nothing that another unit might want
	}
	switch rival, tried := e.awaitRival(u); {
	case rival == nil:
	case !tried:
		return outcome{unsettled: true}, false // it will be known in a moment
	default:
		return outcome{err: rutter.Errorf(rutter.CodeUnavailable,
			"waits until it is known whether application %s, which cannot be rendered, declares objects of this one", rival.instance)}, false
	}
	if err := e.passClaimed(ctx, u, c); err != nil {
		return outcome{err: err}, false
	}
	all, confirm := e.doomed(u, keep)
	if len(all) == 0 {
		return finished, true
	}
	if len(confirm) > 0 && del.Approved.Before(del.Since) {
		return outcome{waiting: fmt.Sprintf("waits for a confirmation of the deletion of %s: annotate the application with %s and the time of now (RFC 3339), or 'rutter app confirm-deletion %s'",
			namesOf(confirm), annApproved, unit.ID.Name)}, false
	}
	return e.deleteStep(ctx, u, c, del, all), false
}

const annApproved = "argocd.argoproj.io/deletion-approved"

// doomed are the objects that the cascade removes, and those of them whose removal
// somebody must confirm first.
func (e *Engine) doomed(u *state, keep map[string]bool) (all []plan.Doomed, confirm []rutter.Ref) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for ref, x := range u.live {
		if !x.Exists || x.foreign != nil || u.staysAnyway(x) || e.protected(u, ref, x.Verdict) != "" {
			continue
		}
		if x.meta.PreDelete || x.meta.PostDelete {
			continue // that is for the stages of the hooks
		}
		if ref.Group == "" && ref.Kind == "Namespace" && keep[ref.Name] {
			continue
		}
		all = append(all, plan.Doomed{Ref: ref, GVK: x.gvk, UID: x.UID, Wave: x.meta.Wave, Deleting: x.Deleting})
		if (x.meta.ConfirmDelete || u.unit.Policy.HasOption("Delete=confirm") && !x.meta.YesDelete) && !x.Deleting {
			confirm = append(confirm, ref)
		}
	}
	slices.SortFunc(confirm, rutter.Ref.Compare)
	return all, confirm
}

// staysAnyway reports whether an object outlives its unit; its own annotation
// beats what the unit says of all. u.mu is held.
func (u *state) staysAnyway(x *entry) bool {
	return x.meta.NoDelete || u.unit.Policy.HasOption("Delete=false") && !x.meta.YesDelete && !x.meta.ConfirmDelete
}

// deleteStep asks for the deletion of what is next, or says why what was asked for
// does not go.
func (e *Engine) deleteStep(ctx context.Context, u *state, c rutter.Cluster, del *deletion, all []plan.Doomed) outcome {
	step, wave := plan.Teardown(all)
	asked := 0
	for _, x := range step {
		if x.Deleting {
			continue
		}
		asked++
		if err := e.deleteOne(ctx, u, c, x); err != nil {
			return outcome{err: fmt.Errorf("delete %s (wave %d): %w", x.Ref, wave, err)}
		}
	}
	if asked > 0 {
		return outcome{again: lookIn + minRetry}
	}
	if err := e.force(ctx, u, c, del, all); err != nil {
		return outcome{err: err}
	}
	blockers, soonest := e.blockers(ctx, u, c, del, step)
	if len(blockers) == 0 {
		return outcome{again: max(soonest, minRetry)}
	}
	return outcome{blockers: blockers, again: del.nextLook(e.now(), blockers)}
}

// deleteOne asks for the deletion of one object, if it is still this unit's alone.
func (e *Engine) deleteOne(ctx context.Context, u *state, c rutter.Cluster, x plan.Doomed) error {
	live, err := c.Get(ctx, x.GVK, x.Ref.Namespace, x.Ref.Name)
	if err == nil && live.GetLabels()[rutter.LabelUnit] != u.hash || rutter.CodeOf(err) == rutter.CodeNotFound {
		u.mu.Lock()
		e.drop(u, x.Ref) // gone, or another unit's by now
		u.mu.Unlock()
		e.queue.add(u.id)
		return nil
	}
	if err != nil {
		return fmt.Errorf("whose it is by now is not known: %w", err)
	}
	if e.claims.other(u, claim{c.Info().Server, x.Ref}) != nil {
		e.queue.add(u.id) // another unit has come to declare it meanwhile
		return nil
	}
	if err := c.Delete(ctx, x.GVK, x.Ref.Namespace, x.Ref.Name, rutter.DeleteOptions{UID: x.UID, Propagation: u.propagation()}); err != nil {
		return err //nolint:wrapcheck // the caller names the object
	}
	e.stats.Prunes.Add(1)
	u.mu.Lock()
	defer u.mu.Unlock()
	if y := u.live[x.Ref]; y != nil {
		y.Deleting, y.deletedAt = true, e.now().Unix()
	}
	return nil
}

func (u *state) propagation() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.deletion == nil || u.deletion.Propagation == "" {
		return "foreground"
	}
	return u.deletion.Propagation
}

// force takes the finalizers off what has been going since before somebody decided
// so. Namespaces are not among them: what is in one would stay for ever.
func (e *Engine) force(ctx context.Context, u *state, c rutter.Cluster, del *deletion, all []plan.Doomed) error {
	if del.Forced.IsZero() {
		return nil
	}
	for _, x := range all {
		since, going := u.goingSince(x.Ref)
		if !going || !since.Before(del.Forced) || x.Ref.Kind == "Namespace" && x.Ref.Group == "" {
			continue
		}
		live, err := c.Get(ctx, x.GVK, x.Ref.Namespace, x.Ref.Name)
		if rutter.CodeOf(err) == rutter.CodeNotFound || err == nil && len(live.GetFinalizers()) == 0 {
			continue
		}
		if err == nil {
			err = c.Unfinalize(ctx, x.GVK, x.Ref.Namespace, x.Ref.Name, x.UID, live.GetFinalizers()...)
		}
		if err != nil {
			return fmt.Errorf("remove the finalizers of %s: %w", x.Ref, err)
		}
		e.opts.Logger.Warn("finalizers removed, as somebody decided", "unit", u.id.String(), "object", x.Ref.String(), "finalizers", live.GetFinalizers(), "decided", del.Forced)
	}
	return nil
}

// goingSince is when the deletion of an object was asked for.
func (u *state) goingSince(ref rutter.Ref) (since time.Time, going bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	x := u.live[ref]
	if x == nil || !x.Exists || !x.Deleting {
		return time.Time{}, false
	}
	return time.Unix(x.deletedAt, 0), true
}

// orphan takes the unit's marks off everything, but for what another unit
// declares, which becomes that one's.
func (e *Engine) orphan(ctx context.Context, u *state, c rutter.Cluster, del *deletion) outcome {
	if err := e.passClaimed(ctx, u, c); err != nil {
		return outcome{err: err}
	}
	for _, x := range u.ours(func(*entry) bool { return true }) {
		err := c.Unmark(ctx, x.gvk, x.ref.Namespace, x.ref.Name, rutter.Mark{UID: x.UID, From: u.hash})
		if code := rutter.CodeOf(err); err != nil && code != rutter.CodeNotFound && code != rutter.CodeConflict {
			return outcome{err: fmt.Errorf("take the marks off %s: %w", x.ref, err)}
		}
		u.mu.Lock()
		e.drop(u, x.ref)
		u.mu.Unlock()
	}
	return outcome{done: slices.Clone(del.Stages)}
}

// knowKinds makes sure that it is known what may have been applied: from the
// status, or by rendering when the status does not say. An application that has
// been synced and of which neither is known is not taken for an empty one.
func (e *Engine) knowKinds(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster) error {
	if len(unit.KnownKinds) > 0 {
		return nil
	}
	if err := e.knowHooks(ctx, u, unit, c); err != nil && unit.Last != nil {
		return fmt.Errorf("what was applied is not known: %w", err)
	}
	return nil
}

// knowHooks renders if that has not been done yet.
func (e *Engine) knowHooks(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster) error {
	u.mu.Lock()
	known := u.desired != nil
	u.mu.Unlock()
	if known {
		return nil
	}
	if unit.Problem != nil {
		return unit.Problem
	}
	d, err := e.render(ctx, u, unit, c, false, true)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	e.adoptDesired(u, d)
	return nil
}

// blind returns why one of the kinds to delete cannot be seen: what
// cannot be seen is never taken as absent.
func (e *Engine) blind(u *state) error {
	u.mu.Lock()
	kinds := append([]rutter.GVK(nil), u.unit.KnownKinds...)
	if u.desired != nil {
		for i := range u.desired.objects {
			kinds = append(kinds, u.desired.objects[i].gvk)
		}
	}
	server := u.server
	u.mu.Unlock()
	for _, gvk := range kinds {
		if err := e.taint(server, gvk); err != nil && rutter.CodeOf(err) != rutter.CodeNotFound {
			return fmt.Errorf("kind %s cannot be listed: %w", gvk.Kind, err)
		}
	}
	return nil
}

// victim is a live object of a unit.
type victim struct {
	ref  rutter.Ref
	gvk  rutter.GVK
	UID  string
	wave int
}

// shownNames is how many objects one text names.
const shownNames = 10

func namesOf(refs []rutter.Ref) string {
	var names []string
	for i, ref := range refs {
		if i == shownNames {
			names = append(names, fmt.Sprintf("and %d more", len(refs)-i))
			break
		}
		names = append(names, ref.String())
	}
	return strings.Join(names, ", ")
}
