package generate_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// owners are the names of those of an Application, by kind.
func owners(app *v1alpha1.Application) string {
	kinds := make([]string, 0, len(app.OwnerReferences))
	for _, o := range app.OwnerReferences {
		kinds = append(kinds, o.Kind+" "+o.Name)
	}
	return strings.Join(kinds, ", ")
}

// TestOutliving: what outlives its set has an owner that stays, so that the
// garbage collector leaves it alone however the set is deleted.
func TestOutliving(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	policy := generate.Policy{Now: now, Keeper: &metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "argocd", UID: "ns"}}
	forever := policy
	forever.Applications = v1alpha1.ApplicationsSyncPolicyCreateOnly
	set := setOf(t, withTemplate(listOf("a", "b"), "{{name}}", "x"))
	apps := live(t, set, fleet())
	hold := func(until time.Time) {
		apps[0].Annotations = map[string]string{generate.AnnotationHold: generate.ApplicationHold{Who: "ada", Until: until}.String()}
	}
	carry := func(p generate.Policy, generators string, want ...string) {
		t.Helper()
		s := setOf(t, withTemplate(generators, "{{name}}", "x"))
		var got []string
		d := generate.Decide(s, generate.Generate(s, fleet()), apps, p)
		upkeep := map[string]generate.Change{}
		for _, c := range d.Upkeep {
			upkeep[c.Name] = c
		}
		for _, c := range d.Changes {
			if up, ok := upkeep[c.Name]; ok {
				c = up
			}
			if c.Verb == generate.Update {
				for i := range apps {
					if apps[i].Name == c.Name {
						apps[i] = c.Application
					}
				}
			}
			got = append(got, c.Name+" "+string(c.Verb)+": "+owners(c.Application))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	both := listOf("a", "b")
	carry(policy, both, "a keep: ApplicationSet set", "b keep: ApplicationSet set")
	hold(now.Add(time.Hour))
	carry(policy, both, "a update: ApplicationSet set, Namespace argocd", "b keep: ApplicationSet set")
	carry(policy, both, "a keep: ApplicationSet set, Namespace argocd", "b keep: ApplicationSet set")
	hold(now)
	carry(policy, both, "a update: ApplicationSet set", "b keep: ApplicationSet set")
	hold(now.Add(time.Hour))
	carry(policy, listOf("b"), "a update: ApplicationSet set, Namespace argocd", "b keep: ApplicationSet set")
	carry(policy, listOf("b"), "a hold: ApplicationSet set, Namespace argocd", "b keep: ApplicationSet set")
	carry(forever, both, "a keep: ApplicationSet set, Namespace argocd", "b update: ApplicationSet set, Namespace argocd")
	carry(forever, both, "a keep: ApplicationSet set, Namespace argocd", "b keep: ApplicationSet set, Namespace argocd")

	set.Finalizers = []string{metav1.FinalizerOrphanDependents}
	for _, c := range generate.Teardown(set, apps, policy) {
		if c.Verb != generate.Update || owners(c.Application) != "Namespace argocd" {
			t.Errorf("--cascade=orphan deletes none: %+v", c)
		}
	}
}

// TestPreservedWorkloads: the template's own finalizer does not delete what the
// set says is to stay.
func TestPreservedWorkloads(t *testing.T) {
	set := setOf(t, withTemplate(listOf("a"), "{{name}}", "x"))
	set.Spec.Template.Finalizers = []string{"mine.example.org/x", cascade + "/background"}
	set.Spec.SyncPolicy = &v1alpha1.ApplicationSetSyncPolicy{PreserveResourcesOnDeletion: true}
	r := generate.Generate(set, fleet())
	if diff := cmp.Diff([]string{"mine.example.org/x"}, r.Applications[0].Finalizers); diff != "" || len(r.Elements[0].Warnings) != 1 {
		t.Errorf("%q\n%s", r.Elements[0].Warnings, diff)
	}
	set.Spec.SyncPolicy = nil
	if r = generate.Generate(set, fleet()); len(r.Applications[0].Finalizers) != 2 {
		t.Errorf("otherwise the template is right: %q", r.Applications[0].Finalizers)
	}
}

// TestEdited: whoever edits what a set writes wakes it; whoever works with an
// Application does not.
func TestEdited(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.Application)
		want   bool
	}{
		"nothing":        {func(*v1alpha1.Application) {}, false},
		"its spec":       {func(a *v1alpha1.Application) { a.Generation++ }, true},
		"a label":        {func(a *v1alpha1.Application) { a.Labels["x"] = "y" }, true},
		"an annotation":  {func(a *v1alpha1.Application) { delete(a.Annotations, "mine") }, true},
		"a hold":         {func(a *v1alpha1.Application) { a.Annotations[generate.AnnotationHold] = "until" }, true},
		"its finalizers": {func(a *v1alpha1.Application) { a.Finalizers = nil }, true},
		"a refresh":      {func(a *v1alpha1.Application) { a.Annotations["argocd.argoproj.io/refresh"] = "normal" }, false},
		"its status":     {func(a *v1alpha1.Application) { a.Status.Sync.Status, a.ResourceVersion = "Synced", "2" }, false},
	} {
		before := &v1alpha1.Application{}
		before.Labels, before.Annotations, before.Finalizers = map[string]string{"a": "b"}, map[string]string{"mine": "yes"}, []string{"f"}
		after := before.DeepCopy()
		c.change(after)
		if got := generate.Edited(before, after); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
