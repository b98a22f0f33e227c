package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/rutterhq/rutter"
)

// deletion is a deletion in progress.
type deletion struct {
	rutter.Deletion
	outcome
	*memo
}

// memo is what the looks at a deletion leave to the next; nobody else has it.
type memo struct {
	// ended are the hooks that were seen to end well: one that vanishes afterwards
	// has been run. failed is since when a hook has failed, and attempts how often.
	ended    map[rutter.Ref]bool
	failed   map[rutter.Ref]time.Time
	attempts int
	// tried says that it was tried to render.
	tried bool
	// level is how much of what the sources declare is to be looked at anew, for
	// hooks that are still to run.
	level refresh
	// workloads are those of the cluster that controllers are looked for among.
	workloads *workloads
}

// outcome is how far one look at a deletion came.
type outcome struct {
	done []rutter.DeletionStage
	err  error
	// waiting says what it waits for, where it is not an object that goes.
	waiting  string
	blockers []rutter.Blocker
	gone     bool
	// unsettled is true when nothing is known yet.
	unsettled bool
	// again is when to look though nothing has changed; 0 is never.
	again time.Duration
}

const (
	// lookIn is how long an object may be going before it is looked into why, and
	// lookAgainIn how often that is looked at.
	lookIn      = 3 * time.Second
	lookAgainIn = 15 * time.Second
	// DefaultDeadline is how long an object may be going before somebody has to decide.
	DefaultDeadline = 15 * time.Minute
)

// Delete does what the deletion of a unit has still to do, one stage at a time:
// when the report says that one is done, the caller writes that down and calls
// again with the rest. It may be called at any time with the same; a restart goes
// on with what is written down.
func (e *Engine) Delete(unit rutter.Unit, d rutter.Deletion) {
	if e.unit(unit.ID) == nil {
		e.Upsert(unit)
	}
	u := e.unit(unit.ID)
	if u == nil {
		return
	}
	if d.Deadline <= 0 {
		d.Deadline = DefaultDeadline
	}
	u.mu.Lock()
	switch x := u.deletion; {
	case x == nil:
		u.deletion = &deletion{Deletion: d, memo: &memo{ended: map[rutter.Ref]bool{}, failed: map[rutter.Ref]time.Time{}}}
		u.stop()
	case !reflect.DeepEqual(x.Deletion, d):
		next := *x
		next.Deletion, next.outcome = d, outcome{}
		u.deletion = &next
	}
	server, refs := u.depart()
	u.mu.Unlock()
	e.released(server, refs)
	e.queue.add(unit.ID)
}

// processDeletion takes a step of a deletion. It is idempotent; after a restart it
// goes on from what is still there.
func (e *Engine) processDeletion(ctx context.Context, u *state, unit rutter.Unit, level refresh) {
	u.mu.Lock()
	del := u.deletion
	if del != nil {
		del.level = max(del.level, level)
	}
	u.mu.Unlock()
	if del == nil {
		return
	}
	if len(del.done) > 0 {
		return // it is to be written down first
	}
	out := e.lookAfter(ctx, u, unit, del)
	if ctx.Err() != nil {
		return
	}
	u.mu.Lock()
	if u.deletion != del {
		u.mu.Unlock()
		e.queue.add(u.id) // something was decided meanwhile
		return
	}
	if !out.unsettled {
		del.outcome = out
	}
	u.mu.Unlock()
	if out.again == 0 && out.err != nil {
		out.again = retryRender(3)
	}
	if out.again > 0 {
		e.queue.addAfter(u.id, out.again)
	}
	if !out.unsettled {
		e.opts.Changed(u.id, false)
	}
}

// lookAfter does what is due of a deletion.
func (e *Engine) lookAfter(ctx context.Context, u *state, unit rutter.Unit, del *deletion) outcome {
	c, err := e.member(unit)
	switch {
	case rutter.CodeOf(err) == rutter.CodeNotFound && !del.WaitForCluster:
		return outcome{done: del.Stages, gone: true} // it is no longer a member: nothing can be done there
	case err != nil:
		return outcome{err: err}
	}
	e.settleServer(u, c.Info())
	if _, down := e.outage(c.Info().Server); !down && !del.tried {
		// What the sources declare tells kinds that no status has, such as those of
		// hooks; where it cannot be told, what is known otherwise is deleted.
		del.tried = true
		_ = e.knowHooks(ctx, u, unit, c)
	}
	if ready, err := e.oversees(ctx, u, unit, c); !ready {
		return outcome{err: err, unsettled: err == nil}
	}
	if err := e.dropHooks(ctx, u, c); err != nil {
		return outcome{err: err}
	}
	if del.Orphan {
		return e.orphan(ctx, u, c, del)
	}
	return e.nextStage(ctx, u, unit, c, del)
}

// nextStage works at the first stage that is to be done. Namespaces with hooks
// that are still to run stay until those have run.
func (e *Engine) nextStage(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster, del *deletion) outcome {
	if del.Has(rutter.StagePreDelete) {
		return e.runDeleteHooks(ctx, u, unit, c, del, rutter.StagePreDelete)
	}
	hooksLeft := del.Has(rutter.StagePostDelete) || del.Has(rutter.StagePostCleanup)
	if del.Has(rutter.StageCascade) {
		var keep map[string]bool
		if hooksLeft {
			if err := e.knowHooks(ctx, u, unit, c); err != nil && del.Has(rutter.StagePostDelete) {
				return outcome{err: fmt.Errorf("which PostDelete hooks there are is not known: %w", err)}
			}
			keep = u.hookNamespaces()
		}
		if out, over := e.cascade(ctx, u, unit, c, del, keep); !over || len(keep) == 0 {
			return out
		}
	}
	for _, stage := range []rutter.DeletionStage{rutter.StagePostDelete, rutter.StagePreCleanup, rutter.StagePostCleanup} {
		switch {
		case !del.Has(stage):
		case stage == rutter.StagePostDelete:
			return e.runDeleteHooks(ctx, u, unit, c, del, stage)
		default:
			return e.cleanDeleteHooks(ctx, u, unit, c, stage)
		}
	}
	return outcome{done: slices.Clone(del.Stages)}
}

// oversees reports whether everything that the unit has on its cluster is seen,
// and no sync of it sends any more; an error says why that cannot be. Otherwise
// the unit is woken when it may be so.
func (e *Engine) oversees(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster) (bool, error) {
	e.settleServer(u, c.Info())
	if u.sending() {
		return false, nil // the sync that was stopped queues the unit when it has ended
	}
	if o, down := e.outage(c.Info().Server); down {
		return false, fmt.Errorf("cluster does not answer since %s: %w", o.since.UTC().Format(time.RFC3339), o.err)
	}
	if err := e.knowKinds(ctx, u, unit, c); err != nil {
		e.queue.addAfter(unit.ID, retryRender(3))
		return false, err
	}
	if !e.warmed() || !e.watchAll(u, c) {
		return false, nil // woken by Listed
	}
	if err := e.blind(u); err != nil {
		return false, err
	}
	return true, nil
}

// sending reports whether a sync of the unit may still send something.
func (u *state) sending() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.op != nil && !u.op.retryAt.IsZero() {
		u.op = nil // it only waited for its next attempt
	}
	return u.op != nil
}

// reportDeletion says how far the deletion is; u.mu is held.
func (e *Engine) reportDeletion(u *state, r *rutter.Report) {
	del := u.deletion
	if del == nil {
		return
	}
	now := e.now()
	x := &rutter.DeletionReport{ID: del.ID, Done: del.done, ClusterGone: del.gone, Waiting: del.waiting, Blockers: del.blockers}
	r.Deletion = x
	blocked := func(text string) {
		r.Conditions = append(r.Conditions, rutter.Condition{Type: rutter.CondDeletionBlocked, Message: text})
	}
	if del.waiting != "" {
		blocked(del.waiting)
	}
	overdue := 0
	for i, b := range del.blockers {
		if now.Sub(b.Since) >= del.Deadline {
			overdue++
		}
		switch {
		case i < mostBlockers:
			blocked(fmt.Sprintf("%s is terminating since %s: %s", b.Ref, b.Since.UTC().Format(time.RFC3339), b.Reason))
		case i == mostBlockers:
			blocked(fmt.Sprintf("%d more objects are terminating", len(del.blockers)-i))
		}
	}
	x.Overdue = overdue > 0 || del.err != nil && now.Sub(del.Since) >= del.Deadline
	if del.err != nil {
		text := del.err.Error()
		if x.Overdue {
			text += fmt.Sprintf(". It has been so for more than %s and needs a decision: %s", del.Deadline, del.choices(u.id, false))
		}
		r.Conditions = append(r.Conditions, rutter.Condition{Type: rutter.CondDeletion, Message: text})
	} else if x.Overdue {
		r.Conditions = append(r.Conditions, rutter.Condition{Type: rutter.CondDeletion, Message: fmt.Sprintf(
			"a decision is needed, as %d of its objects have been terminating for more than %s: %s", overdue, del.Deadline, del.choices(u.id, true))})
	}
}

// choices are what somebody may decide.
func (d *deletion) choices(id rutter.UnitID, force bool) string {
	text := fmt.Sprintf("wait, or 'rutter app delete %s -n %s --orphan' leaves what is left where it is", id.Name, id.Namespace)
	if force {
		text += ", or '--force' removes the finalizers of what is terminating"
	}
	return text
}

// mostBlockers bounds the objects that are looked into and named.
const mostBlockers = 10

// nextLook is when a deletion with blockers is looked at the next time.
func (d *deletion) nextLook(now time.Time, blockers []rutter.Blocker) time.Duration {
	next := lookAgainIn
	for _, b := range blockers {
		if left := d.Deadline - now.Sub(b.Since); left > 0 {
			next = min(next, left+minRetry)
		}
	}
	return next
}
