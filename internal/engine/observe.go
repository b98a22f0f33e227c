package engine

import (
	"slices"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/inventory"
	"github.com/rutterhq/rutter/internal/plan"
)

// strayKey is a marked object whose unit is not known, or is at another cluster.
type strayKey struct {
	server string
	ref    rutter.Ref
}

// Observed implements rutter.LiveSink: decode, judge, drop. The event goes to
// the unit that the marker names and to every other unit that declares the
// same object.
func (e *Engine) Observed(ev rutter.LiveEvent) {
	hash := ev.Object.GetLabels()[rutter.LabelUnit]
	e.mu.RLock()
	owner := e.byHash[hash]
	e.mu.RUnlock()
	claimants := e.claims.of(claim{ev.Server, rutter.RefOf(ev.Object)})
	owned := false
	if owner != nil {
		owned = e.deliver(owner, ev)
	}
	for _, u := range claimants {
		if u != owner {
			e.deliver(u, ev)
		}
	}
	if owned {
		return
	}
	e.keepStray(hash, ev)
	if owner != nil { // it may have moved to this cluster meanwhile
		owner.mu.Lock()
		if owner.server == ev.Server {
			e.adoptStrays(owner)
		}
		owner.mu.Unlock()
	}
}

// deliver takes the event into a unit; false when the unit is at another cluster.
func (e *Engine) deliver(u *state, ev rutter.LiveEvent) bool {
	u.mu.Lock()
	if u.server != ev.Server {
		u.mu.Unlock()
		return false
	}
	act, report := e.observe(u, ev)
	u.news = u.news || act && report
	id, busy := u.unit.ID, u.op != nil
	u.mu.Unlock()
	e.woken(id, act, report, busy)
	return true
}

// woken tells those whom a change concerns: the queue when something is to be
// done, the status writer when only the picture changed. While a sync runs its
// end is what is reported.
func (e *Engine) woken(id rutter.UnitID, act, report, busy bool) {
	switch {
	case act && !busy:
		e.queue.add(id)
	case report && !busy:
		e.opts.Changed(id, false)
	}
}

func (e *Engine) keepStray(hash string, ev rutter.LiveEvent) {
	if hash == "" {
		return
	}
	key, x := strayKey{ev.Server, rutter.RefOf(ev.Object)}, e.newEntry(ev.GVK, ev.Epoch, ev.Object)
	e.mu.Lock()
	defer e.mu.Unlock()
	if ev.Deleted {
		delete(e.strays[hash], key)
		return
	}
	if e.strays[hash] == nil {
		e.strays[hash] = map[strayKey]entry{}
	}
	e.strays[hash][key] = x
}

// adoptStrays moves what was seen before the unit was known into it; u.mu is held.
func (e *Engine) adoptStrays(u *state) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, s := range e.strays[u.hash] {
		if key.server != u.server {
			continue
		}
		if u.live[key.ref] == nil {
			x := s
			x.State = rutter.SyncUnknown
			x.Reason = "not compared yet"
			u.live[key.ref] = &x
		}
		delete(e.strays[u.hash], key)
	}
}

// newEntry is what is remembered of a live object, without a verdict. Nothing in it
// may keep the object, or a text of it that is larger than what is wanted.
func (e *Engine) newEntry(gvk rutter.GVK, epoch int64, obj *unstructured.Unstructured) entry {
	annotations := obj.GetAnnotations()
	var deleted int64
	if at := obj.GetDeletionTimestamp(); at != nil {
		deleted = at.Unix()
	}
	return entry{
		Verdict: rutter.Verdict{
			Exists: true, UID: string(obj.GetUID()), Deleting: obj.GetDeletionTimestamp() != nil,
			Tracking: e.instance(obj), Health: e.assess(obj),
		},
		gvk: gvk, epoch: epoch, rv: resourceVersion(obj.GetResourceVersion()), meta: e.metaOf(annotations), ceded: compare.Ceded(obj), former: compare.HasFormer(obj),
		owner: ownerOf(obj), hook: keptHook(obj), deletedAt: deleted,
	}
}

// instance is whom the tracking annotation of a live object names, if it is one of
// this very object; in the words of that unit, where its mark is there too.
func (e *Engine) instance(obj *unstructured.Unstructured) string {
	name, ok := inventory.Tracked(obj.GetAnnotations()[rutter.AnnotationTracking], rutter.RefOf(obj))
	if !ok {
		return ""
	}
	if id := obj.GetAnnotations()[rutter.AnnotationInstallation]; id != "" {
		return unique.Make(name + installedBy + id).Value() // one for all objects
	}
	e.mu.RLock()
	u := e.byHash[obj.GetLabels()[rutter.LabelUnit]]
	e.mu.RUnlock()
	if u != nil && u.instance == name {
		return u.instance
	}
	return strings.Clone(name)
}

// metaOf reads the annotations of a live object that steer what becomes of it.
func (e *Engine) metaOf(annotations map[string]string) *plan.Meta {
	if m := plan.MetaOf(annotations); !m.Plain() {
		return &m
	}
	return &e.plain
}

// observe takes one event into a unit; u.mu is held. act is true when something
// must be decided anew, report when only the picture changed.
func (e *Engine) observe(u *state, ev rutter.LiveEvent) (act, report bool) {
	ref := u.desired.named(rutter.RefOf(ev.Object))
	old := u.live[ref]
	if e.excludes(ev.GVK, ev.Server) || old != nil && old.gvk != ev.GVK && old.Exists {
		return false, false // not to be touched, or another version of a kind that is watched in its own
	}
	if ev.Deleted {
		u.buried(ref, resourceVersion(ev.Object.GetResourceVersion()))
		if old == nil || !old.Exists || old.UID != "" && old.UID != string(ev.Object.GetUID()) {
			return false, false
		}
		u.vanished(old.UID, e.lastHealth(old, ev.Object))
		e.drop(u, ref)
		if u.desired.declares(ref) {
			u.drifts.differs(ref, missing, e.now())
		}
		u.notify()
		return true, true
	}
	rv := resourceVersion(ev.Object.GetResourceVersion())
	if old != nil && old.Exists && rv != 0 && rv <= old.rv && old.UID == string(ev.Object.GetUID()) {
		old.epoch = max(old.epoch, ev.Epoch)
		if old.State != rutter.SyncUnknown {
			return false, false
		}
	}
	if e.takenOver(u, ref, ev.Object) {
		e.drop(u, ref)
		u.notify()
		return true, true
	}
	x := e.newEntry(ev.GVK, ev.Epoch, ev.Object)
	e.judge(u, ref, old, &x, ev.Object)
	u.live[ref] = &x
	same := old != nil && old.State == x.State && old.Health == x.Health && old.Deleting == x.Deleting && old.Exists
	if same && x.State == rutter.Synced {
		return false, false
	}
	u.notify()
	return x.State != rutter.Synced && u.desired != nil || u.leaving.Load(), !same
}

// takenOver reports whether an object that the unit no longer declares carries
// the mark of another unit: it is that unit's now, and nothing to prune here.
func (e *Engine) takenOver(u *state, ref rutter.Ref, obj *unstructured.Unstructured) bool {
	if u.desired == nil {
		return false
	}
	_, declared := u.desired.index[ref]
	return !declared && obj.GetLabels()[rutter.LabelUnit] != u.hash
}

// judge gives x its state by comparing obj with what Git declares; u.mu is held.
func (e *Engine) judge(u *state, ref rutter.Ref, old, x *entry, obj *unstructured.Unstructured) {
	if u.desired == nil {
		x.State, x.Reason = rutter.SyncUnknown, "not compared yet"
		return
	}
	i, declared := u.desired.index[ref]
	if !declared {
		x.State, x.Reason = rutter.OutOfSync, "not declared"
		return
	}
	d := u.desired.objects[i]
	if d.gvk != x.gvk {
		x.State, x.Reason = rutter.SyncUnknown, "seen in version "+x.gvk.Version
		return
	}
	x.DesiredHash = d.Hash
	if other := e.foreign(u, obj); other != nil {
		x.foreign = other
		x.State, x.Reason = rutter.OutOfSync, partOfTwo(ref, other.instance, u.instance)
		return
	}
	owned, ok := compare.OwnedHash(obj, rutter.FieldManager, u.desired.rules)
	if ok && old != nil && old.DesiredHash == d.Hash && old.OwnedHash == owned && old.State == rutter.Synced {
		x.State, x.OwnedHash = rutter.Synced, owned
		u.drifts.equal(ref, e.now())
		return
	}
	want, err := e.object(u.unit, u.desired, i)
	if err != nil {
		x.State, x.Reason = rutter.SyncUnknown, err.Error()
		e.renderAgain(u)
		return
	}
	res := compare.Local(want, obj, e.options(u.desired, u.server, d.gvk))
	if res.Equal && !u.desired.webhooks {
		x.State = rutter.Synced
		if res.Owned {
			x.OwnedHash = owned
		}
		u.drifts.equal(ref, e.now())
		return
	}
	x.State, x.Diffs, x.suspect, x.Reason = rutter.OutOfSync, res.Diffs, true, "differs"
	if old != nil && old.claimed != "" && x.owner != nil && *x.owner == *old.owner {
		x.claimed, x.suspect, x.Reason = old.claimed, false, old.claimed
	}
	u.drifts.differs(ref, res.Diffs, e.now())
}

// renderAgain is for manifests that the store has given up: they are made anew;
// u.mu is held.
func (e *Engine) renderAgain(u *state) {
	u.refresh = max(u.refresh, refreshKnown)
	u.rebuild = true
	e.queue.add(u.unit.ID)
}

// Listed implements rutter.LiveSink: what a new listing did not show is gone.
func (e *Engine) Listed(server string, gvk rutter.GVK, epoch int64) {
	e.dropStrays(server, gvk, epoch)
	for _, u := range e.at(server) {
		u.mu.Lock()
		gone, uses := false, u.concerns(gvk)
		for ref, x := range u.live {
			if x.gvk == gvk {
				uses = true
				if x.epoch < epoch && x.Exists {
					u.vanished(x.UID, x.Health)
					e.drop(u, ref)
					gone = true
				}
			}
		}
		if gone {
			u.notify()
		}
		id := u.unit.ID
		u.mu.Unlock()
		if uses {
			e.queue.add(id)
		}
	}
}

// named is ref in the words that are held for it, where it is declared: those of
// an event would keep memory of their own.
func (d *desired) named(ref rutter.Ref) rutter.Ref {
	if d != nil {
		if i, ok := d.index[ref]; ok {
			return d.objects[i].Ref
		}
	}
	return ref
}

// declares reports whether an object is one of those that Git declares.
func (d *desired) declares(ref rutter.Ref) bool {
	if d == nil {
		return false
	}
	_, ok := d.index[ref]
	return ok
}

func (d *desired) uses(gvk rutter.GVK) bool {
	for i := range d.objects {
		if d.objects[i].gvk == gvk {
			return true
		}
	}
	return false
}

// at returns the units of a cluster.
func (e *Engine) at(server string) []*state {
	units := e.all()
	return slices.DeleteFunc(units, func(u *state) bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.server != server
	})
}

// Tainted implements rutter.LiveSink: a kind that cannot be watched is Unknown.
func (e *Engine) Tainted(server string, gvk rutter.GVK, err error) {
	e.reachMu.Lock()
	key := kindKey{server, gvk}
	_, was := e.tainted[key]
	if err == nil {
		delete(e.tainted, key)
	} else {
		e.tainted[key] = err
	}
	e.reachMu.Unlock()
	if was == (err != nil) {
		return
	}
	for _, u := range e.at(server) {
		u.mu.Lock()
		uses := u.concerns(gvk)
		if u.desired != nil && err == nil && u.desired.lacks(gvk) {
			u.rebuild = true
			u.attempted = "" // the kind has appeared: what failed for its lack is tried again
			u.notify()
		}
		id := u.unit.ID
		u.mu.Unlock()
		if uses {
			e.queue.add(id)
		}
	}
}

// concerns reports whether the unit waits for, declares or once managed a kind;
// u.mu is held.
func (u *state) concerns(gvk rutter.GVK) bool {
	return u.desired == nil || u.desired.uses(gvk) || slices.Contains(u.unit.KnownKinds, gvk)
}

// drop forgets a live entry, and the claim that only held it; u.mu is held.
func (e *Engine) drop(u *state, ref rutter.Ref) {
	delete(u.live, ref)
	if u.desired != nil {
		if _, declared := u.desired.index[ref]; declared {
			return
		}
	}
	e.claims.withdraw(u, claim{u.server, ref}, false)
}

// dropStrays forgets marked objects of unknown units that a listing did not show.
func (e *Engine) dropStrays(server string, gvk rutter.GVK, epoch int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, strays := range e.strays {
		for key, x := range strays {
			if key.server == server && x.gvk == gvk && x.epoch < epoch {
				delete(strays, key)
			}
		}
	}
}

// lacks reports whether d holds objects of a kind that was not served.
func (d *desired) lacks(gvk rutter.GVK) bool {
	return slices.ContainsFunc(d.objects, func(o desiredObject) bool { return o.KindMissing && o.gvk == gvk })
}

// Reachable implements rutter.LiveSink.
func (e *Engine) Reachable(server string, err error) {
	e.reachMu.Lock()
	if err == nil {
		delete(e.unreachable, server)
	} else if _, down := e.unreachable[server]; !down {
		e.unreachable[server] = outage{err: err, since: e.now()}
	}
	e.reachMu.Unlock()
	for _, u := range e.at(server) {
		e.queue.add(u.id)
	}
}

func (e *Engine) outage(server string) (outage, bool) {
	e.reachMu.Lock()
	defer e.reachMu.Unlock()
	o, down := e.unreachable[server]
	return o, down
}

func (e *Engine) taint(server string, gvk rutter.GVK) error {
	e.reachMu.Lock()
	defer e.reachMu.Unlock()
	return e.tainted[kindKey{server, gvk}]
}
