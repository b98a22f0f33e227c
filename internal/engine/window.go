package engine

import (
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/syncwindow"
)

// closed reports whether the sync windows of the unit's project forbid a sync now,
// and how long until they have to be asked again; zero when nothing is going to
// change that. began is when the sync began of which it is the next attempt. What
// runs is not stopped by a window: it goes on to its end. u.mu is held.
func (e *Engine) closed(u *state, req rutter.SyncRequest, began time.Time) (wait time.Duration, closed bool) {
	now, windows := e.now(), u.unit.Windows
	if len(windows) == 0 || req.DryRun || syncwindow.Allows(windows, now, began, !req.Automated) {
		return 0, false
	}
	p := syncwindow.At(windows, now)
	u.window = p.Why
	if p.Until.IsZero() {
		return 0, true
	}
	u.window += ", until " + p.Until.UTC().Format(time.RFC3339)
	return max(p.Until.Sub(now), minRetry), true
}

// refuseClosed ends a sync that a person asks for and a window forbids: it is not
// kept for later, as nobody may expect it then. u.mu is held.
func (e *Engine) refuseClosed(u *state, req rutter.SyncRequest) {
	now := e.now()
	u.last = &rutter.OperationReport{Request: req, Phase: rutter.OperationFailed, StartedAt: now, FinishedAt: now, Partial: true, // nothing was synced
		Message: "blocked by sync window: " + u.window}
	u.news = true
	u.notify()
}
