package generate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// live makes what a set generated before into live Applications.
func live(t *testing.T, set *v1alpha1.ApplicationSet, f *facts) []*v1alpha1.Application {
	t.Helper()
	var apps []*v1alpha1.Application
	for _, c := range generate.Reconcile(set, generate.Generate(set, f), nil, generate.Policy{}) {
		if c.Verb != generate.Create {
			t.Fatalf("the first time everything is created: %+v", c)
		}
		apps = append(apps, c.Application)
	}
	return apps
}

func listOf(names ...string) string {
	elements := make([]string, len(names))
	for i, n := range names {
		elements[i] = "{name: '" + n + "'}"
	}
	return "- list: {elements: [" + strings.Join(elements, ", ") + "]}"
}

// verbs are "name verb" of changes, with "!" where there is an error and "~"
// where the finalizer is stripped.
func verbs(changes []generate.Change) []string {
	out := make([]string, 0, len(changes))
	for _, c := range changes {
		s := c.Name + " " + string(c.Verb)
		if c.Err != nil {
			s += "!"
		}
		if c.StripFinalizer {
			s += "~"
		}
		out = append(out, s)
	}
	return out
}

// reconcileCase is what becomes of the Applications a, b and c that a set made
// before, after the set, or they, have changed.
type reconcileCase struct {
	reason string
	after  string
	change func(set *v1alpha1.ApplicationSet, apps []*v1alpha1.Application)
	policy generate.Policy
	want   []string
	// say is a part of a reason or an error.
	say string
}

// abc is the set before.
func abc() string { return withTemplate(listOf("a", "b", "c"), "{{name}}", "old") }

func runReconcile(t *testing.T, cases map[string]reconcileCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := fleet()
			old := setOf(t, abc())
			old.UID = "1"
			apps := live(t, old, f)
			set := setOf(t, tc.after)
			set.UID = "1"
			if tc.change != nil {
				tc.change(set, apps)
			}
			changes := generate.Reconcile(set, generate.Generate(set, f), apps, tc.policy)
			if diff := cmp.Diff(append([]string{}, tc.want...), verbs(changes)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			said := false
			for _, c := range changes {
				said = said || strings.Contains(fmt.Sprint(c.Reason, c.Err), tc.say)
			}
			if !said && len(changes) > 0 {
				t.Errorf("%s: no change says %q: %+v", tc.reason, tc.say, changes)
			}
		})
	}
}

func TestReconcile(t *testing.T) {
	before := abc()
	runReconcile(t, map[string]reconcileCase{
		"nothing new": {reason: "an unchanged set writes nothing", after: before, want: []string{"a keep", "b keep", "c keep"}},
		"all kinds": {reason: "create, update and delete, by name",
			after: withTemplate(listOf("a", "b", "d"), "{{name}}", "new"), want: []string{"a update", "b update", "c delete", "d create"}, say: "spec.source changed"},
		"partial": {reason: "only a complete answer proposes removals",
			after: withTemplate(listOf("a")+"\n- git: {repoURL: https://gone, files: [{path: x}]}", "{{name}}", "old"),
			want:  []string{"a keep", "b keep", "c keep"}, say: "partial"},
		"failed": {reason: "a failure removes nothing", after: withTemplate("- git: {repoURL: https://gone, files: [{path: x}]}", "{{name}}", "old"),
			want: []string{"a keep", "b keep", "c keep"}, say: "failed"},
		"to nothing": {reason: "a complete answer that falls to nothing is held",
			after: withTemplate("- list: {}", "{{name}}", "old"), want: []string{"a hold", "b hold", "c hold"}, say: "rutter.dev/allow-empty"},
		"to nothing, allowed": {reason: "unless the set says so",
			after: withTemplate("- list: {}", "{{name}}", "old", `metadata: {name: set, annotations: {rutter.dev/allow-empty: "true"}}`),
			want:  []string{"a delete", "b delete", "c delete"}},
		"element error": {reason: "an element that fails keeps its Application, the others go on",
			after: goTemplated(withTemplate("- list: {elements: [{name: a, p: old}, {name: b}]}", "{{.name}}", "{{.p}}"), "missingkey=error"),
			want:  []string{"a keep", "b keep!", "c delete"}, say: "its element has an error"},
	})
}

func TestReconcilePolicies(t *testing.T) {
	runReconcile(t, map[string]reconcileCase{
		"create-only": {reason: "neither updates nor deletions", after: withTemplate(listOf("a", "d"), "{{name}}", "new"),
			change: policy(v1alpha1.ApplicationsSyncPolicyCreateOnly), want: []string{"a keep", "b keep", "c keep", "d create"}},
		"create-update": {reason: "no deletions", after: withTemplate(listOf("a", "d"), "{{name}}", "new"),
			change: policy(v1alpha1.ApplicationsSyncPolicyCreateUpdate), want: []string{"a update", "b keep", "c keep", "d create"}},
		"create-delete": {reason: "no updates", after: withTemplate(listOf("a", "d"), "{{name}}", "new"),
			change: policy(v1alpha1.ApplicationsSyncPolicyCreateDelete), want: []string{"a keep", "b delete", "c delete", "d create"}},
		"the operator's policy": {reason: "it holds for all sets when it is given", after: withTemplate(listOf("a", "d"), "{{name}}", "new"),
			change: policy(v1alpha1.ApplicationsSyncPolicySync), policy: generate.Policy{Applications: v1alpha1.ApplicationsSyncPolicyCreateOnly},
			want: []string{"a keep", "b keep", "c keep", "d create"}},
		"override": {reason: "unless sets may choose", after: withTemplate(listOf("a", "d"), "{{name}}", "new"),
			change: policy(v1alpha1.ApplicationsSyncPolicySync),
			policy: generate.Policy{Applications: v1alpha1.ApplicationsSyncPolicyCreateOnly, AllowOverride: true},
			want:   []string{"a update", "b delete", "c delete", "d create"}},
		"preserve": {reason: "deleted without touching the workloads; the finalizer goes off those that stay", after: withTemplate(listOf("a"), "{{name}}", "old"),
			change: func(set *v1alpha1.ApplicationSet, _ []*v1alpha1.Application) {
				set.Spec.SyncPolicy = &v1alpha1.ApplicationSetSyncPolicy{PreserveResourcesOnDeletion: true}
			}, want: []string{"a update", "b delete~", "c delete~"}, say: "metadata.finalizers changed"},
		"cluster gone": {reason: "what waits for a cluster that is no member would wait for ever", after: withTemplate(listOf("a"), "{{name}}", "old"),
			change: func(_ *v1alpha1.ApplicationSet, apps []*v1alpha1.Application) {
				apps[1].Spec.Destination.Server = "https://gone.example.com"
				apps[2].Spec.Destination.Server = "https://lab.example.com/"
			}, policy: generate.Policy{Clusters: fleet().clusters}, want: []string{"a keep", "b delete~", "c delete"}, say: "no longer a member"},
		"clusters unknown": {reason: "not knowing the clusters is not their absence", after: withTemplate(listOf("a"), "{{name}}", "old"),
			change: func(_ *v1alpha1.ApplicationSet, apps []*v1alpha1.Application) {
				apps[1].Spec.Destination.Server = "https://gone.example.com"
			}, want: []string{"a keep", "b delete", "c delete"}},
	})
}

func TestReconcileOwnersAndEdits(t *testing.T) {
	before := abc()
	runReconcile(t, map[string]reconcileCase{
		"foreign owner": {reason: "an Application of another set is not touched", after: before,
			change: func(_ *v1alpha1.ApplicationSet, apps []*v1alpha1.Application) {
				apps[1].OwnerReferences[0].Name = "other"
			},
			want: []string{"a keep", "b refuse!", "c keep"}, say: `ApplicationSet "other"`},
		"foreign and unwanted": {reason: "nor when this set does not generate it", after: withTemplate(listOf("a"), "{{name}}", "old"),
			change: func(_ *v1alpha1.ApplicationSet, apps []*v1alpha1.Application) {
				apps[1].OwnerReferences[0].Name, apps[2].OwnerReferences = "other", nil
			}, want: []string{"a keep"}},
		"adopt": {reason: "one without an owner becomes the set's", after: before,
			change: func(_ *v1alpha1.ApplicationSet, apps []*v1alpha1.Application) { apps[0].OwnerReferences = nil },
			want:   []string{"a update", "b keep", "c keep"}, say: "adopted"},
		"terminating": {reason: "what is going is not written to, nor deleted again", after: withTemplate(listOf("a", "b"), "{{name}}", "new"),
			change: func(_ *v1alpha1.ApplicationSet, apps []*v1alpha1.Application) {
				now := metav1.NewTime(time.Unix(1, 0))
				apps[0].DeletionTimestamp, apps[2].DeletionTimestamp = &now, &now
			}, want: []string{"a keep", "b update", "c keep"}},
		"live edit": {reason: "a changed spec is put back", after: before,
			change: func(_ *v1alpha1.ApplicationSet, apps []*v1alpha1.Application) { apps[2].Spec.Source.Path = "edited" },
			want:   []string{"a keep", "b keep", "c update"}, say: "spec.source"},
		"ignored field": {reason: "unless the field is ignored, for that Application", after: before,
			change: func(set *v1alpha1.ApplicationSet, apps []*v1alpha1.Application) {
				apps[1].Spec.Source.Path, apps[2].Spec.Source.Path = "edited", "edited"
				set.Spec.IgnoreApplicationDifferences = []v1alpha1.ApplicationSetResourceIgnoreDifferences{
					{Name: "c", JSONPointers: []string{"/spec/source/path"}}}
			}, want: []string{"a keep", "b update", "c keep"}},
		"jq": {reason: "what a jq rule names keeps its live value, for that Application", after: before,
			change: func(set *v1alpha1.ApplicationSet, apps []*v1alpha1.Application) {
				apps[1].Spec.Source.Path, apps[2].Spec.Source.Path = "edited", "edited"
				set.Spec.IgnoreApplicationDifferences = []v1alpha1.ApplicationSetResourceIgnoreDifferences{
					{Name: "c", JQPathExpressions: []string{".spec.source.path"}}}
			}, want: []string{"a keep", "b update", "c keep"}},
		"bad jq": {reason: "a rule that cannot be read must not be written over", after: before,
			change: func(set *v1alpha1.ApplicationSet, _ []*v1alpha1.Application) {
				set.Spec.IgnoreApplicationDifferences = []v1alpha1.ApplicationSetResourceIgnoreDifferences{
					{Name: "c", JQPathExpressions: []string{".spec.source ||"}}}
			}, want: []string{"a keep", "b keep", "c hold!"}, say: "jqPathExpressions"},
		"empty fields": {reason: "what says nothing is no difference", after: before,
			change: func(_ *v1alpha1.ApplicationSet, apps []*v1alpha1.Application) {
				apps[0].Labels, apps[0].Annotations = map[string]string{}, map[string]string{}
			}, want: []string{"a keep", "b keep", "c keep"}},
	})
}

func policy(p v1alpha1.ApplicationsSyncPolicy) func(*v1alpha1.ApplicationSet, []*v1alpha1.Application) {
	return func(set *v1alpha1.ApplicationSet, _ []*v1alpha1.Application) {
		set.Spec.SyncPolicy = &v1alpha1.ApplicationSetSyncPolicy{ApplicationsSync: &p}
	}
}

func TestUpdateKeepsWhatSurvives(t *testing.T) {
	f := fleet()
	set := setOf(t, withTemplate(listOf("a"), "{{name}}", "old"))
	app := live(t, set, f)[0]
	app.ResourceVersion = "7"
	app.Labels = map[string]string{"kept": "1", "dropped": "1"}
	app.Annotations = map[string]string{"argocd.argoproj.io/refresh": "hard", "mine": "1", "global": "1", "dropped": "1"}
	app.Finalizers = []string{"post-delete-finalizer.argocd.argoproj.io/cleanup", "resources-finalizer.argocd.argoproj.io", "dropped.example.com/x"}
	app.Spec.Source.Path, app.Spec.Source.TargetRevision = "edited", "canary"

	set = setOf(t, withTemplate(listOf("a"), "{{name}}", "new"))
	set.Spec.PreservedFields = &v1alpha1.ApplicationPreservedFields{Labels: []string{"kept"}, Annotations: []string{"mine"}}
	set.Spec.IgnoreApplicationDifferences = []v1alpha1.ApplicationSetResourceIgnoreDifferences{{JSONPointers: []string{"/spec/source/targetRevision"}}}
	changes := generate.Reconcile(set, generate.Generate(set, f), []*v1alpha1.Application{app}, generate.Policy{PreservedAnnotations: []string{"global"}})
	if len(changes) != 1 || changes[0].Verb != generate.Update {
		t.Fatalf("got %+v", changes)
	}
	got := changes[0].Application
	if diff := cmp.Diff(map[string]string{"kept": "1"}, got.Labels); diff != "" {
		t.Errorf("labels:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"argocd.argoproj.io/refresh": "hard", "mine": "1", "global": "1"}, got.Annotations); diff != "" {
		t.Errorf("annotations:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"resources-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io/cleanup"}, got.Finalizers); diff != "" {
		t.Errorf("finalizers:\n%s", diff)
	}
	if s := got.Spec.Source; s.Path != "new" || s.TargetRevision != "canary" {
		t.Errorf("an ignored field keeps its live value while another is written: %+v", s)
	}
	if got.ResourceVersion != "7" || app.Spec.Source.Path != "edited" {
		t.Error("the change is based on the live object, which is not written to")
	}
}

func TestTeardown(t *testing.T) {
	f := fleet()
	set := setOf(t, withTemplate(listOf("a", "b"), "{{name}}", "x"))
	apps := live(t, set, f)
	if diff := cmp.Diff([]string{"a delete", "b delete"}, verbs(generate.Teardown(set, apps, generate.Policy{}))); diff != "" {
		t.Error(diff)
	}
	policy(v1alpha1.ApplicationsSyncPolicyCreateUpdate)(set, nil)
	for _, c := range generate.Teardown(set, apps, generate.Policy{}) {
		if c.Verb != generate.Update || len(c.Application.OwnerReferences) != 0 {
			t.Errorf("B5: a set that may not delete leaves its Applications behind, detached: %+v", c)
		}
	}
}

func TestRefusalsAreConflicts(t *testing.T) {
	f := fleet()
	set := setOf(t, withTemplate(listOf("a"), "{{name}}", "x"))
	apps := live(t, set, f)
	apps[0].OwnerReferences[0].Kind = "Widget"
	changes := generate.Reconcile(set, generate.Generate(set, f), apps, generate.Policy{})
	if len(changes) != 1 || rutter.CodeOf(changes[0].Err) != rutter.CodeConflict {
		t.Errorf("got %+v", changes)
	}
}
