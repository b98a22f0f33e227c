package engine

import (
	"slices"
	"time"

	"github.com/rutterhq/rutter"
)

// A controller that starts may find that the one before it was stopped in the
// middle of an operation: the record says that it runs, or its hooks are kept. It is
// gone on with, under the same identity, when it is still wanted; otherwise it is
// said to have ended.

// interrupted is the operation in whose middle the controller before this one was
// stopped, and what it did; u.mu is held.
func (u *state) interrupted() (begun rutter.OperationReport, ok bool) {
	if u.last != nil || u.desired == nil {
		return begun, false // what runs, or has run, is our own
	}
	if last := u.unit.Last; last != nil && !last.Phase.Completed() {
		begun, ok = *last, true
	}
	started, attempt, kept := u.keptRun()
	switch {
	case kept && ok && started.Truncate(time.Second).Equal(begun.StartedAt.Truncate(time.Second)):
		begun.StartedAt = started // to the instant
	case kept && !ok:
		begun, ok = rutter.OperationReport{Phase: rutter.OperationRunning, StartedAt: started, RetryCount: attempt, Revisions: u.desired.revisions,
			Request: rutter.SyncRequest{Automated: !u.unit.Asked}}, true
	}
	return begun, ok
}

// keptRun is the newest operation of which a hook is kept that is the same as what is
// declared now, unless the record says that it has ended; u.mu is held.
func (u *state) keptRun() (started time.Time, attempt int64, ok bool) {
	op, last := operation{}, u.unit.Last
	for _, x := range u.live {
		if x.hook == nil || last != nil && last.Phase.Completed() && !x.hook.Started.Truncate(time.Second).After(last.StartedAt) {
			continue
		}
		for i := range u.desired.objects {
			o := &u.desired.objects[i]
			if o.gvk != x.gvk || !slices.ContainsFunc(o.Meta.Hooks, func(p rutter.Phase) bool {
				return op.hookRun(u.desired, rutter.Step{Index: i, Phase: p}).Of == x.hook.Of
			}) {
				continue
			}
			if !ok || x.hook.Started.After(started) {
				started, attempt = x.hook.Started, 0
			}
			attempt, ok = max(attempt, x.hook.Attempt), true
		}
	}
	return started, attempt, ok
}

// mayResume reports whether an interrupted operation may still be gone on with; u.mu
// is held.
func (u *state) mayResume() bool {
	begun, ok := u.interrupted()
	return ok && (u.unit.Asked || u.unit.Policy.Automated && resumable(begun, u.desired))
}

// resumable reports whether an automated operation is for what is declared now. A
// repair of single objects is not gone on with: what it left differs, and is seen.
func resumable(begun rutter.OperationReport, d *desired) bool {
	return begun.Request.Automated && !begun.Partial && slices.Equal(begun.Revisions, d.revisions)
}

// decideInterrupted is what to do about an interrupted operation; false when there is
// none that matters. u.mu is held.
func (e *Engine) decideInterrupted(u *state) (verdictOn, bool) {
	begun, ok := u.interrupted()
	if !ok || u.unit.Asked {
		return verdictOn{}, ok // whoever asked asks again
	}
	if !u.unit.Policy.Automated || !resumable(begun, u.desired) {
		begun.Phase, begun.FinishedAt = rutter.OperationFailed, e.now()
		begun.Message = "it was stopped with the controller, and what is declared now is another: " + begun.Message
		if !u.unit.Policy.Automated {
			begun.Message = "it was stopped with the controller, and nobody asks for it any more: " + begun.Message
		}
		u.last, u.news = &begun, true
		e.opts.Changed(u.id, false)
		return verdictOn{}, false
	}
	req := rutter.SyncRequest{Automated: true, Prune: u.unit.Policy.Prune, Retry: u.unit.Policy.Retry}
	if wait, closed := e.closed(u, req, begun.StartedAt); closed {
		return verdictOn{wait: wait}, true
	}
	return verdictOn{request: &req}, true
}

// goesOn gives an operation the identity of the interrupted one that it goes on with;
// u.mu is held.
func (u *state) goesOn(op *operation) {
	begun, ok := u.interrupted()
	if ok && begun.Request.Automated == op.report.Request.Automated && slices.Equal(begun.Revisions, u.desired.revisions) {
		op.report.StartedAt, op.report.RetryCount = begun.StartedAt, begun.RetryCount
	}
}
