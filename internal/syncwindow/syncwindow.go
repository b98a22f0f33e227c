package syncwindow

import (
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
)

// Permission is what the sync windows of an application say at one time.
type Permission struct {
	// Automated and Manual say which syncs may begin.
	Automated bool `json:"automated"`
	Manual    bool `json:"manual"`
	// Why names the windows that decide; it is empty where none does.
	Why string `json:"why,omitempty"`
	// Until is when the answer is going to be another one, or has to be asked for
	// again; zero when never.
	Until time.Time `json:"until,omitzero"`
}

// edges bounds how many beginnings and ends of windows are looked at for one
// answer. Where the answer is the same behind all of them, Until is the last.
const edges = 100

// At says what the windows that concern an application allow at a time. An
// active window that denies forbids syncs; without one, an active window that
// allows permits them; and where there are such windows and none is active, they
// are forbidden. A person may sync where every window that forbids it lets them.
func At(windows []rutter.SyncWindow, now time.Time) Permission {
	p := permission(windows, now)
	at := now
	for range edges {
		if at = nextEdge(windows, at); at.IsZero() {
			break
		}
		if q := permission(windows, at); q.Automated != p.Automated || q.Manual != p.Manual {
			break
		}
	}
	p.Until = at
	return p
}

// Allows reports whether a sync may begin, or where it has begun already, go on
// with its next attempt: a window with syncOverrun lets it, if it was allowed to
// begin when it did.
func Allows(windows []rutter.SyncWindow, now, began time.Time, manual bool) bool {
	allowed := func(p Permission) bool { return p.Automated || manual && p.Manual }
	if allowed(permission(windows, now)) {
		return true
	}
	if began.IsZero() || !allowed(permission(windows, began)) {
		return false
	}
	forbid, broken := forbidding(windows, now)
	return !broken && !slices.ContainsFunc(forbid, func(w rutter.SyncWindow) bool { return !w.Overrun })
}

// permission is At without its end.
func permission(windows []rutter.SyncWindow, now time.Time) Permission {
	forbid, broken := forbidding(windows, now)
	switch {
	case len(windows) == 0:
		return Permission{Automated: true, Manual: true}
	case broken:
		return Permission{Why: forbid[0].Name + " cannot be read: " + forbid[0].Problem}
	case len(forbid) == 0:
		for _, w := range windows {
			if !w.Deny && active(w, now) {
				return Permission{Automated: true, Manual: true, Why: "allowed by " + w.Name}
			}
		}
		return Permission{Automated: true, Manual: true}
	}
	why := "denied by "
	if !forbid[0].Deny {
		why = "outside of "
	}
	names := make([]string, 0, len(forbid))
	for _, w := range forbid {
		names = append(names, w.Name)
	}
	manual := !slices.ContainsFunc(forbid, func(w rutter.SyncWindow) bool { return !w.Manual })
	return Permission{Manual: manual, Why: why + strings.Join(names, " and ")}
}

// forbidding are the windows that forbid syncs at a time: one that cannot be
// read, or all active ones that deny, or all that allow when none of them is active.
func forbidding(windows []rutter.SyncWindow, now time.Time) (forbid []rutter.SyncWindow, broken bool) {
	var denying, allowing []rutter.SyncWindow
	open := false
	for _, w := range windows {
		switch {
		case w.Problem != "":
			return []rutter.SyncWindow{w}, true
		case w.Deny && active(w, now):
			denying = append(denying, w)
		case !w.Deny:
			allowing = append(allowing, w)
			open = open || active(w, now)
		}
	}
	switch {
	case len(denying) > 0:
		return denying, false
	case open:
		return nil, false
	}
	return allowing, false
}

// Active reports whether a window counts at a time, and when that changes; zero
// when never.
func Active(w rutter.SyncWindow, now time.Time) (bool, time.Time) {
	until, _ := edgeAfter(w, now)
	return active(w, now), until
}

// active reports whether the window has begun and not ended: its begin counts,
// its end does not.
func active(w rutter.SyncWindow, now time.Time) bool {
	_, ok := lastStart(w.Schedule, w.Zone, now, now.Add(-w.Duration))
	return ok
}

// nextEdge is the earliest time after t at which one of the windows begins or
// ends; zero when there is none.
func nextEdge(windows []rutter.SyncWindow, t time.Time) time.Time {
	var at []time.Time
	for _, w := range windows {
		if w.Problem != "" {
			continue
		}
		if edge, ok := edgeAfter(w, t); ok {
			at = append(at, edge)
		}
	}
	if len(at) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(at, time.Time.Compare)
}

// edgeAfter is the end of a window that is active, and otherwise its next begin.
// A window that begins again before its end goes on.
func edgeAfter(w rutter.SyncWindow, t time.Time) (time.Time, bool) {
	start, ok := lastStart(w.Schedule, w.Zone, t, t.Add(-w.Duration))
	if !ok {
		return nextStart(w.Schedule, w.Zone, t)
	}
	for range edges {
		end := start.Add(w.Duration)
		again, ok := lastStart(w.Schedule, w.Zone, end, start)
		if !ok {
			return end, true
		}
		start = again
	}
	return start.Add(w.Duration), true
}
