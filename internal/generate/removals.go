package generate

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// unwanted decides about an Application of the set that it does not generate.
// What may go is decided about together.
func (rc *reconciliation) unwanted(live *v1alpha1.Application) {
	keep := Change{Verb: Keep, Name: live.Name, Application: live}
	hold := rc.holdOf(live)
	switch err := rc.failed[live.Name]; {
	case err != nil:
		keep.Reason, keep.Err = "its element has an error; the last good state stays", err
	case live.DeletionTimestamp != nil:
		keep.Reason = "it is being deleted"
	case rc.generated.Completeness != Complete:
		keep.Reason = fmt.Sprintf("the answer of the generators is %s, so it is not known to be unwanted", rc.generated.Completeness)
	case rc.policy.Elsewhere[live.Name] != "":
		rc.letGo++
		keep = letGo(rc.set, live, fmt.Sprintf("ApplicationSet %s generates it now", rc.policy.Elsewhere[live.Name]))
	case rc.allowed != v1alpha1.ApplicationsSyncPolicySync && rc.allowed != v1alpha1.ApplicationsSyncPolicyCreateDelete:
		keep.Reason = fmt.Sprintf("no element generates it; the policy %s allows no deletions", rc.allowed)
	case hold != nil:
		keep.Verb, keep.Reason = Hold, "no element generates it; "+hold.reason()
		rc.paused = append(rc.paused, live)
	default:
		rc.gone = append(rc.gone, live)
		return
	}
	rc.add(keep)
}

// removals decides about all that no element generates: what is handed over
// goes without its objects, the rest goes if the budget or somebody allows it.
func (rc *reconciliation) removals(live []*v1alpha1.Application) {
	rc.passHolds()
	budget, err := rc.policy.budget(rc.set)
	rc.recall(budget.window(), live)
	gone := rc.gone
	if rc.policy.HandOver && len(gone) > 0 {
		gone = rc.handOver(gone, live)
	}
	if len(gone) == 0 {
		return
	}
	if err != nil {
		rc.decision.Errors = append(rc.decision.Errors, err)
	}
	plan := newHeld(rc.set, gone)
	plan.Limit, plan.Of, plan.budget = budget.Limit(rc.owned+len(rc.recent)), rc.owned, budget
	plan.Paused, plan.Waited, plan.Recent, plan.Window = len(rc.paused), rc.waited(gone, budget), len(rc.recent), budget.window()
	plan.Empties = len(rc.generated.Applications) == 0 && len(rc.gone)+len(rc.paused)+rc.letGo == rc.owned
	switch over := plan.Over(len(gone)); {
	case over && rc.waits(plan):
		rc.decision.Held = plan
	case !over:
		rc.spend(plan) // what a person allowed by name costs nothing
	}
	reason := "no element generates it; " + plan.Reason()
	if plan.Empties {
		reason += fmt.Sprintf(", or with %s: \"true\" to delete whatever a set that became empty leaves", AnnotationAllowEmpty)
	}
	for _, app := range gone {
		if rc.decision.Held == nil {
			rc.add(remove(rc.set, rc.members, app, "no element generates it"))
			continue
		}
		rc.add(Change{Verb: Hold, Name: app.Name, Application: app, Reason: reason})
	}
}

// waits reports whether a plan of removals that is over the budget has no approval.
func (rc *reconciliation) waits(plan *Held) bool {
	if len(rc.generated.Elements) == 0 && rc.set.Annotations[AnnotationAllowEmpty] == "true" {
		return false
	}
	switch approved := rc.set.Annotations[AnnotationApprove]; {
	case approved == "":
		return true
	case approved == plan.Digest:
		rc.decision.Ticket = plan.Ticket()
	case covers(rc.policy.Ticket, approved, plan):
		rc.decision.Ticket = rc.policy.Ticket
	default:
		return true
	}
	return false
}

// remove deletes an Application, without its objects where those are to stay
// or cannot be reached: its finalizer would wait for ever.
func remove(set *v1alpha1.ApplicationSet, known members, live *v1alpha1.Application, reason string) Change {
	c := Change{Verb: Delete, Name: live.Name, Application: live, Reason: reason, StripFinalizer: Preserves(set)}
	if known.gone(live.Spec.Destination) {
		c.StripFinalizer = true
		c.Reason += "; its cluster is no longer a member, so its objects are left behind"
	}
	return c
}

// Teardown decides about the Applications of a set that is itself deleted.
// Where the policy allows no deletions they stay: the controller takes its
// owner reference off them before the set goes. So do those that another set
// has now, those that a person holds, as a hold outlives its set, and all where
// the set is deleted with --cascade=orphan.
func Teardown(set *v1alpha1.ApplicationSet, live []*v1alpha1.Application, policy Policy) []Change {
	rc := &reconciliation{set: set, policy: policy, allowed: policy.resolve(set), members: newMembers(policy.Clusters), held: map[string]bool{}}
	orphaned := slices.Contains(set.Finalizers, metav1.FinalizerOrphanDependents)
	var gone []*v1alpha1.Application
	for _, app := range live {
		taker := policy.Elsewhere[app.Name]
		switch {
		case app.Namespace != set.Namespace || !ownedBy(app, set):
		case taker != "":
			rc.add(letGo(set, app, fmt.Sprintf("its set is deleted and ApplicationSet %s generates it now", taker)))
		case orphaned:
			rc.add(letGo(set, app, "its set is deleted with --cascade=orphan: it is detached"))
		case rc.holdOf(app) != nil:
			rc.add(letGo(set, app, "its set is deleted; it is detached, as a person holds it"))
		case rc.allowed == v1alpha1.ApplicationsSyncPolicySync || rc.allowed == v1alpha1.ApplicationsSyncPolicyCreateDelete:
			gone = append(gone, app)
		default:
			rc.add(letGo(set, app, fmt.Sprintf("its set is deleted and the policy %s allows no deletions: it is detached", rc.allowed)))
		}
	}
	if policy.HandOver && len(gone) > 0 {
		gone = rc.handOver(gone, live)
	}
	for _, app := range gone {
		rc.add(remove(set, rc.members, app, "its set is deleted"))
	}
	slices.SortFunc(rc.decision.Changes, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return rc.decision.Changes
}

// letGo takes the reference to the set off an Application, which stays.
func letGo(set *v1alpha1.ApplicationSet, app *v1alpha1.Application, reason string) Change {
	free := *app
	free.OwnerReferences = slices.DeleteFunc(slices.Clone(app.OwnerReferences), func(o metav1.OwnerReference) bool { return isOwner(&o, set) })
	return Change{Verb: Update, Name: app.Name, Application: &free, Live: app, Reason: reason}
}
