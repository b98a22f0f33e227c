package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/syncwindow"
)

// process looks at a unit: observe, decide, act. It runs for one unit at a time
// and never waits for anything but the ports it asks.
func (e *Engine) process(ctx context.Context, u *state) {
	u.mu.Lock()
	unit, level, rebuild, deleting, handing := u.unit, u.refresh, u.rebuild, u.deletion != nil, u.handing != nil
	u.refresh, u.rebuild = refreshNone, false
	u.mu.Unlock()

	if deleting {
		e.processDeletion(ctx, u, unit, level)
		return
	}
	if handing {
		e.processHandOver(ctx, u, unit)
		return
	}
	if unit.Problem != nil {
		e.fail(u, unit.Problem)
		return
	}
	c, err := e.member(unit)
	if err != nil {
		e.fail(u, err)
		return
	}
	rebuild = e.settleServer(u, c.Info()) || rebuild
	e.renew(ctx, u, unit, c, level, rebuild)
	if !e.warmed() {
		return
	}
	e.learn(ctx, u, c)
	if !e.watchAll(u, c) {
		return // woken by Listed
	}
	e.reclaim(ctx, u, c)
	e.examine(ctx, u, c)
	e.checkNamespace(ctx, u, c)
	e.countOrphans(ctx, u, unit, c, level == refreshLatest)
	e.act(ctx, u, c)
}

// fail records why a unit cannot be looked at; what is live stays.
func (e *Engine) fail(u *state, err error) {
	u.mu.Lock()
	u.problem = err
	u.compared = e.now()
	e.settled(u)
	u.mu.Unlock()
	e.opts.Changed(u.id, false)
}

// settleServer binds the live entries to the unit's cluster, and reports whether
// that is another one than before. A sync that runs there is stopped.
func (e *Engine) settleServer(u *state, info rutter.ClusterInfo) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	server := info.Server
	u.cluster = info
	if u.server == server {
		return false
	}
	u.stop()
	e.leave(u)
	u.server = server
	e.claim(u, u.desired)
	e.adoptStrays(u)
	return true
}

// leave takes back the unit's claims and keeps what is known of its live objects
// for the unit that finds them again; u.mu is held.
func (e *Engine) leave(u *state) {
	e.unclaim(u, u.desired)
	e.mu.Lock()
	for ref, x := range u.live {
		e.claims.withdraw(u, claim{u.server, ref}, false)
		if !x.Exists {
			continue
		}
		if e.strays[u.hash] == nil {
			e.strays[u.hash] = map[strayKey]entry{}
		}
		e.strays[u.hash][strayKey{u.server, ref}] = *x
	}
	e.mu.Unlock()
	u.live = map[rutter.Ref]*entry{}
}

// renew renders when there is a reason to, and keeps the last good desired
// state when that fails: fail closed, keep what is live. What was asked for and
// could not be done is asked for again with the next try.
func (e *Engine) renew(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster, level refresh, rebuild bool) {
	u.mu.Lock()
	needed := level > refreshNone || rebuild || u.desired == nil || u.problem != nil
	u.mu.Unlock()
	if !needed {
		u.mu.Lock()
		e.settled(u)
		u.mu.Unlock()
		return
	}
	d, err := e.render(ctx, u, unit, c, level == refreshLatest, rebuild)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.compared = e.now()
	if err != nil {
		u.refresh, u.rebuild = max(u.refresh, level), u.rebuild || rebuild
		if ctx.Err() != nil {
			return
		}
		if u.problem == nil || u.problem.Error() != err.Error() {
			e.opts.Logger.Warn("cannot render", "unit", unit.ID.String(), "err", err)
		}
		u.problem = err
		u.retries++
		e.settled(u)
		e.queue.addAfter(unit.ID, retryRender(u.retries))
		return
	}
	u.news = u.news || u.problem != nil
	u.problem, u.retries = nil, 0
	if u.desired != nil && u.desired.key == d.key && !rebuild {
		u.desired = d
	} else {
		e.adoptDesired(u, d)
	}
	e.settled(u)
}

// adoptDesired makes d what Git declares; u.mu is held. Verdicts of objects
// whose bytes are the same stay in force.
func (e *Engine) adoptDesired(u *state, d *desired) {
	if u.desired != nil && u.desired.refusals() != d.refusals() {
		u.attempted = "" // what was not allowed may be now
	}
	rules := u.desired == nil || reflect.DeepEqual(u.desired.ignore, d.ignore) && reflect.DeepEqual(u.desired.settings, d.settings)
	e.unclaim(u, u.desired)
	e.claim(u, d)
	u.noteUndeclared(d)
	u.desired = d
	for i := range d.objects {
		o := &d.objects[i]
		x := u.live[o.Ref]
		if x != nil && x.Exists && !rules { // what was judged by other rules is judged anew
			x.State, x.Reason, x.Diffs, x.suspect = rutter.SyncUnknown, "not compared yet", nil, false
			continue
		}
		if x == nil || x.DesiredHash == o.Hash || x.State == rutter.SyncUnknown {
			continue
		}
		x.State, x.Reason, x.Diffs, x.suspect = rutter.OutOfSync, "changed in Git", nil, true
		u.drifts.forget(o.Ref)
	}
	for ref, x := range u.live {
		if e.excludes(x.gvk, u.server) {
			e.drop(u, ref)
			continue
		}
		if _, declared := d.index[ref]; !declared {
			x.State, x.Reason, x.DesiredHash, x.suspect = rutter.OutOfSync, "not declared", "", false
			u.drifts.forget(ref)
		}
	}
	if u.op != nil && u.op.key != d.key && u.op.supersedable() {
		u.supersede()
	}
	u.notify()
}

// watchAll makes sure that every kind of the unit is watched, and reports
// whether all of them have been listed (or are known not to be listable).
func (e *Engine) watchAll(u *state, c rutter.Cluster) bool {
	u.mu.Lock()
	kinds := map[rutter.GVK]bool{} // true: must have been listed
	for _, gvk := range u.unit.KnownKinds {
		kinds[gvk] = true
	}
	if u.desired != nil {
		for i := range u.desired.objects {
			kinds[u.desired.objects[i].gvk] = !u.desired.objects[i].KindMissing
		}
	}
	u.mu.Unlock()
	ready := true
	for gvk, served := range kinds {
		c.Watch(gvk)
		if served && !c.Synced(gvk) && e.taint(c.Info().Server, gvk) == nil {
			ready = false
		}
	}
	if _, down := e.outage(c.Info().Server); down {
		return true
	}
	return ready
}

// examine looks at what has no verdict yet. Objects that an automated sync is
// about to send anyway are not looked at first: the server's answer tells.
func (e *Engine) examine(ctx context.Context, u *state, c rutter.Cluster) {
	u.mu.Lock()
	d, unit := u.desired, u.unit
	if d == nil || u.problem != nil || e.isDown(u.server) {
		u.mu.Unlock()
		return
	}
	willSend := e.willSend(u)
	var look, predict []int
	for i := range d.objects {
		o := &d.objects[i]
		if o.Meta.IsHook || o.Meta.Skip || o.KindMissing || o.Refused != "" || e.taint(u.server, o.gvk) != nil {
			continue
		}
		switch x := u.live[o.Ref]; {
		case x == nil && !willSend, x != nil && x.State == rutter.SyncUnknown:
			look = append(look, i)
		case x != nil && x.suspect && !willSend:
			predict = append(predict, i)
		}
	}
	u.mu.Unlock()
	for _, i := range look {
		if e.look(ctx, u, c, d, i) && !willSend {
			predict = append(predict, i)
		}
	}
	for _, i := range predict {
		e.predict(ctx, u, c, unit, d, i)
	}
	e.lookAgain(u)
}

// lookAgain sees to it that what could not be compared is compared later,
// whether or not anything changes.
func (e *Engine) lookAgain(u *state) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.desired == nil || !u.anyUnknown() {
		u.blind = 0
		return
	}
	u.blind++
	e.queue.addAfter(u.unit.ID, retryRender(u.blind))
}

// anyUnknown reports whether a declared object could not be compared; u.mu is held.
func (u *state) anyUnknown() bool {
	return slices.ContainsFunc(u.desired.objects, func(o desiredObject) bool {
		x := u.live[o.Ref]
		return x != nil && x.State == rutter.SyncUnknown
	})
}

// willSend reports whether an automated sync follows; u.mu is held.
func (e *Engine) willSend(u *state) bool {
	p := u.unit.Policy
	if !syncwindow.Allows(u.unit.Windows, e.now(), time.Time{}, !p.Automated) {
		return false
	}
	if !p.Automated {
		return u.request != nil && !u.request.DryRun
	}
	return u.attempted != u.desired.key || p.SelfHeal
}

// look reads one object that the watch has not shown, or not in a state that
// could be judged. It reports whether the object differs as far as is known here.
func (e *Engine) look(ctx context.Context, u *state, c rutter.Cluster, d *desired, i int) bool {
	o := d.objects[i]
	obj, err := c.Get(ctx, o.gvk, o.Ref.Namespace, o.Ref.Name)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.desired != d {
		return false
	}
	switch {
	case rutter.CodeOf(err) == rutter.CodeNotFound:
		u.live[o.Ref] = &entry{Verdict: rutter.Verdict{State: rutter.OutOfSync, Reason: "missing", DesiredHash: o.Hash}, gvk: o.gvk}
		u.drifts.differs(o.Ref, missing, e.now())
		return false
	case err != nil:
		u.live[o.Ref] = &entry{Verdict: rutter.Verdict{State: rutter.SyncUnknown, Reason: err.Error(), DesiredHash: o.Hash}, gvk: o.gvk}
		return false
	}
	x := e.newEntry(o.gvk, 0, obj)
	if u.outdated(o.Ref, &x) {
		e.queue.add(u.id)
		return false
	}
	e.judge(u, o.Ref, nil, &x, obj)
	u.live[o.Ref] = &x
	return x.suspect
}

// predict asks the server what sending the object would change, which settles
// what a local comparison could not: defaults, webhooks, conversion.
func (e *Engine) predict(ctx context.Context, u *state, c rutter.Cluster, unit rutter.Unit, d *desired, i int) {
	o := d.objects[i]
	want, err := e.object(unit, d, i)
	if err == nil {
		e.stats.DryRuns.Add(1)
		err = e.settle(ctx, u, c, d, i, want)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if x := u.live[o.Ref]; x != nil {
		x.State, x.Reason, x.suspect = rutter.SyncUnknown, fmt.Sprintf("compare on the server: %v", err), false
	}
}

func (e *Engine) settle(ctx context.Context, u *state, c rutter.Cluster, d *desired, i int, want *unstructured.Unstructured) error {
	o := d.objects[i]
	live, err := c.Get(ctx, o.gvk, o.Ref.Namespace, o.Ref.Name)
	if err != nil {
		return fmt.Errorf("read the live object: %w", err)
	}
	sent := compare.Respect(want, live, d.rules)
	predicted, err := e.predicted(ctx, u, c, d, i, sent)
	if err != nil {
		return fmt.Errorf("dry run: %w", err)
	}
	res := compare.Predicted(predicted, live, e.options(d, c.Info().Server, o.gvk))
	u.mu.Lock()
	defer u.mu.Unlock()
	x := e.newEntry(o.gvk, 0, live)
	if u.outdated(o.Ref, &x) {
		e.queue.add(u.id)
		return nil
	}
	x.DesiredHash = o.Hash
	if old := u.live[o.Ref]; old != nil {
		if old.rv > x.rv {
			return nil // something newer has been seen meanwhile
		}
		x.epoch = old.epoch
	}
	x.State, x.Diffs, x.Reason = rutter.OutOfSync, res.Diffs, "differs"
	if res.Equal {
		x.State, x.Reason, x.Diffs = rutter.Synced, "", nil
		if owned, _ := compare.OwnedHash(predicted, rutter.FieldManager, d.rules); owned == ownedOf(live, d) {
			x.OwnedHash = owned // all that is declared is ours already
		}
		u.drifts.equal(o.Ref, e.now())
	} else {
		u.drifts.differs(o.Ref, res.Diffs, e.now())
	}
	u.live[o.Ref] = &x
	u.notify()
	return nil
}

// ownedOf is the hash of what we own of a live object, empty when that is nothing.
func ownedOf(live *unstructured.Unstructured, d *desired) string {
	owned, _ := compare.OwnedHash(live, rutter.FieldManager, d.rules)
	return owned
}

func (e *Engine) isDown(server string) bool {
	_, down := e.outage(server)
	return down
}

// act starts what is due: a manual sync, an automated one, or a repair.
func (e *Engine) act(ctx context.Context, u *state, c rutter.Cluster) {
	u.mu.Lock()
	id := u.unit.ID
	if u.op == nil && u.problem == nil && u.unknownKinds() {
		u.unrecorded = true
		u.mu.Unlock()
		e.opts.Changed(id, false)
		return // Recorded queues it again
	}
	v := e.decide(u, e.isDown(u.server))
	if v.wait > 0 {
		e.queue.addAfter(id, v.wait)
	}
	if v.request == nil {
		minor := v.minor && !u.news
		u.news = u.news && v.running
		if !v.running {
			clear(u.graves) // no answer is on its way any more
		}
		u.mu.Unlock()
		if !v.running {
			e.opts.Changed(id, minor)
			e.tidyHooks(ctx, u, c)
		}
		return
	}
	opCtx, op := e.begin(ctx, u, *v.request)
	d := u.desired
	u.mu.Unlock()
	e.wg.Go(func() { e.operate(opCtx, u, c, op, d) })
}
