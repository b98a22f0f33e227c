package generate

import (
	"slices"
	"strings"

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

// keepOthers does so for those Applications that are left as they are otherwise.
func (rc *reconciliation) keepOthers() {
	for i := range rc.decision.Changes {
		c := &rc.decision.Changes[i]
		if c.Verb != Keep && c.Verb != Hold || c.Application == nil || c.Application.DeletionTimestamp != nil || !ownedBy(c.Application, rc.set) {
			continue
		}
		app := *c.Application
		if rc.kept(&app) {
			c.Verb, c.Application, c.Live = Update, &app, c.Application
		}
	}
}

// freeWorkloads takes the finalizer that deletes objects off an Application of
// a set that preserves them: the garbage collector would heed the finalizer.
func freeWorkloads(app *v1alpha1.Application) (changed bool) {
	cascades := func(f string) bool { return f == resourcesFinalizer || strings.HasPrefix(f, resourcesFinalizer+"/") }
	if !slices.ContainsFunc(app.Finalizers, cascades) {
		return false
	}
	app.Finalizers = slices.DeleteFunc(slices.Clone(app.Finalizers), cascades)
	return true
}
