package preview

import (
	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/plan"
)

// move is an object that a unit stops or begins to declare.
type move struct {
	unit   *Unit
	object *Object
	change *UnitChange
	// stays, when set, is why the object remains although nobody declares it.
	stays string
	// takenBy is the unit's that declares it now.
	takenBy *move
}

func (m *move) place() place { return place{server: m.unit.Server, ref: m.object.Ref()} }

// byRef are the objects of a unit; of two with one identity the last counts, as
// for the engine. Hooks without a name of their own cannot be told apart and
// are left out, and so is what is refused on this side.
func byRef(u *Unit) (map[rutter.Ref]*Object, []rutter.Ref) {
	out := make(map[rutter.Ref]*Object, len(u.Objects))
	var order []rutter.Ref
	for i := range u.Objects {
		ref := u.Objects[i].Ref()
		if ref.Name == "" || u.Objects[i].Refused != "" {
			continue
		}
		if out[ref] == nil {
			order = append(order, ref)
		}
		out[ref] = &u.Objects[i]
	}
	return out, order
}

// compareObjects compares what a unit declares on both sides. At another
// destination everything goes here and comes there.
func (c *comparison) compareObjects(before, after *Unit, change *UnitChange) {
	was, order := byRef(before)
	is, now := byRef(after)
	elsewhere := before.Server != after.Server
	refused := map[rutter.Ref]bool{}
	for _, o := range after.Objects {
		refused[o.Ref()] = o.Refused != ""
	}
	stays := ""
	switch {
	case elsewhere:
		stays = "its Application goes to another cluster, and what it leaves behind is nobody's"
	case !after.Prunes:
		stays = "its Application does not prune by itself"
	}
	for _, ref := range order {
		o := was[ref]
		switch n := is[ref]; {
		case refused[ref] && !elsewhere:
			// It is declared, so it is not pruned; it is refused, so it is not written.
		case n == nil || elsewhere:
			c.gone = append(c.gone, &move{unit: before, object: o, change: change, stays: stays})
		default:
			c.compareObject(before, o, after, n, change)
		}
	}
	for _, ref := range now {
		if was[ref] == nil || elsewhere {
			c.come = append(c.come, &move{unit: after, object: is[ref], change: change})
		}
	}
}

func (c *comparison) compareObject(before *Unit, o *Object, after *Unit, n *Object, change *UnitChange) {
	hadHash, hasHash := compare.Hash(o.Unstructured), compare.Hash(n.Unstructured)
	if hadHash == hasHash {
		return
	}
	x := newChange(Change, after, n)
	x.Before, x.After = o.Unstructured, n.Unstructured
	x.before, x.after = fingerprint(before, o, hadHash), fingerprint(after, n, hasHash)
	x.Fields = objectFields(o.Unstructured, n.Unstructured)
	c.record(x, change)
}

func newChange(verb Verb, u *Unit, o *Object) *ObjectChange {
	gvk, ref := o.GroupVersionKind(), o.Ref()
	return &ObjectChange{Verb: verb, Cluster: u.clusterName(), Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: ref.Namespace, Name: ref.Name,
		Application: u.Name, File: o.Origin.File, Line: o.Origin.Line, Hook: o.Hook, namespaceOf: u.Namespace}
}

func (c *comparison) record(x *ObjectChange, change *UnitChange) {
	c.objects = append(c.objects, x)
	change.Objects.count(x.Verb)
}

// fingerprint is what the digest of a plan knows an object by. That of a Secret
// is made of the inputs it was rendered from: one made of its content could be
// tried with guesses.
func fingerprint(u *Unit, o *Object, hash string) string {
	if isSecret(o.Unstructured) {
		return "rendered from " + u.Inputs
	}
	return hash
}

// handOver pairs objects that one unit stops and another begins to declare:
// those stay. Of the rest, what goes is deleted or left, and what comes is added.
func (c *comparison) handOver() {
	coming := map[place]*move{}
	for _, m := range c.come {
		if m.object.Ref().Name != "" {
			coming[m.place()] = m
		}
	}
	still := c.stillDeclared()
	for _, m := range c.gone {
		if into := coming[m.place()]; into != nil && into.takenBy == nil && !m.object.Hook {
			m.takenBy, into.takenBy = into, m
			c.passed(m, into)
			continue
		}
		c.lost(m, still[m.place()])
	}
	for _, m := range c.come {
		if m.takenBy != nil {
			continue
		}
		x := newChange(Add, m.unit, m.object)
		x.After, x.after = m.object.Unstructured, fingerprint(m.unit, m.object, compare.Hash(m.object.Unstructured))
		c.record(x, m.change)
	}
}

// stillDeclared are the units of the head by what they declare, where that is loaded.
func (c *comparison) stillDeclared() map[place]*Unit {
	if len(c.gone) == 0 {
		return nil
	}
	out := map[place]*Unit{}
	for _, u := range c.head.units {
		for i := range u.Objects {
			out[place{server: u.Server, ref: u.Objects[i].Ref()}] = u
		}
	}
	return out
}

// passed is an object that another unit takes over.
func (c *comparison) passed(from, into *move) {
	old, now := from.object.Unstructured, into.object.Unstructured
	x := newChange(Move, into.unit, into.object)
	x.From, x.Before, x.After = from.unit.Name, old, now
	x.before, x.after = fingerprint(from.unit, from.object, compare.Hash(old)), fingerprint(into.unit, into.object, compare.Hash(now))
	if a, b := unmarked(old), unmarked(now); compare.Hash(a) != compare.Hash(b) {
		x.Verb, x.Fields = Change, objectFields(a, b)
	}
	c.record(x, into.change)
}

// lost is an object that its unit does not declare any more and nobody takes over.
func (c *comparison) lost(m *move, other *Unit) {
	x := newChange(Delete, m.unit, m.object)
	x.Before, x.before = m.object.Unstructured, fingerprint(m.unit, m.object, compare.Hash(m.object.Unstructured))
	switch {
	case m.object.Hook:
		x.Verb, x.Reason = Leave, "it is not run any more"
	case other != nil:
		x.Verb, x.Reason = Leave, other.Name+" declares it too"
	case m.stays != "":
		x.Verb, x.Reason = Leave, m.stays
	case plan.NeverPruned(m.object.Ref()) != "":
		x.Verb, x.Reason = Leave, plan.NeverPruned(m.object.Ref())
	case m.object.Stays:
		x.Verb, x.Reason = Leave, "its annotations say that it is never pruned"
	}
	c.record(x, m.change)
}
