package engine

import (
	"context"
	"errors"
	"time"

	"github.com/rutterhq/rutter"
)

// terminated is the message of an operation that was ended before its end.
const terminated = "Operation terminated"

// errTimeout is the cause that ends an operation which took longer than it may.
var errTimeout = errors.New("it took longer than controller.sync.timeout.seconds allows")

// SetSyncing takes what an operator sets for all syncs. Those that run go on by what
// was set when they began.
func (e *Engine) SetSyncing(s rutter.SyncSettings) { e.syncing.Store(&s) }

// syncs is what is set for all syncs.
func (e *Engine) syncs() rutter.SyncSettings {
	if s := e.syncing.Load(); s != nil {
		return *s
	}
	return rutter.SyncSettings{}
}

// Terminate ends the operation of a unit, whatever it does or waits for; its hooks
// that run are deleted. It is told by its request, which may not have begun, or by
// the second in which it began.
func (e *Engine) Terminate(id rutter.UnitID, request string, began time.Time) {
	u := e.unit(id)
	if u == nil {
		return
	}
	u.mu.Lock()
	acted := false
	if u.request != nil && request != "" && u.request.ID == request {
		now := e.now()
		u.last = &rutter.OperationReport{Request: *u.request, Phase: rutter.OperationFailed, Message: terminated, StartedAt: now, FinishedAt: now, Partial: true}
		u.request, u.news, acted = nil, true, true
		u.notify()
	}
	switch op := u.op; {
	case op == nil || request != "" && op.report.Request.ID != request || !began.IsZero() && !op.report.StartedAt.Truncate(time.Second).Equal(began):
	case !op.retryAt.IsZero():
		e.endWaiting(u, terminated)
		acted = true
	case !op.terminated:
		op.terminated, acted = true, true
		op.report.Phase, op.report.Message = rutter.OperationTerminating, "operation is terminating"
		op.cancel()
	}
	u.mu.Unlock()
	if acted { // the wish is seen again with each look at the status
		e.opts.Changed(id, false)
		e.queue.add(id)
	}
}

// endWaiting ends an operation that only waits for its next attempt; u.mu is held.
func (e *Engine) endWaiting(u *state, message string) {
	final := u.op.report
	final.Phase, final.FinishedAt, final.Message = rutter.OperationFailed, e.now(), message
	if final.Request.Automated && u.desired != nil {
		u.attempted = u.desired.key // what was ended is not begun again by itself
	}
	u.op, u.last, u.news = nil, &final, true
	u.notify()
}

// within is the context of an operation that began at a time; u.mu is held.
func (e *Engine) within(ctx context.Context, began time.Time) (context.Context, context.CancelFunc) {
	timeout := e.syncs().Timeout
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, max(began.Add(timeout).Sub(e.now()), 0), errTimeout)
}

// overdue ends an operation that waits for its next attempt and has had its time,
// or says how long it has; zero is without end. u.mu is held.
func (e *Engine) overdue(u *state) (left time.Duration, ended bool) {
	timeout := e.syncs().Timeout
	if timeout <= 0 {
		return 0, false
	}
	if left = u.op.report.StartedAt.Add(timeout).Sub(e.now()); left > 0 {
		return max(left, minRetry), false
	}
	e.endWaiting(u, terminated+": "+errTimeout.Error())
	return 0, true
}

// stopMessage says why an operation was stopped, and whether that was meant for it:
// then it is not begun again by itself. u.mu is held.
func (o *operation) stopMessage(ctx context.Context) (message string, meant bool) {
	if cause := context.Cause(ctx); errors.Is(cause, errTimeout) {
		return terminated + ": " + cause.Error(), true
	}
	return terminated, o.terminated
}
