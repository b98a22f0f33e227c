package generate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// TestUpdatesSayWhatTheyWereDecidedAbout: whoever carries an update out can tell
// whether somebody has written to that Application since.
func TestUpdatesSayWhatTheyWereDecidedAbout(t *testing.T) {
	set := setOf(t, withTemplate(listOf("a", "b", "c", "d"), "{{name}}", "x"))
	set.UID = "u"
	apps := live(t, set, fleet())
	apps[0].Labels = map[string]string{"mine": "yes"}                                                                                         // put back
	apps[1].OwnerReferences = nil                                                                                                             // adopted
	apps[2].OwnerReferences[0].Name, apps[2].OwnerReferences[0].UID = "gone", "other"                                                         // its set is gone
	apps[3].Annotations = map[string]string{generate.AnnotationHold: generate.ApplicationHold{Who: "ada", Until: time.Unix(2e9, 0)}.String()} // outlives the set
	policy := generate.Policy{Now: time.Unix(1.9e9, 0), Sets: []string{"set"}, Keeper: &metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "argocd", UID: "ns"}}
	d := generate.Decide(set, generate.Generate(set, fleet()), apps, policy)
	updates := 0
	for _, c := range slices.Concat(d.Changes, d.Upkeep) {
		if c.Verb != generate.Update {
			continue
		}
		updates++
		if !slices.Contains(apps, c.Live) || c.Live.Name != c.Name {
			t.Errorf("the update of %s (%s) says %+v", c.Name, c.Reason, c.Live)
		}
	}
	if updates != 4 {
		t.Errorf("%d updates, want 4: %v", updates, verbs(d.Changes))
	}
	// What is let go, too.
	for _, c := range generate.Teardown(set, apps, generate.Policy{Elsewhere: map[string]string{"a": "other"}, Applications: v1alpha1.ApplicationsSyncPolicyCreateOnly}) {
		if c.Verb != generate.Update || !slices.Contains(apps, c.Live) {
			t.Errorf("%s is let go without saying which: %+v", c.Name, c.Live)
		}
	}
}

// TestAPatchThatNamesAndFails: which Application an element is, is not known when
// the patch that names it fails; then none is taken for unwanted.
func TestAPatchThatNamesAndFails(t *testing.T) {
	before := setOf(t, goTemplated(withTemplate("- list: {elements: [{name: a, to: x}, {name: b, to: w}]}", "{{.name}}", "p")))
	patch := `{"metadata": {"name": "{{.to}}"}}`
	before.UID, before.Spec.TemplatePatch = "u", &patch
	apps := live(t, before, fleet())
	if names := []string{apps[0].Name, apps[1].Name}; !slices.Equal(names, []string{"w", "x"}) {
		t.Fatalf("the patch names them: %v", names)
	}
	for name, tc := range map[string]struct {
		patch string
		// stay says that x, which may be what the broken element is, stays.
		elements string
		stay     bool
	}{
		"a patch that names and fails":      {`{"metadata": {"name": "{{.to}}"}, "spec": {"project": {{ fail "no" }}}}`, "[{name: a, to: x}, {name: b, to: w}]", true},
		"a patch that lacks its name":       {`{"metadata": {"name": "{{ .to | required "to" }}"}}`, "[{name: a}, {name: b, to: w}]", true},
		"a template that fails before":      {`{"metadata": {"name": "{{.to}}"}}`, "[{name: a, to: x, bad: true}, {name: b, to: w}]", true},
		"nothing fails, and the name is no": {`{"metadata": {"name": "{{.to}}"}}`, "[{name: b, to: w}]", false},
	} {
		set := setOf(t, goTemplated(withTemplate("- list: {elements: "+tc.elements+"}", "{{.name}}", `{{ if (get . "bad") }}{{ fail "bad" }}{{ end }}p`)))
		set.UID, set.Spec.TemplatePatch = "u", &tc.patch
		d := generate.Decide(set, generate.Generate(set, fleet()), apps, generate.Policy{})
		deleted := slices.ContainsFunc(d.Changes, func(c generate.Change) bool { return c.Verb == generate.Delete && c.Name == "x" })
		if deleted == tc.stay {
			t.Errorf("%s: %s", name, strings.Join(verbs(d.Changes), ", "))
		}
	}
}
