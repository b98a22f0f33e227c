package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// window is an entry of spec.syncWindows (2.13).
type window struct {
	rutter.SyncWindow

	applications, namespaces, clusters []pattern
	every                              bool // all lists that there are must match, not one of them
}

func newWindow(w v1alpha1.SyncWindow, where string) window {
	out := window{applications: plainPatterns(w.Applications), namespaces: plainPatterns(w.Namespaces), clusters: plainPatterns(w.Clusters), every: w.UseAndOperator}
	says := []string{w.Kind, w.Schedule, "for " + w.Duration, w.TimeZone}
	if w.Description != "" {
		says = append(says, fmt.Sprintf("%q", w.Description))
	}
	out.SyncWindow = rutter.SyncWindow{
		Name: where + " (" + strings.Join(slices.DeleteFunc(says, func(s string) bool { return s == "" }), " ") + ")",
		Deny: w.Kind == "deny", Manual: w.ManualSync, Overrun: w.SyncOverrun, Zone: time.UTC,
	}
	if zone, err := zoneOf(w.TimeZone); err == nil {
		out.Zone = zone // one that is not known counts as UTC, as in the reference, and is warned of
	}
	var err error
	if out.Schedule, out.Duration, err = readWindow(w); err != nil {
		out.Problem = err.Error()
	}
	for _, list := range [][]pattern{out.applications, out.namespaces, out.clusters} {
		for _, p := range list {
			if p.err != nil {
				out.Problem = fmt.Sprintf("pattern %q cannot be read: %v", p.text, p.err)
			}
		}
	}
	return out
}

// readWindow reads what says when a window is active.
func readWindow(w v1alpha1.SyncWindow) (rutter.Schedule, time.Duration, error) {
	if w.Kind != "allow" && w.Kind != "deny" {
		return rutter.Schedule{}, 0, rutter.Errorf(rutter.CodeInvalid, "kind %q is neither allow nor deny", w.Kind)
	}
	schedule, err := ParseSchedule(w.Schedule)
	if err != nil {
		return schedule, 0, err
	}
	length, err := time.ParseDuration(w.Duration)
	if err != nil || length <= 0 {
		return schedule, 0, rutter.Errorf(rutter.CodeInvalid, "duration %q is not a time such as 30m or 8h", w.Duration)
	}
	return schedule, length, nil
}

// zoneOf finds a time zone by its IANA name; without one it is UTC.
func zoneOf(name string) (*time.Location, error) {
	if name == "Local" { // where this process runs says nothing to who wrote it
		return nil, rutter.Errorf(rutter.CodeInvalid, "time zone %q is not a name such as Europe/Berlin", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "time zone %q is not known: write a name such as Europe/Berlin", name)
	}
	return zone, nil
}

// Windows are the sync windows of the project that concern an application. The
// cluster is matched by its server and by its name, as the destination says it
// and as it is registered; cluster is nil where it is not known.
func (p *Project) Windows(app string, target rutter.Target, cluster *rutter.ClusterInfo) []rutter.SyncWindow {
	names := []string{target.Server, target.Name}
	if cluster != nil {
		names = append(names, cluster.Server, cluster.Name)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	var out []rutter.SyncWindow
	for _, w := range p.windows {
		if w.concerns(app, target.Namespace, names) {
			out = append(out, w.SyncWindow)
		}
	}
	return out
}

// concerns: one of the lists must match, or with andOperator every list that
// there is. A pattern that cannot be read matches: the window then has a problem,
// and that must not be overlooked.
func (w window) concerns(app, namespace string, clusters []string) bool {
	lists, matching := 0, 0
	for _, l := range []struct {
		patterns []pattern
		values   []string
	}{{w.applications, []string{app}}, {w.namespaces, []string{namespace}}, {w.clusters, clusters}} {
		if len(l.patterns) == 0 {
			continue
		}
		lists++
		if slices.ContainsFunc(l.patterns, func(p pattern) bool {
			return slices.ContainsFunc(l.values, func(v string) bool { return p.match(v).denies() })
		}) {
			matching++
		}
	}
	if w.every {
		return lists > 0 && matching == lists
	}
	return matching > 0
}

// SyncPermission is what the sync windows of an application say at one time.
type SyncPermission struct {
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

// SyncAt says what the windows that concern an application allow at a time. An
// active window that denies forbids syncs; without one, an active window that
// allows permits them; and where there are such windows and none is active, they
// are forbidden. A person may sync where every window that forbids it lets them.
func SyncAt(windows []rutter.SyncWindow, now time.Time) SyncPermission {
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

// MaySync reports whether a sync may begin, or where it has begun already, go on
// with its next attempt: a window with syncOverrun lets it, if it was allowed to
// begin when it did.
func MaySync(windows []rutter.SyncWindow, now, began time.Time, manual bool) bool {
	allowed := func(p SyncPermission) bool { return p.Automated || manual && p.Manual }
	if allowed(permission(windows, now)) {
		return true
	}
	if began.IsZero() || !allowed(permission(windows, began)) {
		return false
	}
	forbid, broken := forbidding(windows, now)
	return !broken && !slices.ContainsFunc(forbid, func(w rutter.SyncWindow) bool { return !w.Overrun })
}

// permission is SyncAt without its end.
func permission(windows []rutter.SyncWindow, now time.Time) SyncPermission {
	forbid, broken := forbidding(windows, now)
	switch {
	case len(windows) == 0:
		return SyncPermission{Automated: true, Manual: true}
	case broken:
		return SyncPermission{Why: forbid[0].Name + " cannot be read: " + forbid[0].Problem}
	case len(forbid) == 0:
		for _, w := range windows {
			if !w.Deny && active(w, now) {
				return SyncPermission{Automated: true, Manual: true, Why: "allowed by " + w.Name}
			}
		}
		return SyncPermission{Automated: true, Manual: true}
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
	return SyncPermission{Manual: manual, Why: why + strings.Join(names, " and ")}
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
