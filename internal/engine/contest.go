package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/fieldpath"
)

// A field that is put back contestedAfter times within contestWindow is contested:
// somebody writes it again each time. From then on it rests after each further
// repair, each time longer, while everything else goes on being healed. Against a
// tool that works as we do there is nothing to be won: contestedByEngine are
// enough. A field that has been quiet for contestOver is contested no more.
const (
	contestedAfter    = 5
	contestedByEngine = 2
	contestWindow     = 10 * time.Minute
	contestOver       = time.Hour
	restFirst         = 30 * time.Second
	restFactor        = 3
	restMost          = 30 * time.Minute
	// mostDrifted bounds the fields of one object that are remembered.
	mostDrifted = 50
)

// driftLog remembers of the objects of a unit which fields differ since when, and
// how often they were put back.
type driftLog map[rutter.Ref]map[string]*drifted

// drifted is the memory of one field; the empty path is the object as a whole.
type drifted struct {
	since    time.Time // zero while it is as declared
	last     time.Time // when something last happened to it
	manager  string
	healed   []time.Time // the repairs within contestWindow
	mended   bool        // it was put back, and has not been seen to differ since
	returned int
	pauses   int
	rests    time.Time
}

// missing is the only difference of an object that is not there.
var missing = []rutter.FieldDiff{{}}

// differs records what of an object is not as declared at a time.
func (l driftLog) differs(ref rutter.Ref, diffs []rutter.FieldDiff, now time.Time) {
	fields := l[ref]
	if fields == nil {
		fields = map[string]*drifted{}
		l[ref] = fields
	}
	seen := map[string]bool{}
	for _, d := range diffs {
		seen[d.Path] = true
		f := fields[d.Path]
		if f == nil {
			if len(fields) >= mostDrifted {
				continue
			}
			f = &drifted{}
			fields[d.Path] = f
		}
		if f.since.IsZero() {
			f.since, f.last = now, now
		}
		if f.mended {
			f.mended = false
			f.returned++
		}
		if d.Manager != "" && d.Manager != rutter.FieldManager {
			f.manager = d.Manager
		}
	}
	l.settle(ref, func(path string) bool { return seen[path] }, now)
}

// equal records that an object is as declared.
func (l driftLog) equal(ref rutter.Ref, now time.Time) {
	if len(l) > 0 {
		l.settle(ref, func(string) bool { return false }, now)
	}
}

// settle ends the drift of the fields that do not differ any more, and forgets
// those that have been quiet for long.
func (l driftLog) settle(ref rutter.Ref, differs func(path string) bool, now time.Time) {
	fields := l[ref]
	for path, f := range fields {
		if differs(path) {
			continue
		}
		if !f.since.IsZero() {
			f.since, f.last = time.Time{}, now
		}
		if len(f.healed) == 0 && f.pauses == 0 || now.Sub(f.last) > contestOver {
			delete(fields, path)
		}
	}
	if len(fields) == 0 {
		delete(l, ref)
	}
}

// forget is for an object whose fields are to be as declared whatever was before:
// Git declares it anew, or a person has asked for it.
func (l driftLog) forget(ref rutter.Ref) { delete(l, ref) }

// heal records that what differs of an object, and does not rest, is put back. It
// returns the fields that are contested as of now.
func (l driftLog) heal(ref rutter.Ref, now time.Time) (contested []string) {
	for path, f := range l[ref] {
		if f.since.IsZero() || f.rests.After(now) {
			continue
		}
		if now.Sub(f.last) > contestOver {
			f.pauses = 0
		}
		f.last, f.mended = now, true
		f.healed = slices.DeleteFunc(f.healed, func(t time.Time) bool { return now.Sub(t) > contestWindow })
		f.healed = append(f.healed, now)
		limit := contestedAfter
		if rutter.OtherEngine(f.manager) {
			limit = contestedByEngine
		}
		if len(f.healed) < limit && f.pauses == 0 {
			continue
		}
		pause := restFirst
		for range f.pauses {
			pause = min(restFactor*pause, restMost)
		}
		if f.pauses == 0 {
			contested = append(contested, path)
		}
		f.pauses++
		f.rests = now.Add(pause)
	}
	return contested
}

// resting are the fields of an object that are contested and not to be put back
// yet; all is true when nothing else of it differs. until is when the first of
// them may be.
func (l driftLog) resting(ref rutter.Ref, now time.Time) (paths []string, all bool, until time.Time) {
	all = true
	for path, f := range l[ref] {
		switch {
		case f.since.IsZero():
		case f.rests.After(now):
			paths = append(paths, path)
			if until.IsZero() || f.rests.Before(until) {
				until = f.rests
			}
		default:
			all = false
		}
	}
	slices.Sort(paths)
	return paths, all && len(paths) > 0, until
}

// of is the drift of an object, nil when none is known.
func (l driftLog) of(ref rutter.Ref) *rutter.Drift {
	var d *rutter.Drift
	fields := l[ref]
	for _, path := range slices.SortedFunc(maps.Keys(fields), strings.Compare) {
		f := fields[path]
		if f.since.IsZero() {
			continue
		}
		if d == nil {
			d = &rutter.Drift{Since: f.since}
		}
		if f.since.Before(d.Since) {
			d.Since = f.since
		}
		x := rutter.FieldDrift{Path: path, Since: f.since, Returned: f.returned, Manager: f.manager}
		if f.pauses > 0 && f.returned > 0 {
			x.RestsUntil = f.rests
		}
		d.Fields = append(d.Fields, x)
	}
	return d
}

// recall takes over what was remembered before a restart.
func (l driftLog) recall(known map[rutter.Ref]rutter.Drift, now time.Time) {
	for ref, d := range known {
		fields := map[string]*drifted{}
		for _, k := range d.Fields {
			f := &drifted{since: k.Since, last: now, manager: k.Manager, returned: k.Returned, rests: k.RestsUntil}
			if !k.RestsUntil.IsZero() {
				f.pauses = 1
			}
			fields[k.Path] = f
		}
		if len(fields) > 0 {
			l[ref] = fields
		}
	}
}

// driftingSince is when the unit began to differ from what was last synced, zero
// while it does not; and how many fields are contested.
func (l driftLog) driftingSince() (since time.Time, contested int) {
	for _, fields := range l {
		for _, f := range fields {
			if f.since.IsZero() {
				continue
			}
			if since.IsZero() || f.since.Before(since) {
				since = f.since
			}
			if f.pauses > 0 && f.returned > 0 {
				contested++
			}
		}
	}
	return since, contested
}

// noteHeal counts a repair of what differs of some objects, and says once of each
// field that has become contested by it; u.mu is held.
func (e *Engine) noteHeal(u *state, refs []rutter.Ref) {
	e.stats.Heals.Add(int64(len(refs)))
	now := e.now()
	for _, ref := range refs {
		for _, path := range u.drifts.heal(ref, now) {
			f := u.drifts[ref][path]
			e.opts.Logger.Warn("a field is contested", "unit", u.id.String(), "object", ref.String(), "field", orWhole(path),
				"manager", f.manager, "repairs", len(f.healed), "rests", f.rests.Sub(now).String())
		}
	}
}

func orWhole(path string) string {
	if path == "" {
		return "the whole object"
	}
	return path
}

// resting are the rules for sending an object in an operation: those of the unit,
// and in an automated one the contested fields that rest keep their live values.
func (e *Engine) resting(u *state, op *operation, d *desired, ref rutter.Ref) (rules *compare.Rules, rests bool) {
	if !op.report.Request.Automated {
		return d.rules, false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	paths, _, _ := u.drifts.resting(ref, e.now())
	extra := slices.Clip(d.ignore)
	for _, p := range paths {
		if rule, ok := fieldpath.Rule(ref, p); ok {
			extra = append(extra, rule)
		}
	}
	if len(extra) == len(d.ignore) {
		return d.rules, false
	}
	rules, err := compare.NewRules(extra, d.settings)
	if err != nil {
		return d.rules, false // then all is sent: a field that cannot be named cannot rest
	}
	if op.rested == nil {
		op.rested = map[rutter.Ref]bool{}
	}
	op.rested[ref] = true
	return rules, true
}

// contestedWords say which fields of an object are contested, by whom and what
// becomes of them; empty when none is.
func contestedWords(res rutter.ResourceReport) string {
	var parts []string
	for _, f := range res.Drift.Contested() {
		by := ""
		if f.Manager != "" {
			by = ", last by " + f.Manager
		}
		parts = append(parts, fmt.Sprintf("%s came back %d times after it was put back%s; it rests until %s", orWhole(f.Path), f.Returned, by, f.RestsUntil.UTC().Format(time.RFC3339)))
	}
	if len(parts) == 0 {
		return ""
	}
	return res.Ref.String() + " is contested: " + strings.Join(parts, "; ") + ". Everything else goes on being healed"
}

// Drifts calls f for each unit that differs from what it was last synced to, with
// since when and how many of its fields are contested.
func (e *Engine) Drifts(f func(id rutter.UnitID, project, server string, since time.Time, contested int)) {
	for _, u := range e.all() {
		u.mu.Lock()
		since, contested := u.drifts.driftingSince()
		synced := u.desired != nil && u.tried() && u.op == nil
		id, project, server := u.id, u.unit.Project, u.server
		u.mu.Unlock()
		if synced && !since.IsZero() {
			f(id, project, server, since, contested)
		}
	}
}
