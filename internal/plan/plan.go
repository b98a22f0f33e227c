package plan

import (
	"cmp"
	"slices"

	"github.com/rutterhq/rutter"
)

// Desired is one object that Git declares, with what the decision needs of it.
type Desired struct {
	Ref  rutter.Ref
	Hash string
	Meta Meta
	// DefinesGroup and DefinesKind are set for a CustomResourceDefinition.
	DefinesGroup, DefinesKind string
	// Refused, when set, says why policy does not allow the object.
	Refused string
	// KindMissing is true while the cluster does not serve the kind.
	KindMissing bool
}

// Extra is a live object of ours that Git does not declare.
type Extra struct {
	Ref     rutter.Ref
	Version string
	Verdict rutter.Verdict
	Meta    Meta
	// Protected, when set, says why it is never pruned (a kind, a foreign mark).
	Protected string
	// Waits, when set, says why it is not pruned yet.
	Waits string
	// Justified says which change of the sources took it out, and Unjustified why
	// none that is known did: only a person may prune it then.
	Justified, Unjustified string
}

// Input is everything the decision depends on.
type Input struct {
	Desired  []Desired
	Verdicts map[rutter.Ref]rutter.Verdict
	Extras   []Extra
	Policy   rutter.SyncPolicy
	Request  rutter.SyncRequest
	// Complete is true when Desired came from a complete render at a resolved
	// commit; without it nothing is ever pruned.
	Complete bool
	// Unit names the unit, Budget is how many objects may be pruned without being
	// asked, nil any number; Approves is the digest of prunes that somebody approved, and Ticket has
	// the UIDs of those that were approved before and are carried out.
	Unit     string
	Budget   *rutter.Budget
	Approves string
	Ticket   map[string]bool
	// Approved says that a person has confirmed, since the sync began, the removals
	// that ask for it.
	Approved bool
}

// NotSelected is the reason of what a partial sync leaves out.
const NotSelected = "not selected"

// Compute decides the steps of a sync. It never plans to send an object that is
// known to be equal, and never plans to remove anything that Complete, policy,
// request and annotations do not all allow.
func Compute(in Input) rutter.Plan {
	b := builder{in: in, selected: selection(in.Request.Resources)}
	if in.Request.Automated && wipesOut(in) {
		return rutter.Plan{Refusal: "auto-sync will wipe out all resources: the source holds no objects any more; " +
			"set spec.syncPolicy.automated.allowEmpty or sync by hand if that is meant"}
	}
	for i, d := range in.Desired {
		b.desired(i, d)
	}
	prunes, held := b.prunes()
	steps := slices.Concat(b.steps, prunes)
	hoist(steps, func(s rutter.Step) (string, string) {
		d := in.Desired[s.Index]
		return d.DefinesGroup, d.DefinesKind
	})
	p := rutter.Plan{Groups: group(steps), Left: b.left, Confirm: b.confirm, Held: held}
	p.WaitHealth = b.hooks || len(p.Groups) > 1 || multiWave(in.Desired)
	if p.WaitHealth {
		awaitUnchanged(&p, in)
	}
	return p
}

type builder struct {
	in       Input
	selected func(rutter.Ref) bool
	steps    []rutter.Step
	left     []rutter.Step
	confirm  []rutter.Step
	hooks    bool
}

func (b *builder) desired(i int, d Desired) {
	step := rutter.Step{Ref: d.Ref, Phase: rutter.PhaseSync, Wave: d.Meta.Wave, Index: i}
	leave := func(a rutter.Action, reason string) {
		step.Action, step.Reason = a, reason
		b.left = append(b.left, step)
	}
	switch {
	case !b.selected(d.Ref):
		leave(rutter.ActionSkip, NotSelected)
	case d.Meta.Skip:
		leave(rutter.ActionSkip, "hook Skip")
	case d.Refused != "":
		leave(rutter.ActionRefuse, d.Refused)
	case d.Meta.IsHook:
		b.hook(step, d)
	case b.equal(d):
		leave(rutter.ActionLeave, "equal")
	default:
		step.Action, step.Reason = rutter.ActionApply, b.reason(d)
		b.steps = append(b.steps, step)
	}
}

// hook adds one step for each phase of a hook. A partial sync and a self-heal
// run no hooks (reference 2.1, 2.6).
func (b *builder) hook(step rutter.Step, d Desired) {
	step.Hook = true
	if len(d.Meta.Hooks) == 0 || b.in.Request.SkipHooks || len(b.in.Request.Resources) > 0 || b.in.Request.SelfHeal {
		step.Action, step.Reason = rutter.ActionSkip, "hook of another occasion"
		b.left = append(b.left, step)
		return
	}
	b.hooks = true
	for _, p := range d.Meta.Hooks {
		step.Phase, step.Action, step.Reason = p, rutter.ActionApply, string(p)+" hook"
		b.steps = append(b.steps, step)
	}
}

func (b *builder) equal(d Desired) bool {
	v, ok := b.in.Verdicts[d.Ref]
	return ok && v.Exists && v.State == rutter.Synced && v.DesiredHash == d.Hash && !b.in.Request.Force
}

func (b *builder) reason(d Desired) string {
	v, ok := b.in.Verdicts[d.Ref]
	switch {
	case !ok || !v.Exists:
		return "missing"
	case v.DesiredHash != d.Hash:
		return "changed in Git"
	case v.Reason != "":
		return v.Reason
	default:
		return "differs"
	}
}

// prunes plans the removal of extras, and says of each that stays why.
func (b *builder) prunes() ([]rutter.Step, *rutter.HeldPrunes) {
	var prunes []rutter.Step
	for _, x := range b.in.Extras {
		step := rutter.Step{Ref: x.Ref, Version: x.Version, Phase: rutter.PhaseSync, Wave: x.Meta.Wave, UID: x.Verdict.UID, Index: -1}
		if why := b.keep(x); why != "" {
			step.Action, step.Reason = rutter.ActionSkip, why
			b.left = append(b.left, step)
			continue
		}
		step.Action, step.Reason = rutter.ActionPrune, cmp.Or(x.Justified, "no longer declared")
		if !b.in.Approved && x.Meta.confirmsPrune(b.in.Policy) {
			step.Reason = "waits for a confirmation"
			b.confirm = append(b.confirm, step)
			continue
		}
		prunes = append(prunes, step)
	}
	held := b.in.hold(prunes)
	if held != nil {
		for _, s := range prunes {
			s.Action, s.Reason = rutter.ActionSkip, held.Words()
			b.left = append(b.left, s)
		}
		return nil, held
	}
	mirror(prunes)
	last := 0
	for _, s := range slices.Concat(b.steps, prunes) {
		if s.Phase == rutter.PhaseSync {
			last = max(last, s.Wave)
		}
	}
	for i := range prunes {
		if b.in.Policy.HasOption("PruneLast=true") || b.extraMeta(prunes[i].Ref).PruneLast {
			prunes[i].Wave = last + 1
		}
	}
	return prunes, nil
}

func (b *builder) keep(x Extra) string {
	switch {
	case !b.selected(x.Ref):
		return NotSelected
	case !b.in.Complete:
		return "ignored (the render is not complete)"
	case x.Protected != "":
		return "ignored (" + x.Protected + ")"
	case x.Waits != "":
		return "ignored for now (" + x.Waits + ")"
	case x.Verdict.UID == "":
		return "ignored (identity not known)"
	case !b.in.Request.Prune:
		return "ignored (requires pruning)"
	case x.Meta.KeepsFromPrune(b.in.Policy):
		return "ignored (no prune)"
	case x.Verdict.Deleting:
		return "is being deleted"
	case x.Unjustified != "" && b.in.Request.Automated:
		return "ignored (" + x.Unjustified + ")"
	}
	return ""
}

func (b *builder) extraMeta(ref rutter.Ref) Meta {
	for _, x := range b.in.Extras {
		if x.Ref == ref {
			return x.Meta
		}
	}
	return Meta{}
}

// wipesOut is the rule of reference 2.12.4: an automated sync that would leave
// nothing is not done unless allowEmpty says so.
func wipesOut(in Input) bool {
	if !in.Request.Prune || in.Policy.AllowEmpty || !slices.ContainsFunc(in.Extras, func(x Extra) bool { return x.Protected == "" }) {
		return false
	}
	return !slices.ContainsFunc(in.Desired, func(d Desired) bool { return !d.Meta.IsHook && !d.Meta.Skip })
}

func selection(resources []rutter.Ref) func(rutter.Ref) bool {
	if len(resources) == 0 {
		return func(rutter.Ref) bool { return true }
	}
	return func(ref rutter.Ref) bool {
		return slices.ContainsFunc(resources, func(want rutter.Ref) bool {
			return want.Group == ref.Group && want.Kind == ref.Kind && want.Name == ref.Name &&
				(want.Namespace == "" || want.Namespace == ref.Namespace)
		})
	}
}

// multiWave reports whether ordinary objects are of more than one wave.
func multiWave(desired []Desired) bool {
	waves := map[int]bool{}
	for _, d := range desired {
		if !d.Meta.IsHook && !d.Meta.Skip {
			waves[d.Meta.Wave] = true
		}
	}
	return len(waves) > 1
}

// awaitUnchanged gives each group the objects of its phase and wave that need
// no sending but whose health it must see too, and adds groups of nothing but
// waiting, so that a wave never starts before an unhealthy earlier one.
func awaitUnchanged(p *rutter.Plan, in Input) {
	if len(p.Groups) == 0 {
		return
	}
	for _, s := range p.Left {
		if s.Action != rutter.ActionLeave || in.Desired[s.Index].Meta.IgnoreHealth {
			continue
		}
		at, found := slices.BinarySearchFunc(p.Groups, slotOf(s), func(g rutter.Group, want slot) int {
			return slot{g.Phase, g.Wave}.compare(want)
		})
		if !found {
			if at == len(p.Groups) {
				continue // nothing comes after it
			}
			p.Groups = slices.Insert(p.Groups, at, rutter.Group{Phase: s.Phase, Wave: s.Wave})
		}
		p.Groups[at].Await = append(p.Groups[at].Await, s.Ref)
	}
}
