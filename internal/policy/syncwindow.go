package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/syncwindow"
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
	schedule, err := syncwindow.ParseSchedule(w.Schedule)
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

// AllWindows are all sync windows of the project, in their order, whomever they
// concern; those that it inherits come last.
func (p *Project) AllWindows() []rutter.SyncWindow {
	out := make([]rutter.SyncWindow, 0, len(p.windows))
	for _, w := range p.windows {
		out = append(out, w.SyncWindow)
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
