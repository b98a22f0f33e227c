package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/health"
)

// Report says everything about a unit as of now; false when it is not known.
func (e *Engine) Report(id rutter.UnitID) (rutter.Report, bool) {
	u := e.unit(id)
	if u == nil {
		return rutter.Report{}, false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	r := rutter.Report{ID: id, Sync: rutter.SyncUnknown, Health: rutter.Health{Status: rutter.HealthUnknown},
		ComparedAt: u.compared, Renders: u.renders, Operation: u.operationReport()}
	e.reportDeletion(u, &r)
	if u.handing != nil && u.handing.problem != nil {
		r.Conditions = append(r.Conditions, rutter.Condition{Type: rutter.CondDeletion, Message: u.handing.problem.Error()})
	}
	if u.desired != nil {
		e.reportDesired(u, &r)
	}
	if u.problem != nil {
		r.Sync = rutter.SyncUnknown
		r.Conditions = append(r.Conditions, u.problemCondition())
	}
	if o, down := e.outage(u.server); down && u.server != "" {
		since := o.since.UTC().Format("2006-01-02T15:04:05Z")
		r.Sync = rutter.SyncUnknown
		r.Health = rutter.Health{Status: rutter.HealthUnknown, Message: "Unreachable since " + since}
		r.Conditions = append(r.Conditions, rutter.Condition{Type: rutter.CondComparison,
			Message: fmt.Sprintf("cluster %s does not answer since %s: %v", u.server, since, o.err)})
	}
	if u.op != nil && !u.op.retryAt.IsZero() {
		r.Conditions = append(r.Conditions, rutter.Condition{Type: rutter.CondSync, Message: u.op.report.Message})
	}
	if u.window != "" {
		r.Conditions = append(r.Conditions, rutter.Condition{Type: rutter.CondWindow, Message: "no sync now: " + u.window})
	}
	if c, ok := u.orphans.condition(u.unit); ok {
		r.Conditions = append(r.Conditions, c)
	}
	if u.orphans != nil {
		r.Orphans = u.orphans.count
	}
	if last := u.last; u.op == nil && last != nil && last.Request.Automated && last.Phase == rutter.OperationFailed && r.Sync != rutter.Synced {
		r.Conditions = append(r.Conditions, rutter.Condition{Type: rutter.CondSync, Message: "Failed last sync attempt to " + strings.Join(last.Revisions, ", ") + ": " + last.Message})
	}
	return r, true
}

// problemCondition is the problem under the type by which the reference shows
// it: a wrong declaration, or whatever keeps a right one from being compared,
// such as a refused login; u.mu is held.
func (u *state) problemCondition() rutter.Condition {
	t := rutter.CondComparison
	if u.unit.Problem != nil && rutter.CodeOf(u.problem) == rutter.CodeForbidden {
		t = rutter.CondInvalidSpec
	}
	return rutter.Condition{Type: t, Message: u.problem.Error()}
}

func (u *state) operationReport() *rutter.OperationReport {
	switch {
	case u.op != nil && u.op.key != "":
		r := u.op.report
		if !u.op.retryAt.IsZero() {
			r.RetryCount++ // the attempt that it waits for counts already (reference 2.1)
		}
		return &r
	case u.last != nil:
		r := *u.last
		return &r
	default:
		return u.unit.Last
	}
}

// reportDesired adds resources, the sync state and the health; u.mu is held.
// Synced is said only when every object has been compared and found equal.
func (e *Engine) reportDesired(u *state, r *rutter.Report) {
	d := u.desired
	r.Revisions, r.SourceTypes, r.Images = d.revisions, d.sourceTypes, d.images
	r.Conditions = append(r.Conditions, d.conditions...)
	r.Sync, r.DeleteHooks = rutter.Synced, d.deleteHooks()
	var items []health.Item
	for i := range d.objects {
		o := &d.objects[i]
		if o.Meta.IsHook && o.Ref.Name != "" {
			r.Resources = append(r.Resources, u.reportHook(o))
		}
		if o.Meta.IsHook || o.Meta.Skip {
			continue
		}
		res := e.reportOne(u, o)
		if len(o.Meta.Unsupported) > 0 {
			r.Conditions = append(r.Conditions, rutter.Condition{Type: rutter.CondUnsupported,
				Message: fmt.Sprintf("%s: %s", o.Ref, strings.Join(o.Meta.Unsupported, "; "))})
		}
		if other := e.claims.other(u, claim{u.server, o.Ref}); other != nil && o.Refused == "" {
			r.Conditions = append(r.Conditions, rutter.Condition{Type: rutter.CondSharedResource, Message: partOfTwo(o.Ref, other.instance, u.instance)})
		}
		if c := toolWords(u.live[o.Ref], o.Ref); c != "" {
			r.Conditions = append(r.Conditions, rutter.Condition{Type: rutter.CondSharedResource, Message: c})
		}
		if c := contestedWords(res); c != "" {
			r.Conditions = append(r.Conditions, rutter.Condition{Type: rutter.CondContested, Message: c})
		}
		r.Sync = worseSync(r.Sync, res.State)
		r.Resources = append(r.Resources, res)
		items = append(items, health.Item{Ref: o.Ref, Health: res.Health, Ignore: o.Meta.IgnoreHealth, Exists: u.live[o.Ref] != nil && u.live[o.Ref].Exists})
	}
	if ref, due := u.namespaceDue(); due {
		r.Sync = worseSync(r.Sync, rutter.OutOfSync)
		r.Resources = append(r.Resources, rutter.ResourceReport{Ref: ref, Version: namespaceKind.Version, State: rutter.OutOfSync, Reason: "managedNamespaceMetadata is not on it"})
	}
	extras := e.extras(u, d)
	e.reportRemovals(u, r, extras)
	for _, x := range extras {
		res := rutter.ResourceReport{Ref: x.Ref, Version: x.Version, State: rutter.OutOfSync, Health: x.Verdict.Health,
			Wave: x.Meta.Wave, RequiresPruning: true, DeclaredAt: u.stampOf(x.Ref), RequiresConfirmation: x.Meta.NeedsConfirmation(u.unit.Policy), Reason: "not declared"}
		if x.Protected != "" {
			continue
		}
		if !x.Meta.IgnoreExtraneous {
			r.Sync = worseSync(r.Sync, rutter.OutOfSync)
		}
		r.Resources = append(r.Resources, res)
		items = append(items, health.Item{Ref: x.Ref, Health: x.Verdict.Health, Ignore: x.Meta.IgnoreHealth, Exists: true})
	}
	for ref, x := range u.live {
		if x.hook != nil && !d.declares(ref) { // it is let go of when its sync is over
			r.Resources = append(r.Resources, rutter.ResourceReport{Ref: ref, Version: x.gvk.Version, Wave: x.meta.Wave, Hook: true, Health: x.Health})
		}
	}
	slices.SortFunc(r.Resources, func(a, b rutter.ResourceReport) int { return a.Ref.Compare(b.Ref) })
	r.Health = health.Aggregate(items)
}

// reportHook is a hook, which has no sync state; u.mu is held.
func (u *state) reportHook(o *desiredObject) rutter.ResourceReport {
	res := rutter.ResourceReport{Ref: o.Ref, Version: o.gvk.Version, Wave: o.Meta.Wave, Hook: true, Origin: o.origin}
	if x := u.live[o.Ref]; x != nil && x.Exists {
		res.Health = x.Health
	}
	return res
}

func (e *Engine) reportOne(u *state, o *desiredObject) rutter.ResourceReport {
	res := rutter.ResourceReport{Ref: o.Ref, Version: o.gvk.Version, Wave: o.Meta.Wave, Origin: o.origin,
		RequiresConfirmation: o.Meta.NeedsConfirmation(u.unit.Policy)}
	x := u.live[o.Ref]
	switch {
	case o.Refused != "":
		res.State, res.Reason = rutter.SyncUnknown, o.Refused
	case o.KindMissing:
		res.State, res.Reason = rutter.OutOfSync, "WaitingForKind: the cluster does not serve "+o.gvk.Kind+" in "+o.gvk.Group+"/"+o.gvk.Version
		res.Health.Status = rutter.Missing
	case e.taint(u.server, o.gvk) != nil:
		res.State, res.Reason = rutter.SyncUnknown, "KindTainted: "+e.taint(u.server, o.gvk).Error()
		res.Health.Status = rutter.HealthUnknown
	case x == nil || !x.Exists && x.State != rutter.SyncUnknown:
		res.State, res.Reason = rutter.OutOfSync, "missing"
		res.Health.Status = rutter.Missing
	default:
		res.State, res.Reason, res.Diffs, res.Health = x.State, x.Reason, x.Diffs, x.Health
		if x.State == rutter.Synced && x.DesiredHash != o.Hash {
			res.State, res.Reason = rutter.OutOfSync, "changed in Git"
		}
	}
	if res.State == rutter.OutOfSync {
		res.Drift = u.drifts.of(o.Ref)
	}
	return res
}

func worseSync(a, b rutter.SyncState) rutter.SyncState {
	rank := map[rutter.SyncState]int{rutter.Synced: 0, rutter.OutOfSync: 1, rutter.SyncUnknown: 2}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// Reports lists the reports of all units, by id.
func (e *Engine) Reports() []rutter.Report {
	var out []rutter.Report
	for _, u := range e.all() {
		if r, ok := e.Report(u.id); ok {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b rutter.Report) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return out
}
