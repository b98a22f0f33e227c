package daemon

import (
	"maps"
	"slices"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// generated adds the Applications that sets have once they are reconciled: on
// the base those they generate, on the head what becomes of the base's.
func (p *planner) generated(s *planSide, sets []*planSet, level int) []*planUnit {
	var live []*v1alpha1.Application
	var all []generate.SetChanges
	policy := generate.Policy{Applications: p.sets.Policy, AllowOverride: p.sets.AllowOverride, Budget: p.sets.Budget,
		PreservedAnnotations: p.sets.PreservedAnnotations, PreservedLabels: p.sets.PreservedLabels,
		HandOver: true, Clusters: p.members(), Projects: s.projectNames(p)}
	if s == p.head {
		for _, u := range p.base.ordered() {
			live = append(live, u.app)
		}
		all = p.gone(s, live, level)
	}
	for _, ps := range sets {
		if policy.Removed = ps.removed; policy.Removed != "" {
			policy.Now = time.Now()
		}
		ps.decision = generate.Decide(ps.set, ps.result, live, policy)
		all = append(all, generate.SetChanges{Set: ps.set, Changes: ps.decision.Changes})
		for _, err := range ps.decision.Errors {
			s.problem("set "+ps.name, err)
		}
	}
	var handovers []generate.Handover
	if s == p.head {
		handovers = generate.Handovers(all, policy.Clusters)
	}
	var out []*planUnit
	for _, ps := range sets {
		out = append(out, p.decided(s, ps, handovers)...)
	}
	return out
}

// gone are the decisions about sets that the head does not declare any more.
// Those that Applications render show on later levels.
func (p *planner) gone(s *planSide, live []*v1alpha1.Application, level int) []generate.SetChanges {
	var out []generate.SetChanges
	for _, name := range slices.Sorted(maps.Keys(p.base.sets)) {
		if set := p.base.sets[name]; s.sets[name] == nil && !set.from.live && (set.from.parent == "" || level > 0) {
			out = append(out, generate.SetChanges{Set: set.set, Changes: generate.Teardown(set.set, live, generate.Policy{})})
		}
	}
	return out
}

// decided adds the Applications of one set.
func (p *planner) decided(s *planSide, ps *planSet, handovers []generate.Handover) []*planUnit {
	given, taken := map[string]bool{}, map[string]*v1alpha1.Application{}
	for _, h := range handovers {
		if h.From.Namespace == ps.set.Namespace && h.From.Set == ps.set.Name {
			given[h.From.Name] = true
		}
		if h.To.Namespace == ps.set.Namespace && h.To.Set == ps.set.Name && h.SameObject() {
			taken[h.To.Name] = h.Application
		}
	}
	held := ps.held(given)
	var out []*planUnit
	for _, c := range ps.decision.Changes {
		app := c.Application
		switch c.Verb {
		case generate.Create, generate.Update:
		case generate.Keep, generate.Hold:
			if given[c.Name] || c.Verb == generate.Hold && c.Err == nil && !held {
				p.base.removed(p.display(ps.set.Namespace, c.Name), c)
				continue
			}
			if c.Err != nil {
				s.problem("set "+ps.name, c.Err)
			}
		case generate.Refuse:
			if app = taken[c.Name]; app == nil {
				s.problem("set "+ps.name, c.Err)
				app = p.own(ps, c.Application)
			}
		case generate.Delete, generate.Release:
			p.base.removed(p.display(ps.set.Namespace, c.Name), c)
			continue
		}
		if app == nil {
			continue
		}
		if u := p.unit(s, app, ps.from, ps.name); u != nil {
			u.held = c.Verb == generate.Hold && c.Err == nil
			ps.size++
			out = append(out, u)
		}
	}
	return out
}

// own is a live Application where it is the set's: what cannot be written stays.
func (p *planner) own(ps *planSet, live *v1alpha1.Application) *v1alpha1.Application {
	if live == nil {
		return nil
	}
	if u := p.base.units[p.display(live.Namespace, live.Name)]; u == nil || u.set != ps.name {
		return nil
	}
	return live
}

// held notes the removals that wait, and reports whether any do. What another
// set takes over is no removal.
func (ps *planSet) held(given map[string]bool) bool {
	h := ps.decision.Held
	if h == nil {
		return false
	}
	rest := slices.DeleteFunc(slices.Clone(h.Names), func(name string) bool { return given[name] })
	if len(rest) == 0 || !h.Over(len(rest)) {
		return false
	}
	ps.waits = rest
	ps.why = h.Why(len(rest))
	return true
}

// members are the clusters, nil when they are not known.
func (p *planner) members() []rutter.ClusterInfo {
	all, err := (&planFacts{p: p}).Clusters()
	if err != nil {
		return nil
	}
	return all
}

// projectNames are those of all projects, nil when only some are known.
func (s *planSide) projectNames(p *planner) []string {
	if p.projects == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.projects))
}

// removed notes what becomes of the objects of an Application that a set lets go.
func (s *planSide) removed(name string, c generate.Change) {
	if u := s.units[name]; u != nil && c.StripFinalizer {
		u.orphans = "its set preserves the objects of what it removes"
	}
}

// lose decides what becomes of the base's Applications that the head does not
// declare any more: where nobody deletes them, they stay.
func (p *planner) lose() {
	for _, u := range p.base.ordered() {
		if p.head.units[u.name] != nil {
			continue
		}
		if u.set != "" && p.head.sets[u.set] == nil {
			p.teardown(u)
		}
		if parent := p.base.units[u.parent]; u.set == "" && parent != nil {
			after := p.head.units[u.parent]
			switch {
			case after != nil && (!after.unit.Policy.Automated || !after.unit.Policy.Prune):
				u.stays = "Application " + u.parent + ", which declared it, does not prune by itself"
			case after == nil && !cascades(parent.app):
				u.stays = "Application " + u.parent + ", which declared it, goes without its objects"
			}
		}
		if u.orphans == "" && !cascades(u.app) {
			u.orphans = "the Application has no resources finalizer"
		}
	}
}

// teardown is for an Application whose set goes.
func (p *planner) teardown(u *planUnit) {
	set := p.base.sets[u.set]
	if set == nil {
		return
	}
	for _, c := range generate.Teardown(set.set, []*v1alpha1.Application{u.app}, generate.Policy{}) {
		switch {
		case c.Verb == generate.Update:
			u.stays = c.Reason
		case c.StripFinalizer:
			u.orphans = "its set preserves the objects of what it removes"
		}
	}
}

// cascades reports whether deleting an Application deletes its objects.
func cascades(app *v1alpha1.Application) bool {
	return slices.ContainsFunc(app.Finalizers, func(f string) bool {
		return f == cascadeFinalizer || f == cascadeFinalizer+"/foreground" || f == cascadeFinalizer+"/background"
	})
}

const cascadeFinalizer = "resources-finalizer.argocd.argoproj.io"

// ordered are the units by name.
func (s *planSide) ordered() []*planUnit {
	out := make([]*planUnit, 0, len(s.units))
	for _, name := range slices.Sorted(maps.Keys(s.units)) {
		out = append(out, s.units[name])
	}
	return out
}
