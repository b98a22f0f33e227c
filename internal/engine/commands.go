package engine

import (
	"maps"
	"reflect"
	"slices"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// Upsert declares a unit, or declares it anew. A unit that has not changed
// costs a comparison and nothing else.
func (e *Engine) Upsert(unit rutter.Unit) {
	unit.Last = withoutResults(unit.Last)
	e.mu.Lock()
	u := e.units[unit.ID]
	if u == nil {
		u = &state{id: unit.ID, unit: unit, hash: unit.ID.Hash(), instance: unit.Instance, live: map[rutter.Ref]*entry{}, changed: make(chan struct{}),
			refresh: refreshKnown, declaredAt: map[rutter.Ref]string{}, drifts: driftLog{}, news: unit.Last == nil}
		u.drifts.recall(unit.Drifts, e.now())
		e.units[unit.ID] = u
		e.byHash[u.hash] = u
		e.unsettled[u] = unsettled{unit: unit, fresh: true}
		e.mu.Unlock()
		e.subscribe(unit)
		e.queue.add(unit.ID)
		return
	}
	e.mu.Unlock()

	u.mu.Lock()
	same := sameUnit(u.unit, unit)
	u.unit.Asked = unit.Asked
	resubscribe := !reflect.DeepEqual(u.unit.Sources, unit.Sources) || u.unit.Project != unit.Project
	revived := u.deletion != nil
	if !same || revived {
		u.postponed = u.postponed || u.unit.Approves != unit.Approves || !reflect.DeepEqual(u.unit.Budget, unit.Budget) // more may be pruned now
		u.unit, u.deletion, u.news = unit, nil, true
		if u.desired != nil {
			u.unit.Declared = nil // that is known better by now
		}
		u.leaving.Store(u.handing != nil)
		u.refresh = max(u.refresh, refreshKnown)
		e.unsettle(u)
		u.notify()
	}
	u.mu.Unlock()
	if resubscribe {
		e.subscribe(unit)
	}
	if !same || revived {
		e.queue.add(unit.ID)
	}
}

// sameUnit compares declarations; KnownKinds, Last and Drifts come from the status that
// the engine itself caused, and are read at first sight only.
func sameUnit(a, b rutter.Unit) bool {
	a.KnownKinds, b.KnownKinds, a.Last, b.Last, a.Drifts, b.Drifts = nil, nil, nil, nil, nil, nil
	a.Declared, b.Declared = nil, nil
	if (a.Problem == nil) != (b.Problem == nil) || a.Problem != nil && a.Problem.Error() != b.Problem.Error() {
		return false
	}
	a.Problem, b.Problem, a.Asked, b.Asked = nil, nil, false, false
	return reflect.DeepEqual(a, b) //nolint:govet // the errors in it are nil by now
}

func (e *Engine) subscribe(unit rutter.Unit) {
	id := unit.ID
	e.repos.Subscribe(id.String(), reposOf(unit), func(failed bool) { e.Refresh(id, failed) })
}

func reposOf(unit rutter.Unit) []rutter.Repo {
	var repos []rutter.Repo
	for _, s := range unit.Sources {
		if r := s.Repo(unit.Project); !slices.Contains(repos, r) {
			repos = append(repos, r)
		}
	}
	return repos
}

// Remove forgets a unit without touching its objects.
func (e *Engine) Remove(id rutter.UnitID) {
	e.mu.Lock()
	u := e.units[id]
	delete(e.units, id)
	if u != nil {
		delete(e.byHash, u.hash)
		u.leaving.Store(true)
		e.forgetRival(u)
	}
	e.mu.Unlock()
	e.repos.Unsubscribe(id.String())
	e.queue.forget(id)
	if u == nil {
		return
	}
	u.mu.Lock()
	server, refs := u.server, slices.Collect(maps.Keys(u.live))
	u.stop()
	e.leave(u)
	u.mu.Unlock()
	e.released(server, refs)
}

// stop cancels a running operation; u.mu is held.
func (u *state) stop() {
	if u.op != nil && u.op.cancel != nil {
		u.op.cancel()
	}
}

// Sync asks for a manual sync. It replaces one that waits; one that runs goes on first.
func (e *Engine) Sync(id rutter.UnitID, req rutter.SyncRequest) {
	u := e.unit(id)
	if u == nil {
		return
	}
	u.mu.Lock()
	u.request = &req
	u.refresh = max(u.refresh, refreshLatest)
	u.mu.Unlock()
	e.queue.add(id)
}

// Reject records a request that cannot be carried out as an operation that ended in Error.
func (e *Engine) Reject(id rutter.UnitID, req rutter.SyncRequest, err error) {
	u := e.unit(id)
	if u == nil {
		return
	}
	now := e.now()
	u.mu.Lock()
	u.last = &rutter.OperationReport{Request: req, Phase: rutter.OperationError, Message: err.Error(), StartedAt: now, FinishedAt: now}
	u.mu.Unlock()
	e.opts.Changed(id, false)
}

// Refresh compares a unit again. latest asks the remote for new commits first;
// otherwise the revisions that are known by now are used.
func (e *Engine) Refresh(id rutter.UnitID, latest bool) {
	u := e.unit(id)
	if u == nil {
		return
	}
	level := refreshKnown
	if latest {
		level = refreshLatest
	}
	u.mu.Lock()
	u.refresh, u.news = max(u.refresh, level), u.news || latest // who asks for the latest waits for the answer
	e.unsettle(u)
	u.mu.Unlock()
	e.queue.add(id)
}

// RefreshAll compares every unit again for which match is true, as after a
// change of a project, a cluster or a credential.
func (e *Engine) RefreshAll(match func(rutter.Unit) bool) {
	for _, u := range e.all() {
		u.mu.Lock()
		id, hit := u.unit.ID, match(u.unit)
		if hit {
			u.refresh = max(u.refresh, refreshKnown)
			u.rebuild = true
		}
		u.mu.Unlock()
		if hit {
			e.queue.add(id)
		}
	}
}

// RetryFailed looks again at every unit whose sources could not be read or
// rendered, as after a change of credentials.
func (e *Engine) RetryFailed() {
	for _, u := range e.all() {
		u.mu.Lock()
		id, failed := u.unit.ID, u.problem != nil
		if failed {
			u.refresh = refreshLatest
		}
		u.mu.Unlock()
		if failed {
			e.queue.add(id)
		}
	}
}

// Plan returns what a sync of the unit would do now; false when the unit is not
// known or has not been compared yet.
func (e *Engine) Plan(id rutter.UnitID, req rutter.SyncRequest) (rutter.Plan, bool) {
	u := e.unit(id)
	if u == nil {
		return rutter.Plan{}, false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.desired == nil {
		return rutter.Plan{}, false
	}
	return plan.Compute(e.planInput(u, u.desired, req)), true
}

// Settled reports whether a unit has been compared in full since it was
// declared, or cannot be: its report is not going to change by itself.
func (e *Engine) Settled(id rutter.UnitID) bool {
	u := e.unit(id)
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.problem != nil || e.isDown(u.server) && u.server != "" {
		return true
	}
	if u.desired == nil || !e.warmed() {
		return false
	}
	for i := range u.desired.objects {
		o := &u.desired.objects[i]
		if o.Meta.IsHook || o.Meta.Skip || o.KindMissing || o.Refused != "" || e.taint(u.server, o.gvk) != nil {
			continue
		}
		if x := u.live[o.Ref]; x == nil || x.suspect || x.DesiredHash == "" && x.State != rutter.SyncUnknown {
			return false
		}
	}
	return true
}
