package generate

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// The garbage collector deletes what has lost all of its owners, and while a
// set is deleted in the foreground it asks nobody. So an Application that
// outlives its set, by the policy or by a person's hold, has a second owner that
// stays, Policy.Keeper: then the garbage collector itself takes the reference to
// the set off, however the set was deleted and though no controller runs.

// outlives reports whether an Application stays when its set is deleted.
func (rc *reconciliation) outlives(name string) bool {
	return !Deletes(rc.set, rc.policy) || rc.held[name]
}

// kept makes the second owner of an Application what it has to be. The list of
// owners is not written to.
func (rc *reconciliation) kept(app *v1alpha1.Application) (changed bool) {
	k := rc.policy.Keeper
	if k == nil {
		return false
	}
	at := slices.IndexFunc(app.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == k.UID })
	switch outlives := rc.outlives(app.Name); {
	case outlives && at < 0:
		app.OwnerReferences = append(slices.Clone(app.OwnerReferences), *k)
	case !outlives && at >= 0:
		app.OwnerReferences = slices.Delete(slices.Clone(app.OwnerReferences), at, at+1)
	default:
		return false
	}
	return true
}

// keepUp does so for those Applications that are left as they are otherwise, and
// has their finalizers heed what the set says of their objects.
func (rc *reconciliation) keepUp() {
	for _, c := range rc.decision.Changes {
		live := c.Application
		if c.Verb == Create || c.Verb == Update || c.Verb == Release || live == nil || live.DeletionTimestamp != nil || !ownedBy(live, rc.set) {
			continue
		}
		app := *live
		kept := c.Verb != Delete && rc.kept(&app)
		if rc.preserved(&app) || kept {
			rc.decision.Upkeep = append(rc.decision.Upkeep, Change{Verb: Update, Name: c.Name, Application: &app, Live: live, Reason: c.Reason})
		}
	}
}
