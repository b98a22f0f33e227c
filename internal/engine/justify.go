package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// stamp names what d was rendered from: commits, sources and target.
func (d *desired) stamp() string { return rutter.Stamp(d.revisions, d.sources) }

// noteUndeclared remembers of what d no longer declares when it was declared last:
// only two different commits, or declarations, take an object out. A tool that
// gives less for the same commit does not (scenario B43). u.mu is held.
func (u *state) noteUndeclared(d *desired) {
	switch old := u.desired; {
	case old != nil:
		stamp := old.stamp()
		for ref, at := range u.declaredAt { // of what never came to be nothing is kept for long
			if at != stamp && u.live[ref] == nil {
				delete(u.declaredAt, ref)
			}
		}
		for ref := range old.index {
			if !d.declares(ref) {
				u.declaredAt[ref] = stamp
			}
		}
	case u.unit.Declared != nil:
		u.baseline = u.unit.Declared.Stamp
		for _, ref := range u.unit.Declared.Refs {
			if !d.declares(ref) {
				u.declaredAt[ref] = u.baseline
			}
		}
		maps.Copy(u.declaredAt, u.unit.Declared.Undeclared)
		u.unit.Declared = nil
	}
	for ref := range u.declaredAt {
		if d.declares(ref) {
			delete(u.declaredAt, ref)
		}
	}
}

// stampOf is the stamp of when an object was declared last, empty when that is not
// known. What the status does not list, since it was not written in time or has no
// room, was declared no later than what it does. u.mu is held.
func (u *state) stampOf(ref rutter.Ref) string {
	if stamp, known := u.declaredAt[ref]; known {
		return stamp
	}
	if u.desired.declares(ref) {
		return u.desired.stamp()
	}
	return u.baseline
}

// justify says which change of the sources took an object out, or why none that is
// known did. u.mu is held.
func (u *state) justify(ref rutter.Ref, d *desired) (justified, unjustified string) {
	then, now := u.stampOf(ref), d.stamp()
	switch {
	case then == "":
		return "", "it is not known at which commit it was declared"
	case then == now:
		return "", "no commit has taken it out: it was declared at " + shortStamp(now) + " before"
	case revisionsOf(then) == revisionsOf(now):
		return fmt.Sprintf("declared at %s by other sources or for another target", shortStamp(then)), ""
	}
	return fmt.Sprintf("declared at %s, and not at %s", shortStamp(then), shortStamp(now)), ""
}

func revisionsOf(stamp string) string {
	revisions, _, _ := strings.Cut(stamp, "@")
	return revisions
}

// shortStamp are the commits of a stamp as people read them.
func shortStamp(stamp string) string {
	all := strings.Split(revisionsOf(stamp), ",")
	for i, r := range all {
		if len(r) == 40 {
			all[i] = r[:7]
		}
	}
	return strings.Join(all, ",")
}

// heldBack are the prunes of an automated sync that wait for an approval; u.mu is held.
func (e *Engine) heldBack(u *state, d *desired, extras []plan.Extra) *rutter.HeldPrunes {
	policy := u.unit.Policy
	if (!policy.Automated || !policy.Prune) && !u.asked || len(extras) <= u.budget().Limit(0) {
		return nil
	}
	in := e.inputOf(u, d, rutter.SyncRequest{Automated: policy.Automated && policy.Prune, Prune: true}, extras)
	for i := range in.Extras {
		in.Extras[i].Waits = ""
	}
	return plan.Compute(in).Held
}

// budget is how many objects one sync may prune without being asked; u.mu is held.
func (u *state) budget() rutter.Budget {
	if u.unit.Budget == nil {
		return rutter.DefaultPruneBudget()
	}
	return *u.unit.Budget
}

// noteHeld remembers what an operation holds back or, where somebody approved it,
// carries out: what is left of that after a failure is approved too. u.mu is held.
func (u *state) noteHeld(p rutter.Plan, req rutter.SyncRequest) {
	if p.Held != nil {
		u.asked = !req.Automated
		return
	}
	if req.DryRun || !req.Automated && len(req.Resources) > 0 {
		return // what a person chose is no approval of the same by itself
	}
	prunes := map[string]bool{}
	for s := range p.Steps() {
		if s.Action == rutter.ActionPrune {
			prunes[s.UID] = true
		}
	}
	if len(prunes) > 0 {
		u.asked, u.ticket = false, prunes
	}
}

// reportRemovals says what is not pruned by itself, and how it is; u.mu is held.
func (e *Engine) reportRemovals(u *state, r *rutter.Report, extras []plan.Extra) {
	add := func(conditionType, format string, args ...any) {
		r.Conditions = append(r.Conditions, rutter.Condition{Type: conditionType, Message: fmt.Sprintf(format, args...)})
	}
	if held := e.heldBack(u, u.desired, extras); held != nil {
		add(rutter.CondPruneHeld, "%d of %d objects would be pruned, at most %d go without an approval: %s; to prune exactly these: rutter approve app/%s %s -n %s",
			len(held.Refs), held.Of, held.Limit, namesOf(held.Refs), u.id.Name, held.Digest, u.id.Namespace)
	}
	same, unknown := []rutter.Ref(nil), []rutter.Ref(nil)
	for _, x := range extras {
		switch {
		case x.Unjustified == "" || x.Protected != "" || x.Waits != "" || x.Verdict.Deleting || x.Meta.KeepsFromPrune(u.unit.Policy):
		case u.stampOf(x.Ref) == "":
			unknown = append(unknown, x.Ref)
		default:
			same = append(same, x.Ref)
		}
	}
	const wayOut = "not pruned by itself: 'rutter app sync %s -n %s --prune' prunes it, a commit that takes it out does too"
	if len(same) > 0 {
		add(rutter.CondNotJustified, "the same commit %s declared %s before, and declares it no more: %s gives not always the same, or reads something that is not in the commit; "+wayOut,
			shortStamp(u.desired.stamp()), namesOf(same), renderers(u.unit, u.desired), u.id.Name, u.id.Namespace)
	}
	if len(unknown) > 0 && u.unit.Policy.Prune {
		add(rutter.CondNotJustified, "%s carries the marks of the application and is not declared, and it is not known whether a commit has ever declared it; "+wayOut,
			namesOf(unknown), u.id.Name, u.id.Namespace)
	}
}

// renderers are what renders a unit.
func renderers(unit rutter.Unit, d *desired) string {
	var all []string
	for i, t := range d.sourceTypes {
		if p := unit.Sources[i].Plugin; p != nil && p.Name != "" {
			t = "plugin " + p.Name
		}
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return strings.Join(all, ", ")
}
