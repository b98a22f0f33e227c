package generate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// AnnotationAllowEmpty on a set, with the value "true", lets a set whose
// complete answer is empty delete all of its Applications.
const AnnotationAllowEmpty = "rutter.dev/allow-empty"

// applicationSetKind is the kind of owners of generated Applications.
const applicationSetKind = "ApplicationSet"

// Verb is what becomes of one Application.
type Verb string

// The verbs.
const (
	// Create makes the Application.
	Create Verb = "create"
	// Update writes the Application over the live one.
	Update Verb = "update"
	// Delete removes the live Application.
	Delete Verb = "delete"
	// Keep leaves the live Application as it is.
	Keep Verb = "keep"
	// Hold leaves it as it is although the set asks for more: somebody must decide.
	Hold Verb = "hold"
	// Release deletes the live Application and leaves its objects to the one in
	// To, which has the same ones. It is done when that one is there. Only
	// policies with HandOver have it.
	Release Verb = "release"
	// Refuse cannot be done; Err says why.
	Refuse Verb = "refuse"
)

// Change is what becomes of one Application of a set.
type Change struct {
	Verb Verb
	Name string
	// Application is what to write for Create and Update, including the
	// reference to its owner, and the live one otherwise; it may be nil.
	Application *v1alpha1.Application
	// Live is the live one of an Update, as it was when that was decided.
	Live *v1alpha1.Application
	// Desired is what is generated, where a Refuse keeps it from being written.
	Desired *v1alpha1.Application
	Reason  string
	// To, "namespace/name", is who takes the objects of a Release, and From whose
	// objects a Create takes.
	To, From string
	// StripFinalizer says that a Delete must leave the workloads alone: the
	// Application's resources finalizer is taken off before.
	StripFinalizer bool
	Err            error
	// wanted says that the set generates it.
	wanted bool
}

// Policy is what the operator of the controller decided for all sets.
type Policy struct {
	// Applications is the policy of sets that have none, or of all sets when it
	// is set and AllowOverride is not. Empty means sync.
	Applications v1alpha1.ApplicationsSyncPolicy
	// AllowOverride lets a set choose although Applications is set.
	AllowOverride bool
	// PreservedAnnotations and PreservedLabels survive on all Applications.
	PreservedAnnotations []string
	PreservedLabels      []string
	// Clusters are all members, nil when they are not known. The objects of an
	// Application whose cluster is not among them cannot be deleted any more.
	Clusters []rutter.ClusterInfo
	// Projects are the names of all projects, nil when they are not known.
	Projects []string
	// Budget limits the removals of sets that have none of their own; nil is DefaultBudget.
	Budget *Budget
	// Ticket is what Decision.Ticket was, for as long as an approved plan is
	// being carried out.
	Ticket string
	// Waiting is what Decision.Waiting was, and Removed what Decision.Removed was.
	Waiting string
	Removed string
	// HandOver says that the caller can carry out Release: an Application that
	// moves within its set, or to another one, is then not deleted and made again.
	HandOver bool
	// Sets are the names of the ApplicationSets of the namespace that are there and
	// not being deleted, nil when they are not known. An Application of another one
	// is adopted by the set that generates it, before the garbage collector comes.
	Sets []string
	// Elsewhere names, for Applications by their name, another set that generates
	// them. This one lets them go, when it does not, and that one adopts them.
	Elsewhere map[string]string
	// Now is when holds are judged; with the zero value they do not end.
	Now time.Time
	// Keeper is a second owner for Applications that outlive their set, which the
	// garbage collector then leaves alone: their namespace. Nil gives them none.
	Keeper *metav1.OwnerReference
}

// resolve is the policy that holds for a set.
func (p Policy) resolve(set *v1alpha1.ApplicationSet) v1alpha1.ApplicationsSyncPolicy {
	own := set.Spec.SyncPolicy
	if (p.Applications == "" || p.AllowOverride) && own != nil && own.ApplicationsSync != nil && *own.ApplicationsSync != "" {
		return *own.ApplicationsSync
	}
	if p.Applications == "" {
		return v1alpha1.ApplicationsSyncPolicySync
	}
	return p.Applications
}

// Deletes reports whether a set deletes the Applications that it does not
// generate any more, and with itself those that it has.
func Deletes(set *v1alpha1.ApplicationSet, policy Policy) bool {
	allowed := policy.resolve(set)
	return allowed == v1alpha1.ApplicationsSyncPolicySync || allowed == v1alpha1.ApplicationsSyncPolicyCreateDelete
}

// Reconcile is Decide for those who only carry out the changes.
func Reconcile(set *v1alpha1.ApplicationSet, generated Result, live []*v1alpha1.Application, policy Policy) []Change {
	return Decide(set, generated, live, policy).Changes
}

// Decision is what becomes of the Applications of a set.
type Decision struct {
	// Changes are one for each name, in order.
	Changes []Change
	// Upkeep are writes to Applications that otherwise stay as they are, so that
	// deleting the set does with each as it says. They are no changes of the set's.
	Upkeep []Change
	// Freeing says that the set preserves the objects of its Applications, and that
	// some of those still have the finalizer that deletes them.
	Freeing bool
	// Held is the plan of removals that waits for approval; nil when none does.
	Held *Held
	// Ticket is to be kept before an approved plan is carried out, and given back
	// in Policy.Ticket; empty when none is.
	Ticket string
	// Waiting says which removals wait, also while it is not known whether they are
	// wanted; it is to be kept, and given back in Policy.Waiting.
	Waiting string
	// Removed says what went lately without being asked, which counts towards the
	// budget; it is to be kept before anything goes, and given back in Policy.Removed.
	Removed string
	// Holds are those in force on Applications of the set, by name.
	Holds []ApplicationHold
	// Requeue is when the first hold ends; 0 is never.
	Requeue time.Duration
	// Errors are about what the set or its Applications are annotated with.
	Errors []error
}

// Decide compares what a set generates with the live Applications of its
// namespace. Only a complete result proposes removals, and more of them than
// the budget allows wait for approval, while all else goes on. The changes
// share values with what was generated and with what is live; those who carry
// them out write to neither.
func Decide(set *v1alpha1.ApplicationSet, generated Result, live []*v1alpha1.Application, policy Policy) Decision {
	rc := &reconciliation{set: set, generated: generated, policy: policy, allowed: policy.resolve(set), held: map[string]bool{}}
	rc.rules = newIgnoreRules(set)
	rc.members = newMembers(policy.Clusters)
	byName := make(map[string]*v1alpha1.Application, len(live))
	for _, app := range live {
		if app.Namespace == set.Namespace {
			byName[app.Name] = app
		}
	}
	wanted := make(map[string]bool, len(generated.Applications))
	rc.decision.Changes = make([]Change, 0, max(len(byName), len(generated.Applications)))
	for _, app := range generated.Applications {
		wanted[app.Name] = true
		change := rc.want(app, byName[app.Name])
		change.wanted = true
		rc.add(change)
	}
	rc.failed = failedElements(generated)
	for _, name := range sortedKeys(byName) {
		if app := byName[name]; ownedBy(app, set) {
			if app.DeletionTimestamp == nil {
				rc.owned++
			}
			if !wanted[name] {
				rc.unwanted(app)
			}
		}
	}
	rc.removals(live)
	rc.keepWaiting(byName, wanted)
	rc.keepTicket()
	rc.decision.Removed = rc.writeRemoved()
	rc.keepUp()
	rc.decision.Freeing = rc.freeing(byName)
	slices.SortFunc(rc.decision.Changes, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(rc.decision.Holds, func(a, b ApplicationHold) int { return strings.Compare(a.Application, b.Application) })
	return rc.decision
}

// reconciliation is one run of Decide.
type reconciliation struct {
	set       *v1alpha1.ApplicationSet
	generated Result
	policy    Policy
	allowed   v1alpha1.ApplicationsSyncPolicy
	members   members
	rules     []ignoreRule
	// failed are the elements with errors, by name.
	failed map[string]error
	// owned counts the Applications of the set, and letGo those that another has now.
	owned, letGo int
	// held are the Applications that a person holds, by name.
	held map[string]bool
	// gone are those that no element generates, in order, and paused those of them
	// that stay because a person holds them.
	gone   []*v1alpha1.Application
	paused []*v1alpha1.Application
	// recent is what went lately without being asked, and when.
	recent   map[uint32]int64
	decision Decision
}

func (rc *reconciliation) add(c Change) { rc.decision.Changes = append(rc.decision.Changes, c) }

// failedElements are the errors of elements whose names are known.
func failedElements(generated Result) map[string]error {
	failed := map[string]error{}
	for _, e := range generated.Elements {
		if _, known := failed[e.Name]; e.Err != nil && e.Name != "" && !known {
			failed[e.Name] = e.Err
		}
	}
	return failed
}

// want decides about an Application that the set generates.
func (rc *reconciliation) want(desired, live *v1alpha1.Application) Change {
	name := desired.Name
	var hold *ApplicationHold
	if live != nil && ownedBy(live, rc.set) {
		hold = rc.holdOf(live)
	}
	if err := rc.possible(desired); err != nil {
		return Change{Verb: Refuse, Name: name, Application: live, Desired: desired, Reason: "it cannot be what is generated; its last good state stays", Err: err}
	}
	if live == nil {
		app := *desired
		own(&app, rc.set)
		rc.kept(&app)
		return Change{Verb: Create, Name: name, Application: &app, Reason: "it does not exist"}
	}
	was, owner := live, metav1.GetControllerOfNoCopy(live)
	if owner != nil && !isOwner(owner, rc.set) && rc.policy.orphaned(owner) {
		live, owner = withoutOwner(live), nil
	}
	switch {
	case owner != nil && !isOwner(owner, rc.set):
		return Change{Verb: Refuse, Name: name, Application: live, Desired: desired, Reason: "it belongs to another controller",
			Err: rutter.Errorf(rutter.CodeConflict, "Application %s/%s belongs to %s %q; give one of them another name",
				live.Namespace, name, owner.Kind, owner.Name)}
	case live.DeletionTimestamp != nil:
		return Change{Verb: Keep, Name: name, Application: live, Reason: "it is being deleted and will be made again"}
	}
	if owner == nil {
		hold = rc.holdOf(live)
	}
	if rc.allowed != v1alpha1.ApplicationsSyncPolicySync && rc.allowed != v1alpha1.ApplicationsSyncPolicyCreateUpdate {
		return Change{Verb: Keep, Name: name, Application: live, Reason: fmt.Sprintf("the policy %s allows no updates", rc.allowed)}
	}
	c := rc.update(desired, live, owner == nil, hold)
	c.Live = was
	return c
}

// update decides whether an Application is written over.
func (rc *reconciliation) update(desired, live *v1alpha1.Application, adopt bool, hold *ApplicationHold) Change {
	name := desired.Name
	if err := rc.badRule(name); err != nil {
		return Change{Verb: Hold, Name: name, Application: live, Reason: "a rule about its differences cannot be read", Err: err}
	}
	merged := rc.merge(desired, live)
	rc.kept(merged)
	if hold != nil {
		keepHeld(merged, live)
	}
	changed, err := differences(live, merged)
	if err == nil && (adopt || len(changed) > 0) {
		var ruled bool
		if merged, ruled, err = rc.keepIgnored(merged, live); err == nil && ruled {
			if Preserves(rc.set) {
				freeWorkloads(merged) // whatever the rules leave alone
			}
			changed, err = differences(live, merged)
		}
	}
	switch {
	case err != nil:
		return Change{Verb: Refuse, Name: name, Application: live, Desired: desired, Reason: "it cannot be compared", Err: err}
	case adopt:
		return Change{Verb: Update, Name: name, Application: merged, Reason: "it has no owner and is adopted"}
	case len(changed) > 0:
		return Change{Verb: Update, Name: name, Application: merged, Reason: strings.Join(changed, ", ") + " changed"}
	case hold != nil:
		return Change{Verb: Keep, Name: name, Application: live, Reason: "it is as generated, but that " + hold.reason()}
	}
	return Change{Verb: Keep, Name: name, Application: live, Reason: "it is as generated"}
}

// holdOf notes the hold on an Application that is in force.
func (rc *reconciliation) holdOf(live *v1alpha1.Application) *ApplicationHold {
	hold, err := HoldOf(live, rc.policy.Now)
	if err != nil {
		rc.decision.Errors = append(rc.decision.Errors, err)
	}
	if hold == nil {
		return nil
	}
	rc.held[live.Name] = true
	rc.decision.Holds = append(rc.decision.Holds, *hold)
	if left := hold.Until.Sub(rc.policy.Now); !rc.policy.Now.IsZero() && !hold.Until.IsZero() && (rc.decision.Requeue == 0 || left < rc.decision.Requeue) {
		rc.decision.Requeue = left
	}
	return hold
}
