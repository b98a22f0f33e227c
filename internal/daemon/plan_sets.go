package daemon

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// generated adds the Applications that a set has once it is reconciled: on the
// base those it generates, on the head what becomes of the base's.
func (p *planner) generated(s *planSide, ps *planSet) []*planUnit {
	var live []*v1alpha1.Application
	if s == p.head {
		live = p.liveOf(ps)
	}
	changes := p.withinBudget(ps, generate.Reconcile(ps.set, ps.result, live, generate.Policy{}))
	var out []*planUnit
	for _, c := range changes {
		app := c.Application
		switch c.Verb {
		case generate.Create, generate.Update:
		case generate.Keep, generate.Hold:
			if c.Err != nil {
				s.problem("set "+ps.name, c.Err)
			}
		case generate.Refuse:
			s.problem("set "+ps.name, c.Err)
		case generate.Delete:
			p.base.removed(p.display(app.Namespace, app.Name), c)
			continue
		}
		if app == nil {
			continue
		}
		if u := p.unit(s, app, ps.from, ps.name); u != nil {
			ps.size++
			out = append(out, u)
		}
	}
	return out
}

// liveOf are the base's Applications as the set finds them: its own, those of
// the same name that a set owned that is gone or does not want them any more,
// and those of nobody.
func (p *planner) liveOf(ps *planSet) []*v1alpha1.Application {
	wanted := map[string]bool{}
	for _, app := range ps.result.Applications {
		wanted[app.Name] = true
	}
	var live []*v1alpha1.Application
	for _, u := range p.base.ordered() {
		if u.app.Namespace != ps.set.Namespace {
			continue
		}
		switch {
		case u.set == ps.name:
			live = append(live, u.app)
		case wanted[u.app.Name] && u.set == "":
			live = append(live, u.app)
		case wanted[u.app.Name] && !p.wants(u.set, u.app.Name):
			free := u.app.DeepCopy()
			free.OwnerReferences = slices.DeleteFunc(free.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller })
			live = append(live, free)
		}
	}
	return live
}

// wants reports whether a set of the head still generates an Application.
func (p *planner) wants(set, name string) bool {
	ps := p.head.sets[set]
	return ps != nil && slices.ContainsFunc(ps.result.Applications, func(a *v1alpha1.Application) bool { return a.Name == name })
}

// handedOn reports whether another set of the head generates an Application
// that one does not any more.
func (p *planner) handedOn(from *planSet, name string) bool {
	for _, other := range p.head.sets {
		if other != from && other.set.Namespace == from.set.Namespace && p.wants(other.name, name) {
			return true
		}
	}
	return false
}

// withinBudget holds the removals of a set that are too many, and takes those out
// that are none because another set takes the Application over.
func (p *planner) withinBudget(ps *planSet, changes []generate.Change) []generate.Change {
	owned, removals := 0, 0
	changes = slices.DeleteFunc(changes, func(c generate.Change) bool {
		return (c.Verb == generate.Delete || c.Verb == generate.Hold) && p.handedOn(ps, c.Name)
	})
	for _, c := range changes {
		if c.Verb != generate.Create && c.Verb != generate.Refuse {
			owned++
		}
		if c.Verb == generate.Delete {
			removals++
		}
	}
	why := overBudget(owned, removals)
	for i, c := range changes {
		if c.Verb == generate.Delete && why != "" {
			changes[i].Verb, changes[i].Reason = generate.Hold, why
		}
		if changes[i].Verb == generate.Hold && c.Err == nil {
			ps.held, ps.why = append(ps.held, p.display(ps.set.Namespace, c.Name)), changes[i].Reason
		}
	}
	return changes
}

// The default deletion budget of a set.
const (
	budgetPercent = 25
	budgetLeast   = 3
)

// overBudget says why a set's removals wait; empty when they do not.
func overBudget(owned, removals int) string {
	allowed := max(budgetLeast, owned*budgetPercent/100)
	switch {
	case removals == 0:
		return ""
	case removals == owned:
		return fmt.Sprintf("all %d Applications would be removed; a set that falls to zero always waits", removals)
	case removals > allowed:
		return fmt.Sprintf("%d of %d Applications would be removed; %d are allowed without approval", removals, owned, allowed)
	}
	return ""
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
			case after != nil && !(after.unit.Policy.Automated && after.unit.Policy.Prune):
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
