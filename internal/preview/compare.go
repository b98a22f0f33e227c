package preview

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
)

// Compare says what would happen to the fleet if the head took the base's place.
func Compare(base, head Side) Plan {
	c := &comparison{base: index(base), head: index(head), plan: Plan{Schema: Schema,
		Base: Revision{base.Name, base.Revision}, Head: Revision{head.Name, head.Revision}}}
	c.projects(base.Projects, head.Projects)
	c.sets(base.Sets, head.Sets)
	c.units()
	c.handOver()
	c.renames()
	c.refusals()
	c.problems(base.Problems, head.Problems)
	c.conclude()
	return c.plan
}

// comparison is one run of Compare.
type comparison struct {
	base, head side
	plan       Plan
	// changes are those of the Applications that both or one of the sides have, by name.
	changes []*UnitChange
	// gone and come are objects that one unit stops and another begins to declare.
	gone, come []*move
	objects    []*ObjectChange
}

// side is a Side to look things up in.
type side struct {
	units  []*Unit
	byName map[string]*Unit
}

func index(s Side) side {
	out := side{byName: make(map[string]*Unit, len(s.Units))}
	for i := range s.Units {
		u := &s.Units[i]
		out.units = append(out.units, u)
		out.byName[u.Name] = u
	}
	slices.SortFunc(out.units, func(a, b *Unit) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (c *comparison) projects(base, head []Project) {
	before := map[string]Project{}
	for _, p := range base {
		before[p.Name] = p
	}
	for _, p := range head {
		old, had := before[p.Name]
		delete(before, p.Name)
		change := ProjectChange{Verb: Add, Name: p.Name, File: p.File, declared: hashOf(p.Declaration)}
		if had {
			change.Verb, change.Fields = Change, fieldsOf(old.Declaration, p.Declaration)
		}
		if !had || len(change.Fields) > 0 {
			c.plan.Projects = append(c.plan.Projects, change)
		}
	}
	for _, p := range before {
		c.plan.Projects = append(c.plan.Projects, ProjectChange{Verb: Delete, Name: p.Name, File: p.File})
	}
}

func (c *comparison) sets(base, head []Set) {
	before := map[string]Set{}
	for _, s := range base {
		before[s.Name] = s
	}
	for _, s := range head {
		old, had := before[s.Name]
		delete(before, s.Name)
		change := SetChange{Verb: Add, Name: s.Name, File: s.File, Before: old.Size, After: s.Size, declared: hashOf(s.Declaration)}
		if had {
			change.Verb, change.Fields = Change, fieldsOf(old.Declaration, s.Declaration)
		}
		if s.Held != nil {
			held := *s.Held
			held.Risks = c.heldRisks(held)
			c.plan.Held = append(c.plan.Held, held)
		}
		if !had || len(change.Fields) > 0 || old.Size != s.Size {
			c.plan.Sets = append(c.plan.Sets, change)
		}
	}
	for _, s := range before {
		c.plan.Sets = append(c.plan.Sets, SetChange{Verb: Delete, Name: s.Name, File: s.File, Before: s.Size})
	}
}

func (c *comparison) units() {
	for _, u := range c.base.units {
		switch after := c.head.byName[u.Name]; {
		case after == nil:
			c.removed(u)
		case u.Key != after.Key || u.Set != after.Set || u.Parent != after.Parent:
			c.changed(u, after)
		}
	}
	for _, u := range c.head.units {
		if c.base.byName[u.Name] == nil {
			c.added(u)
		}
	}
}

func (c *comparison) add(change UnitChange) *UnitChange {
	c.changes = append(c.changes, &change)
	return &change
}

func (c *comparison) removed(u *Unit) {
	change := c.add(UnitChange{Verb: Delete, Name: u.Name, Set: u.Set, Parent: u.Parent, File: u.File, Cluster: u.Cluster})
	why := u.Orphans
	switch {
	case u.Stays != "":
		change.Verb, change.Reason = Leave, u.Stays
		why = u.Stays
	case u.Orphans != "":
		change.Reason = "its objects stay: " + u.Orphans
	}
	for i := range u.Objects {
		if u.blind() || u.Objects[i].Refused != "" {
			continue // it is not there
		}
		c.gone = append(c.gone, &move{unit: u, object: &u.Objects[i], change: change, stays: why})
	}
}

func (c *comparison) added(u *Unit) {
	change := c.add(UnitChange{Verb: Add, Name: u.Name, Set: u.Set, Parent: u.Parent, File: u.File, Cluster: u.Cluster, Manual: u.Manual,
		declared: hashOf(u.Declaration)})
	for i := range u.Objects {
		if u.blind() || u.Objects[i].Refused != "" {
			continue // it is not sent
		}
		c.come = append(c.come, &move{unit: u, object: &u.Objects[i], change: change})
	}
}

func (c *comparison) changed(before, after *Unit) {
	change := &UnitChange{Verb: Change, Name: after.Name, Set: after.Set, Parent: after.Parent, File: after.File, Cluster: after.Cluster,
		Manual: after.Manual, declared: hashOf(after.Declaration), Fields: fieldsOf(before.Declaration, after.Declaration)}
	if before.Set != after.Set {
		change.Verb, change.From, change.FromSet = Move, before.Name, before.Set
	}
	count := len(c.objects) + len(c.gone) + len(c.come)
	if !before.blind() && !after.blind() {
		c.compareObjects(before, after, change)
	}
	if change.Verb == Move || len(change.Fields) > 0 || before.Parent != after.Parent || count < len(c.objects)+len(c.gone)+len(c.come) {
		c.changes = append(c.changes, change)
	}
}

// refusals are those of the head; those that the base has too are known.
func (c *comparison) refusals() {
	known := map[Refusal]bool{}
	for _, r := range refusalsOf(c.base.units) {
		known[r] = true
	}
	for _, r := range refusalsOf(c.head.units) {
		r.Known = known[r]
		c.plan.Refused = append(c.plan.Refused, r)
	}
}

func refusalsOf(units []*Unit) []Refusal {
	var out []Refusal
	for _, u := range units {
		if u.Refused != "" {
			out = append(out, Refusal{Application: u.Name, Cluster: u.Cluster, Reason: u.Refused})
			continue
		}
		for _, o := range u.Objects {
			if o.Refused != "" {
				out = append(out, Refusal{Application: u.Name, Object: o.Ref().String(), Cluster: u.Cluster, Reason: o.Refused})
			}
		}
	}
	return out
}

// problems are known when the base has the same, and what they are about is as
// it was: then the change does not bring them.
func (c *comparison) problems(base, head []Problem) {
	known := map[Problem]bool{}
	for _, p := range base {
		known[p] = true
	}
	touched := map[string]bool{}
	for _, u := range c.changes {
		touched[u.Name] = true
	}
	for _, p := range head {
		same := known[p]
		p.Known = same && !touched[p.Where]
		delete(known, Problem{Where: p.Where, Message: p.Message})
		c.plan.Problems = append(c.plan.Problems, p)
	}
	for _, p := range base {
		// What only the base could not look at hides what was there before.
		if u := c.base.byName[p.Where]; known[p] && u != nil && u.Failed {
			c.plan.Problems = append(c.plan.Problems, Problem{Where: p.Where, Message: "as it is in the base, it could not be looked at: " + p.Message})
		}
	}
}

// conclude puts everything in order and counts.
func (c *comparison) conclude() {
	p := &c.plan
	for _, o := range c.objects {
		p.Objects = append(p.Objects, *o)
	}
	slices.SortFunc(p.Objects, compareObjectChanges)
	clusters := map[string]bool{}
	for _, o := range p.Objects {
		p.Summary.Objects.count(o.Verb)
		clusters[o.Cluster] = true
	}
	for _, u := range c.changes {
		p.Applications = append(p.Applications, *u)
		p.Summary.Applications.count(u.Verb)
	}
	slices.SortFunc(p.Applications, func(a, b UnitChange) int {
		return cmp.Or(cmp.Compare(rank(a.Verb), rank(b.Verb)), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(p.Sets, func(a, b SetChange) int {
		return cmp.Or(cmp.Compare(rank(a.Verb), rank(b.Verb)), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(p.Projects, func(a, b ProjectChange) int {
		return cmp.Or(cmp.Compare(rank(a.Verb), rank(b.Verb)), cmp.Compare(a.Name, b.Name))
	})
	for _, s := range p.Sets {
		p.Summary.Sets.count(s.Verb)
	}
	for _, s := range p.Projects {
		p.Summary.Projects.count(s.Verb)
	}
	p.Risks = append(objectRisks(p.Objects), c.unitRisks()...)
	slices.SortStableFunc(p.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Where, b.Where), cmp.Compare(a.Message, b.Message))
	})
	p.Groups = append(groupUnits(p.Applications), groupObjects(p.Objects)...)
	p.Summary.Clusters, p.Summary.Total = len(clusters), len(c.head.units)
	p.Summary.Risks = len(p.Risks)
	for _, r := range p.Refused {
		if !r.Known {
			p.Summary.Refused++
		}
	}
	for _, h := range p.Held {
		p.Summary.Held += len(h.Applications)
	}
	for _, e := range p.Problems {
		if !e.Known {
			p.Summary.Errors++
		}
	}
	p.Digest = digest(*p)
	if n := manual(p.Applications); n > 0 {
		p.Notes = append(p.Notes, plural(n, "application")+" of these wait until somebody syncs them.")
	}
	p.lists()
}

// manual counts the Applications that change only when somebody syncs them.
func manual(changes []UnitChange) int {
	n := 0
	for _, c := range changes {
		if c.Manual && c.Objects.total() > 0 {
			n++
		}
	}
	return n
}

// lists makes lists without members such as JSON has them: empty, not absent.
func (p *Plan) lists() {
	p.Risks, p.Held, p.Refused, p.Problems = orNone(p.Risks), orNone(p.Held), orNone(p.Refused), orNone(p.Problems)
	p.Projects, p.Sets, p.Applications, p.Objects = orNone(p.Projects), orNone(p.Sets), orNone(p.Applications), orNone(p.Objects)
	p.Groups, p.Notes = orNone(p.Groups), orNone(p.Notes)
}

func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// rank puts what is lost before what is won.
func rank(v Verb) int { return slices.Index([]Verb{Delete, Leave, Move, Change, Add}, v) }

func compareObjectChanges(a, b ObjectChange) int {
	return cmp.Or(cmp.Compare(rank(a.Verb), rank(b.Verb)), cmp.Compare(a.Cluster, b.Cluster), a.Ref().Compare(b.Ref()),
		cmp.Compare(a.Application, b.Application))
}

// renames finds Applications that went and came again under another name, with
// the same objects at the same place: they are handed over and not made anew.
func (c *comparison) renames() {
	to := map[*UnitChange]map[*UnitChange]int{}
	for _, m := range c.gone {
		if m.takenBy != nil && m.change.Verb == Delete && m.takenBy.change.Verb == Add {
			if to[m.change] == nil {
				to[m.change] = map[*UnitChange]int{}
			}
			to[m.change][m.takenBy.change]++
		}
	}
	dropped := map[*UnitChange]bool{}
	for _, from := range slices.Clone(c.changes) {
		for into, n := range to[from] {
			before, after := c.base.byName[from.Name], c.head.byName[into.Name]
			if n != len(before.Objects) || n != len(after.Objects) || into.Verb != Add {
				continue
			}
			into.Verb, into.From, into.Reason = Move, from.Name, ""
			if before.Set != after.Set {
				into.FromSet = before.Set
			}
			into.Fields = fieldsOf(before.Declaration, after.Declaration)
			into.declared = hashOf(after.Declaration)
			into.Objects = Counts{Move: into.Objects.Move, Change: into.Objects.Change}
			dropped[from] = true
		}
	}
	c.changes = slices.DeleteFunc(c.changes, func(u *UnitChange) bool { return dropped[u] })
}

// clusterName is a unit's cluster for people.
func (u *Unit) clusterName() string { return cmp.Or(u.Cluster, u.Server) }

// place is one object of one cluster.
type place struct {
	server string
	ref    rutter.Ref
}

func hookPrefix(hook bool) string {
	if hook {
		return "hook "
	}
	return ""
}

// objectName is kind/name and, where there is one, the namespace.
func objectName(ref rutter.Ref) string {
	var b strings.Builder
	b.WriteString(ref.Kind + "/")
	if ref.Namespace != "" {
		b.WriteString(ref.Namespace + "/")
	}
	b.WriteString(ref.Name)
	return b.String()
}
