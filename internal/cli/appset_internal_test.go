package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// TestTakers: what another set generates too stays when its set is deleted, as far
// as the status of that one says it.
func TestTakers(t *testing.T) {
	set := &v1alpha1.ApplicationSet{}
	set.Namespace, set.Name, set.UID = "argocd", "fleet", "u"
	other := func(name, status, message string) v1alpha1.ApplicationSet {
		s := v1alpha1.ApplicationSet{}
		s.Namespace, s.Name = "argocd", name
		s.Status.Conditions = []v1alpha1.ApplicationSetCondition{{Type: v1alpha1.ApplicationSetConditionErrorOccurred, Status: status, Message: message}}
		return s
	}
	conflict := func(app, owner string) string {
		return `Application argocd/` + app + ` belongs to ApplicationSet "` + owner + `"; give one of them another name`
	}
	var apps []v1alpha1.Application
	for _, name := range []string{"a", "b", "c"} {
		app := v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name, Finalizers: []string{"resources-finalizer.argocd.argoproj.io"}}}
		app.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion.WithKind("ApplicationSet"))}
		apps = append(apps, app)
	}
	takers, others := takersOf(set, []v1alpha1.ApplicationSet{
		*set, other("second", "True", conflict("a", "fleet")+"; "+conflict("x", "elsewhere")),
		other("third", "True", conflict("b", "fleet")+"; no project, and 4 more"), other("well", "False", conflict("c", "fleet")),
	})
	if diff := cmp.Diff(map[string]string{"a": "second", "b": "third"}, takers); diff != "" || !cmp.Equal(others, []string{"third"}) {
		t.Errorf("%v\n%s", others, diff)
	}
	var got []string
	for _, row := range fatesOf(set, apps, takers, metav1.DeletePropagationBackground, time.Now()) {
		got = append(got, row.Application+": "+row.Fate+": "+row.Why)
	}
	want := []string{
		"a: stays, detached: its set is deleted and ApplicationSet second generates it now",
		"b: stays, detached: its set is deleted and ApplicationSet third generates it now",
		"c: deleted with its objects: its set is deleted",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestConditionLines: an error that several conditions have is printed once.
func TestConditionLines(t *testing.T) {
	long := "generators[0].git: " + strings.Repeat("it does not answer ", 5)
	lines := conditionLines([]v1alpha1.ApplicationSetCondition{
		{Type: "ErrorOccurred", Status: "True", Message: long}, {Type: "ResourcesUpToDate", Status: "False", Message: long},
		{Type: "ParametersGenerated", Status: "False", Message: "2 elements, partial: " + long}, {Type: "DeletionsHeld", Status: "False", Message: "nothing waits"},
	})
	want := []string{
		"ErrorOccurred=True: " + long, "ResourcesUpToDate=False: (as ErrorOccurred says)",
		"ParametersGenerated=False: 2 elements, partial: (as ErrorOccurred says)", "DeletionsHeld=False: nothing waits",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}
