package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/apply"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/plan"
)

// begin records a new operation; u.mu is held.
func (e *Engine) begin(ctx context.Context, u *state, req rutter.SyncRequest) (context.Context, *operation) {
	op := &operation{key: u.desired.key, report: rutter.OperationReport{
		Request: req, Phase: rutter.OperationRunning, StartedAt: e.now(), Revisions: u.desired.revisions,
		Partial: len(req.Resources) > 0,
	}}
	if u.op != nil { // a retry goes on with the operation it retries
		op.report.RetryCount, op.report.StartedAt = u.op.report.RetryCount, u.op.report.StartedAt
	} else {
		u.goesOn(op)
	}
	ctx, op.cancel = e.within(ctx, op.report.StartedAt)
	u.op = op
	e.stats.Syncs.Add(1)
	return ctx, op
}

// slowSync is when a sync is shown though it waits for nothing in particular.
const slowSync = time.Second

// operate carries out one operation and settles what becomes of it.
func (e *Engine) operate(ctx context.Context, u *state, c rutter.Cluster, op *operation, d *desired) {
	defer op.cancel()
	slow := time.AfterFunc(slowSync, func() { e.opts.Changed(u.id, false) }) // so that it is seen, and can be ended
	defer slow.Stop()
	u.mu.Lock()
	unit := u.unit
	u.mu.Unlock()
	unit.Policy = unit.Policy.For(op.report.Request)
	results, err := e.carryOut(ctx, u, c, unit, op, d)
	e.settleOperation(ctx, u, op, d, results, err)
	if e.unit(u.id) != u { // nobody comes back to its hooks
		if err := e.dropHooks(context.WithoutCancel(ctx), u, c); err != nil {
			e.opts.Logger.Warn("cannot let go of a hook", "unit", u.id.String(), "err", err)
		}
	}
}

func (e *Engine) carryOut(ctx context.Context, u *state, c rutter.Cluster, unit rutter.Unit, op *operation, d *desired) ([]rutter.StepResult, error) {
	req := op.report.Request
	d, err := e.asked(ctx, u, unit, c, req, d)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	op.report.Revisions = d.revisions
	u.mu.Unlock()
	namespace, err := e.ensureNamespace(ctx, u, c, unit, d, op)
	if err != nil {
		return namespace, err
	}
	u.mu.Lock()
	in := e.planInput(u, d, req)
	for i := range in.Extras {
		in.Extras[i].Waits = "" // that is looked at when its turn comes
	}
	p := plan.Compute(in)
	u.noteHeld(p, req)
	if req.SelfHeal {
		e.noteHeal(u, req.Resources)
	}
	u.mu.Unlock()
	if p.Refusal != "" {
		return nil, rutter.Errorf(rutter.CodeForbidden, "%s", p.Refusal)
	}
	if !req.Automated && len(req.Resources) > 0 && selectsNothing(p) {
		return nil, rutter.Errorf(rutter.CodeNotFound, "none of the selected resources is one of the application's")
	}
	if r := refusals(p); len(r) > 0 {
		return r, rutter.Errorf(rutter.CodeForbidden, "one or more synchronization tasks are not valid: %s: %s", r[0].Ref, r[0].Message)
	}
	if err := e.shared(u, c.Info().Server, unit, d); err != nil {
		return nil, err
	}
	t := e.task(ctx, u, c, unit, op, d)
	t.Plan = p
	out := apply.Run(ctx, t)
	results := slices.Concat(namespace, out.Results, skippedPrunes(p))
	if out.Err != nil || len(p.Confirm) == 0 {
		return results, out.Err
	}
	return e.confirm(ctx, u, op, d, t, results)
}

// task is how the plan of an operation is carried out.
func (e *Engine) task(ctx context.Context, u *state, c rutter.Cluster, unit rutter.Unit, op *operation, d *desired) apply.Task {
	req := op.report.Request
	return apply.Task{
		Cluster: c, Live: &liveSide{engine: e, u: u, op: op, d: d, cluster: c, server: c.Info().Server}, Propagation: unit.Policy.Propagation,
		Delay: e.syncs().WaveDelay, DryRun: req.DryRun, Mark: u.hash, Spare: func(ctx context.Context, ref rutter.Ref) string { return e.spare(ctx, u, op, ref) },
		Object:   func(i int) (*unstructured.Unstructured, error) { return e.toSend(ctx, u, c, unit, op, d, i) },
		Takeover: func(i int) rutter.Takeover { return e.takeover(u, unit, d, i) },
		Manner:   func(i int) plan.Manner { return u.manner(unit.Policy, req, d, i) },
		HookRun:  func(s rutter.Step) plan.HookRun { return op.hookRun(d, s) }, Revision: strings.Join(d.revisions, "-"),
		Checked:  func(i int) bool { return e.checked(u, req, d, i) },
		Missing:  func(i int) bool { return e.unserved(ctx, c, d, i) },
		Progress: func(m string) { e.progress(u, op, m) },
		Superseded: func() bool {
			u.mu.Lock()
			defer u.mu.Unlock()
			return op.superseded
		},
	}
}

// progress says what an operation does or waits for.
func (e *Engine) progress(u *state, op *operation, message string) {
	u.mu.Lock()
	op.report.Message = message
	u.mu.Unlock()
	e.opts.Changed(u.id, false)
}

// toSend is the object as it goes out. A field that is ignored keeps its live
// value when the object is sent for another reason: it is not ours to decide.
// The reference does so only with RespectIgnoreDifferences=true, and otherwise
// undoes what it was told to ignore.
func (e *Engine) toSend(ctx context.Context, u *state, c rutter.Cluster, unit rutter.Unit, op *operation, d *desired, i int) (*unstructured.Unstructured, error) {
	want, err := e.object(unit, d, i)
	if err != nil {
		u.mu.Lock()
		e.renderAgain(u)
		u.mu.Unlock()
		return nil, err
	}
	if d.objects[i].KindMissing { // where it goes was a guess
		if m, err := c.Mapping(ctx, d.objects[i].gvk); err == nil && !m.Namespaced {
			want.SetNamespace("")
		}
	}
	rules, rests := e.resting(u, op, d, d.objects[i].Ref)
	keeps := e.keepsOthers(ctx, u, c, d, i)
	if err := e.awaitOwner(ctx, u, op, d.objects[i].Ref); err != nil {
		return nil, err
	}
	if words, err := e.otherTool(ctx, c, u.ownerOf(d.objects[i].Ref)); err != nil {
		return nil, err
	} else if words != "" {
		return nil, e.leaveToTool(u, op, d, d.objects[i].Ref, words)
	}
	if !keeps && !rests {
		return want, nil
	}
	live, err := c.Get(ctx, d.objects[i].gvk, want.GetNamespace(), want.GetName())
	if rutter.CodeOf(err) == rutter.CodeNotFound {
		return want, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the live object for its ignored fields: %w", err)
	}
	return compare.Respect(want, live, rules), nil
}

// shared is FailOnSharedResource: nothing is written when another unit of this
// engine declares one of the objects (reference 2.10, scenario B36).
func (e *Engine) shared(u *state, server string, unit rutter.Unit, d *desired) error {
	if !unit.Policy.HasOption("FailOnSharedResource=true") {
		return nil
	}
	for i := range d.objects {
		if other := e.claims.other(u, claim{server, d.objects[i].Ref}); other != nil {
			return rutter.Errorf(rutter.CodeConflict, "%s", partOfTwo(d.objects[i].Ref, unit.Instance, other.instance))
		}
	}
	return nil
}

// settleOperation ends an operation, or lets it wait for its next attempt.
func (e *Engine) settleOperation(ctx context.Context, u *state, op *operation, d *desired, results []rutter.StepResult, err error) {
	u.mu.Lock()
	r := &op.report
	r.Results, r.FinishedAt = results, e.now()
	r.Phase, r.Message = rutter.OperationSucceeded, "successfully synced (all tasks run)"
	id, stopped, again := u.unit.ID, false, false
	switch {
	case err == nil && r.Request.DryRun:
		r.Message = "successfully checked (dry run: nothing was changed)"
	case err == nil && u.replaced != "":
		r.Message += "; " + u.replaced
	case err == nil:
	case errors.Is(err, apply.ErrSuperseded):
		r.Phase, r.Message = rutter.OperationFailed, err.Error()
		u.replaced = op.replaces()
		if req := r.Request; !req.Automated && u.request == nil {
			u.request, again = &req, true // a person asked for the newest, and gets it
		}
	case ctx.Err() != nil:
		r.Phase = rutter.OperationFailed
		r.Message, stopped = op.stopMessage(ctx)
	default:
		r.Phase, r.Message = rutter.OperationFailed, err.Error()
		if !op.onlyConceded(results) && e.retryLater(u, op, err) {
			u.mu.Unlock()
			e.opts.Changed(id, false)
			return
		}
	}
	if r.Request.Automated && !r.Partial && !errors.Is(err, apply.ErrSuperseded) && (ctx.Err() == nil && u.stillOthers(op) || stopped) {
		u.attempted = d.key
	}
	if u.op == op {
		u.op = nil
	}
	if err == nil {
		u.replaced = ""
	}
	if slices.ContainsFunc(d.objects, func(o desiredObject) bool { return o.KindMissing }) {
		u.rebuild = true // a kind may be served by now
	}
	if r.RetryCount > 0 && r.Phase == rutter.OperationFailed {
		r.Message += fmt.Sprintf(" (retried %d times).", r.RetryCount)
	}
	final := *r
	if u.news = true; !again { // what goes on is not at its end
		u.last = &final
	}
	if len(u.drifts) == 0 {
		u.drifts = driftLog{} // a map never shrinks, and at first everything was missing
	}
	u.notify()
	u.mu.Unlock()
	e.logOperation(id, final)
	e.queue.add(id)
}

// retryLater schedules the next attempt of a failed operation; u.mu is held.
func (e *Engine) retryLater(u *state, op *operation, err error) bool {
	limit := op.report.Request.Retry.Limit
	if op.report.Request.DryRun || limit >= 0 && op.report.RetryCount >= limit {
		return false
	}
	delay := op.report.Request.Retry.Delay(op.report.RetryCount)
	op.retryAt = e.now().Add(delay)
	op.report.Phase = rutter.OperationRunning
	op.report.Message = fmt.Sprintf("%v. Retrying attempt #%d at %s.", err, op.report.RetryCount+1, op.retryAt.Format("3:04PM"))
	if op.report.Request.Retry.Refresh {
		u.refresh = max(u.refresh, refreshLatest)
	}
	e.queue.addAfter(u.unit.ID, delay)
	return true
}

func (e *Engine) logOperation(id rutter.UnitID, r rutter.OperationReport) {
	applied := 0
	for _, res := range r.Results {
		if res.Status == apply.StatusSynced {
			applied++
		}
	}
	e.opts.Logger.Info("sync ended", "unit", id.String(), "phase", string(r.Phase), "heal", r.Request.SelfHeal,
		"applied", applied, "took", r.FinishedAt.Sub(r.StartedAt), "message", r.Message)
}

// selectsNothing reports whether no object of the unit is among the selected ones.
func selectsNothing(p rutter.Plan) bool {
	return p.Empty() && !slices.ContainsFunc(p.Left, func(s rutter.Step) bool { return s.Reason != plan.NotSelected })
}

func refusals(p rutter.Plan) []rutter.StepResult {
	var out []rutter.StepResult
	for _, s := range p.Left {
		if s.Action == rutter.ActionRefuse {
			out = append(out, rutter.StepResult{Step: s, Status: apply.StatusFailed, Message: s.Reason})
		}
	}
	return out
}

func skippedPrunes(p rutter.Plan) []rutter.StepResult {
	var out []rutter.StepResult
	for _, s := range p.Left {
		if s.Action == rutter.ActionSkip && s.Index < 0 {
			out = append(out, rutter.StepResult{Step: s, Status: apply.StatusPruneSkipped, Message: s.Reason})
		}
	}
	return out
}
