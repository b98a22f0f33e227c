package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// verdictOn is what to do for a unit now.
type verdictOn struct {
	request *rutter.SyncRequest // start this sync
	wait    time.Duration       // look again then
	running bool                // a sync runs; its end will be reported
	minor   bool                // nothing but the revision can have changed
}

// decide follows reference 2.12, in order. u.mu is held. A sync that was tried
// for the same declaration and manifests is not tried again unless the unit
// heals itself.
func (e *Engine) decide(u *state, down bool) verdictOn {
	u.window = ""
	switch {
	case u.op != nil:
		return e.decideRunning(u, down)
	case u.leaving.Load() || u.desired == nil || down:
		return verdictOn{}
	case u.request != nil && u.problem == nil:
		req := *u.request
		u.request = nil
		if wait, closed := e.closed(u, req, time.Time{}); closed {
			e.refuseClosed(u, req)
			return verdictOn{wait: wait}
		}
		return verdictOn{request: &req}
	case u.problem != nil:
		return verdictOn{}
	}
	if v, resumes := e.decideInterrupted(u); resumes || !u.unit.Policy.Automated {
		return v
	}
	differ, prune, waits := e.differing(u)
	u.postponed = u.postponed || waits
	if len(differ)+len(prune) == 0 {
		if u.anyUnknown() {
			return verdictOn{} // not all is known: this is no answer yet
		}
		u.attempted = u.desired.key
		return verdictOn{minor: true}
	}
	auto := rutter.SyncRequest{Automated: true, Prune: u.unit.Policy.Prune, Retry: u.unit.Policy.Retry}
	if len(differ) == 0 && !auto.Prune {
		u.attempted = u.desired.key
		return verdictOn{}
	}
	postponed, v := u.postponed, verdictOn{request: &auto}
	if u.tried() {
		if u.postponed && auto.Prune && len(prune) > 0 {
			u.postponed, auto.Resources = false, prune
		} else {
			v = e.heal(u, auto, differ, prune)
		}
	}
	if v.request == nil {
		return v
	}
	if wait, closed := e.closed(u, auto, time.Time{}); closed {
		u.postponed = postponed
		return verdictOn{wait: wait}
	}
	return v
}

// minRetry keeps a wait that is all but over from becoming a busy loop.
const minRetry = 50 * time.Millisecond

func (e *Engine) decideRunning(u *state, down bool) verdictOn {
	if u.op.retryAt.IsZero() {
		return verdictOn{running: true}
	}
	if u.op.report.Request.Automated && !u.unit.Policy.Automated && u.request == nil {
		return e.giveUp(u)
	}
	left, ended := e.overdue(u)
	if ended {
		return e.decide(u, down)
	}
	if d := u.op.retryAt.Sub(e.now()); d > 0 && !u.op.superseded && u.request == nil {
		if left > 0 {
			d = min(d, left)
		}
		return verdictOn{wait: max(d, minRetry)}
	}
	// A newer state, a request of a person, or the time has come: try again.
	req := u.op.report.Request
	if u.op.superseded && req.Automated && u.request == nil {
		u.replaced, u.op = u.op.replaces(), nil
		return e.decide(u, down) // by the policy of now
	}
	began := u.op.report.StartedAt
	if u.request != nil {
		req, began = *u.request, time.Time{}
	}
	if wait, closed := e.closed(u, req, began); closed {
		return verdictOn{wait: wait}
	}
	retries, started := u.op.report.RetryCount+1, u.op.report.StartedAt
	if u.op.superseded {
		retries = 0
	}
	if u.request != nil {
		retries, started, u.request = 0, e.now(), nil
	} else if req.Retry.Refresh {
		req.Revision, req.Revisions = "", nil // the newest, in the place of the chosen one
	}
	u.op = &operation{cancel: func() {}, report: rutter.OperationReport{RetryCount: retries, StartedAt: started}}
	return verdictOn{request: &req}
}

// giveUp ends an automated sync that waits for its next attempt when somebody
// has turned automated syncs off meanwhile. u.mu is held.
func (e *Engine) giveUp(u *state) verdictOn {
	e.endWaiting(u, "no further attempt is made, as automated sync was turned off: "+u.op.report.Message)
	return verdictOn{}
}

// tried reports whether an automated sync of this state has ended already, now
// or, by the recorded status, before a restart.
func (u *state) tried() bool {
	if u.attempted == u.desired.key {
		return true
	}
	last := u.unit.Last
	return u.attempted == "" && last != nil && last.Phase == rutter.OperationSucceeded && !last.Partial &&
		slices.Equal(last.Revisions, u.desired.revisions)
}

// heal starts a repair of exactly what differs, but for what is contested and rests.
// u.mu is held.
func (e *Engine) heal(u *state, req rutter.SyncRequest, differ, prune []rutter.Ref) verdictOn {
	now := e.now()
	if !u.unit.Policy.SelfHeal || u.last != nil && !u.last.Partial && u.last.Phase != rutter.OperationSucceeded && u.attempted == u.desired.key {
		return verdictOn{}
	}
	var soonest time.Duration
	for _, ref := range differ {
		_, all, until := u.drifts.resting(ref, now)
		if w := until.Sub(now); all && w > 0 {
			if soonest == 0 || w < soonest {
				soonest = w
			}
			continue
		}
		req.Resources = append(req.Resources, ref)
	}
	if req.Prune {
		req.Resources = append(req.Resources, prune...)
	}
	if len(req.Resources) == 0 {
		return verdictOn{wait: soonest}
	}
	req.SelfHeal = true
	if wait := e.healPause(u, &req); wait > 0 {
		return verdictOn{wait: max(wait, minRetry)}
	}
	return verdictOn{request: &req, wait: soonest}
}

// healPause counts the repairs since the last sync that was none, and is how long
// the next one has to wait, where an operator sets pauses; u.mu is held.
func (e *Engine) healPause(u *state, req *rutter.SyncRequest) time.Duration {
	last := u.last
	if last == nil {
		last = u.unit.Last
	}
	if last != nil && last.Request.SelfHeal {
		req.Attempt = last.Request.Attempt + 1
	}
	pauses := e.syncs().Heal
	if pauses == nil || last == nil {
		return 0
	}
	return last.FinishedAt.Add(pauses.Before(req.Attempt)).Sub(e.now())
}

// differing lists what is not as declared, and what could be pruned; waits says
// that there is more of that, later. u.mu is held.
func (e *Engine) differing(u *state) (differ, prune []rutter.Ref, waits bool) {
	for i := range u.desired.objects {
		o := &u.desired.objects[i]
		if o.Meta.IsHook || o.Meta.Skip || o.Refused != "" {
			continue
		}
		if x := u.live[o.Ref]; x == nil || x.differs(o.Hash) && (x.foreign == nil && x.claimed == "" || u.attempted != u.desired.key) {
			differ = append(differ, o.Ref)
		}
	}
	if ref, due := u.namespaceDue(); due {
		differ = append(differ, ref)
	}
	extras := e.extras(u, u.desired)
	held := e.heldBack(u, u.desired, extras)
	for _, x := range extras {
		waits = waits || x.Waits != ""
		if x.Protected == "" && x.Waits == "" && held == nil && x.Unjustified == "" && !x.Verdict.Deleting && !x.Meta.KeepsFromPrune(u.unit.Policy) {
			prune = append(prune, x.Ref)
		}
	}
	return differ, prune, waits
}

// differs reports whether the object is not as declared: missing, edited, or
// equal to an older declaration. What could not be compared is not known to differ.
func (x *entry) differs(hash string) bool {
	switch {
	case x.State == rutter.SyncUnknown:
		return false
	case !x.Exists || x.State == rutter.OutOfSync:
		return true
	default:
		return x.DesiredHash != hash
	}
}

// extras are live objects of ours that d does not declare; u.mu is held. What
// another unit declares is left to that one, and what one may be about to
// declare is left alone until that is known.
func (e *Engine) extras(u *state, d *desired) []plan.Extra {
	var extras []plan.Extra
	for ref, x := range u.live {
		if _, declared := d.index[ref]; declared || !x.Exists || x.meta.IsHook || d.unsure(ref) {
			continue
		}
		extra := plan.Extra{Ref: ref, Version: x.gvk.Version, Verdict: x.Verdict, Meta: *x.meta, Protected: e.protected(u, ref, x.Verdict)}
		if other := e.claims.other(u, claim{u.server, ref}); other != nil && extra.Protected == "" {
			extra.Protected = "it is declared by application " + other.instance
		}
		extra.Justified, extra.Unjustified = u.justify(ref, d)
		extras = append(extras, extra)
	}
	e.awaitRivals(u, extras)
	slices.SortFunc(extras, func(a, b plan.Extra) int { return a.Ref.Compare(b.Ref) })
	return extras
}

// unsure reports whether ref is of a kind that was not served when d was built:
// whether such an object has a namespace was a guess, and so is its identity.
func (d *desired) unsure(ref rutter.Ref) bool {
	return slices.ContainsFunc(d.objects, func(o desiredObject) bool {
		return o.KindMissing && o.Ref.Kind == ref.Kind && o.Ref.Group == ref.Group
	})
}

// refusals is why objects may not be applied, as one text to compare.
func (d *desired) refusals() string {
	var b strings.Builder
	for i := range d.objects {
		if r := d.objects[i].Refused; r != "" {
			b.WriteString(d.objects[i].Ref.String() + r + "\n")
		}
	}
	return b.String()
}

// planInput freezes what a plan is computed from; u.mu is held.
func (e *Engine) planInput(u *state, d *desired, req rutter.SyncRequest) plan.Input {
	return e.inputOf(u, d, req, e.extras(u, d))
}

// inputOf is planInput with extras that have been looked at already.
func (e *Engine) inputOf(u *state, d *desired, req rutter.SyncRequest, extras []plan.Extra) plan.Input {
	budget := u.budget()
	in := plan.Input{Unit: u.id.String(), Budget: &budget, Approves: u.unit.Approves, Ticket: u.ticket, Verdicts: map[rutter.Ref]rutter.Verdict{}, Policy: u.unit.Policy.For(req), Request: req,
		Complete: u.problem == nil, Extras: slices.Clone(extras), Approved: u.approved()}
	for i := range d.objects {
		in.Desired = append(in.Desired, d.objects[i].Desired)
		if x := u.live[d.objects[i].Ref]; x != nil {
			in.Verdicts[d.objects[i].Ref] = x.Verdict
		}
	}
	return in
}
