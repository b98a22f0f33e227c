package generate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	Reason      string
	// StripFinalizer says that a Delete must leave the workloads alone: the
	// Application's resources finalizer is taken off before.
	StripFinalizer bool
	Err            error
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
}

// gone reports whether the cluster of an Application is known to be no member.
func (p Policy) gone(server, name string) bool {
	if p.Clusters == nil || server == InClusterServer || name == inClusterName || server == "" && name == "" {
		return false
	}
	return !slices.ContainsFunc(p.Clusters, func(c rutter.ClusterInfo) bool {
		return server != "" && strings.TrimRight(c.Server, "/") == strings.TrimRight(server, "/") || name != "" && c.Name == name
	})
}

// inClusterName is how Applications may name the control plane's own cluster.
const inClusterName = "in-cluster"

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

// Reconcile compares what a set generates with the live Applications of its
// namespace and answers with one change for each name, in order. Only a
// complete result proposes removals.
func Reconcile(set *v1alpha1.ApplicationSet, generated Result, live []*v1alpha1.Application, policy Policy) []Change {
	rc := reconciliation{set: set, generated: generated, policy: policy, allowed: policy.resolve(set)}
	byName := make(map[string]*v1alpha1.Application, len(live))
	for _, app := range live {
		if app.Namespace == set.Namespace {
			byName[app.Name] = app
		}
	}
	wanted := make(map[string]bool, len(generated.Applications))
	changes := make([]Change, 0, len(byName))
	for _, app := range generated.Applications {
		wanted[app.Name] = true
		changes = append(changes, rc.want(app, byName[app.Name]))
	}
	for _, name := range sortedKeys(byName) {
		if !wanted[name] && ownedBy(byName[name], set) {
			changes = append(changes, rc.unwanted(byName[name]))
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return changes
}

// reconciliation is one run of Reconcile.
type reconciliation struct {
	set       *v1alpha1.ApplicationSet
	generated Result
	policy    Policy
	allowed   v1alpha1.ApplicationsSyncPolicy
}

// want decides about an Application that the set generates.
func (rc reconciliation) want(desired, live *v1alpha1.Application) Change {
	name := desired.Name
	if live == nil {
		app := desired.DeepCopy()
		own(app, rc.set)
		return Change{Verb: Create, Name: name, Application: app, Reason: "it does not exist"}
	}
	owner := metav1.GetControllerOf(live)
	switch {
	case owner != nil && !isOwner(owner, rc.set):
		return Change{Verb: Refuse, Name: name, Application: live, Reason: "it belongs to another controller",
			Err: rutter.Errorf(rutter.CodeConflict, "Application %s/%s belongs to %s %q; give one of them another name",
				live.Namespace, name, owner.Kind, owner.Name)}
	case live.DeletionTimestamp != nil:
		return Change{Verb: Keep, Name: name, Application: live, Reason: "it is being deleted and will be made again"}
	case rc.allowed != v1alpha1.ApplicationsSyncPolicySync && rc.allowed != v1alpha1.ApplicationsSyncPolicyCreateUpdate:
		return Change{Verb: Keep, Name: name, Application: live, Reason: fmt.Sprintf("the policy %s allows no updates", rc.allowed)}
	}
	if err := unsupportedRule(rc.set, name); err != nil {
		return Change{Verb: Hold, Name: name, Application: live, Reason: "a rule about its differences is not acted on yet", Err: err}
	}
	merged, err := rc.merge(desired, live)
	if err != nil {
		return Change{Verb: Refuse, Name: name, Application: live, Reason: "it cannot be compared", Err: err}
	}
	changed, err := differences(live, merged)
	switch {
	case err != nil:
		return Change{Verb: Refuse, Name: name, Application: live, Reason: "it cannot be compared", Err: err}
	case owner == nil:
		return Change{Verb: Update, Name: name, Application: merged, Reason: "it has no owner and is adopted"}
	case len(changed) > 0:
		return Change{Verb: Update, Name: name, Application: merged, Reason: strings.Join(changed, ", ") + " changed"}
	}
	return Change{Verb: Keep, Name: name, Application: live, Reason: "it is as generated"}
}

// unwanted decides about an Application of the set that it does not generate.
func (rc reconciliation) unwanted(live *v1alpha1.Application) Change {
	keep := Change{Verb: Keep, Name: live.Name, Application: live}
	if i := slices.IndexFunc(rc.generated.Elements, func(e Element) bool { return e.Err != nil && e.Name == live.Name }); i >= 0 {
		keep.Reason = "its element has an error; the last good state stays"
		keep.Err = rc.generated.Elements[i].Err
		return keep
	}
	switch {
	case live.DeletionTimestamp != nil:
		keep.Reason = "it is being deleted"
	case rc.generated.Completeness != Complete:
		keep.Reason = fmt.Sprintf("the answer of the generators is %s, so it is not known to be unwanted", rc.generated.Completeness)
	case rc.allowed != v1alpha1.ApplicationsSyncPolicySync && rc.allowed != v1alpha1.ApplicationsSyncPolicyCreateDelete:
		keep.Reason = fmt.Sprintf("no element generates it; the policy %s allows no deletions", rc.allowed)
	case len(rc.generated.Elements) == 0 && rc.set.Annotations[AnnotationAllowEmpty] != "true":
		keep.Verb = Hold
		keep.Reason = fmt.Sprintf("the set generates nothing any more; annotate it with %s: \"true\" to delete all its Applications",
			AnnotationAllowEmpty)
	default:
		return rc.policy.remove(rc.set, live, "no element generates it")
	}
	return keep
}

// remove deletes an Application, without its objects where those are to stay
// or cannot be reached: its finalizer would wait for ever.
func (p Policy) remove(set *v1alpha1.ApplicationSet, live *v1alpha1.Application, reason string) Change {
	c := Change{Verb: Delete, Name: live.Name, Application: live, Reason: reason, StripFinalizer: preservesResources(set)}
	if d := live.Spec.Destination; p.gone(d.Server, d.Name) {
		c.StripFinalizer = true
		c.Reason += "; its cluster is no longer a member, so its objects are left behind"
	}
	return c
}

// Teardown decides about the Applications of a set that is itself deleted.
// Where the policy allows no deletions they stay: the controller takes its
// owner reference off them before the set goes.
func Teardown(set *v1alpha1.ApplicationSet, live []*v1alpha1.Application, policy Policy) []Change {
	allowed := policy.resolve(set)
	var changes []Change
	for _, app := range live {
		if app.Namespace != set.Namespace || !ownedBy(app, set) {
			continue
		}
		if allowed == v1alpha1.ApplicationsSyncPolicySync || allowed == v1alpha1.ApplicationsSyncPolicyCreateDelete {
			changes = append(changes, policy.remove(set, app, "its set is deleted"))
			continue
		}
		free := app.DeepCopy()
		free.OwnerReferences = slices.DeleteFunc(free.OwnerReferences, func(o metav1.OwnerReference) bool { return isOwner(&o, set) })
		changes = append(changes, Change{Verb: Update, Name: app.Name, Application: free,
			Reason: fmt.Sprintf("its set is deleted and the policy %s allows no deletions: it is detached", allowed)})
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return changes
}

// isOwner reports whether a reference is to the set. The name decides, so that
// a set that was made again finds its Applications.
func isOwner(ref *metav1.OwnerReference, set *v1alpha1.ApplicationSet) bool {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	return ref.Kind == applicationSetKind && group == v1alpha1.GroupVersion.Group && ref.Name == set.Name
}

func ownedBy(app *v1alpha1.Application, set *v1alpha1.ApplicationSet) bool {
	owner := metav1.GetControllerOf(app)
	return owner != nil && isOwner(owner, set)
}

// own writes the reference to the set, in the place of an older one.
func own(app *v1alpha1.Application, set *v1alpha1.ApplicationSet) {
	yes := true
	ref := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: applicationSetKind,
		Name: set.Name, UID: set.UID, Controller: &yes, BlockOwnerDeletion: &yes}
	if i := slices.IndexFunc(app.OwnerReferences, func(o metav1.OwnerReference) bool { return isOwner(&o, set) }); i >= 0 {
		app.OwnerReferences[i] = ref
		return
	}
	app.OwnerReferences = append(app.OwnerReferences, ref)
}

// merge is the live Application with what the set generates written into it.
func (rc reconciliation) merge(desired, live *v1alpha1.Application) (*v1alpha1.Application, error) {
	out := live.DeepCopy()
	out.Spec = *desired.Spec.DeepCopy()
	var labels, annotations []string
	if p := rc.set.Spec.PreservedFields; p != nil {
		labels, annotations = p.Labels, p.Annotations
	}
	out.Labels = preserve(desired.Labels, live.Labels, labels, rc.policy.PreservedLabels)
	out.Annotations = preserve(desired.Annotations, live.Annotations, annotations, rc.policy.PreservedAnnotations,
		[]string{"notified.notifications.argoproj.io", "argocd.argoproj.io/refresh", "argocd.argoproj.io/hydrate"})
	out.Finalizers = slices.Clone(desired.Finalizers)
	for _, f := range live.Finalizers {
		if (strings.HasPrefix(f, "pre-delete-finalizer.argocd.argoproj.io") ||
			strings.HasPrefix(f, "post-delete-finalizer.argocd.argoproj.io")) && !slices.Contains(out.Finalizers, f) {
			out.Finalizers = append(out.Finalizers, f)
		}
	}
	own(out, rc.set)
	return keepIgnored(rc.set, out, live)
}

// preserve is desired with the live values of the keys that survive.
func preserve(desired, live map[string]string, keys ...[]string) map[string]string {
	out := maps.Clone(desired)
	for _, k := range slices.Concat(keys...) {
		if v, ok := live[k]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}
