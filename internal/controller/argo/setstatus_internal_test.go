package argo

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// statusLimit is what a status may have at most.
const statusLimit = 256 << 10

// TestStatusSize: however many Applications a set has, however long their names
// are and however much is wrong, its status stays small.
func TestStatusSize(t *testing.T) {
	for _, long := range []int{0, 60, 220} {
		t.Run(fmt.Sprintf("names of %d more characters", long), func(t *testing.T) {
			const n = 6000
			var o outcome
			o.decision.Held = &generate.Held{Digest: "0123456789abcdef", Limit: 3, Of: n}
			apps := make([]*v1alpha1.Application, n)
			for i := range apps {
				app := &v1alpha1.Application{}
				app.Namespace, app.Name = strings.Repeat("n", 60), fmt.Sprintf("app-%05d%s", n-i, strings.Repeat("x", long))
				app.Status.Sync.Status, app.Status.Health.Status = "OutOfSync", "Progressing"
				apps[i] = app
				o.decision.Held.Names = append(o.decision.Held.Names, app.Name)
				o.result.Errors = append(o.result.Errors, errors.New(strings.Repeat("ü", 5000)))
				o.refusals = append(o.refusals, fmt.Errorf("element %d: no", i))
			}
			set := &v1alpha1.ApplicationSet{}
			set.Name, set.Namespace = "fleet", apps[0].Namespace
			s := &applicationSets{Controllers: &Controllers{opts: Options{Now: time.Now}}}
			s.conditions(set, &o)
			set.Status.Resources, set.Status.ResourcesCount = resourcesOf(apps), n
			set.Status.Health = setHealth(set, nil, time.Now)
			raw, err := json.Marshal(set.Status)
			if err != nil {
				t.Fatal(err)
			}
			if len(raw) > statusLimit || len(raw) < statusLimit/2 {
				t.Errorf("the status has %d bytes, at most %d are allowed, and the room is to be used", len(raw), statusLimit)
			}
			if first := set.Status.Resources[0].Name; first != apps[0].Name || !strings.HasPrefix(first, "app-00001") {
				t.Errorf("the list begins with the first by name: %s", first)
			}
			if got := generate.HeldDigest(set); got != "0123456789abcdef" || generate.HeldCount(set) != "6000" {
				t.Errorf("what waits is read from what is shown: %q %q", got, generate.HeldCount(set))
			}
		})
	}
}

// TestConditions: what the conditions of a set say of an evaluation.
func TestConditions(t *testing.T) {
	refused := generate.Change{Verb: generate.Refuse, Name: "a", Err: errors.New("no project")}
	for name, c := range map[string]struct {
		o    outcome
		dry  bool
		want []string
	}{
		"all is well": {outcome{result: generate.Result{Completeness: generate.Complete}}, false, []string{
			"ErrorOccurred=False ApplicationSetUpToDate", "ResourcesUpToDate=True ApplicationSetUpToDate", "ParametersGenerated=True ParametersGenerated",
		}},
		"a generator could not look": {outcome{result: generate.Result{Completeness: generate.Partial, Errors: []error{errors.New("git is down")}}}, false, []string{
			"ErrorOccurred=True ApplicationGenerationFromParamsError", "ResourcesUpToDate=False ApplicationGenerationFromParamsError", "ParametersGenerated=False InputsFailed",
		}},
		"an element cannot be": {outcome{result: generate.Result{Completeness: generate.Complete}, decision: generate.Decision{Changes: []generate.Change{refused}},
			refusals: []error{refused.Err}}, false, []string{
			"ErrorOccurred=True ApplicationValidationError", "ResourcesUpToDate=False ApplicationValidationError", "ParametersGenerated=True ParametersGenerated",
		}},
		"a deletion failed": {outcome{result: generate.Result{Completeness: generate.Complete}, failures: []failure{{generate.Delete, errors.New("x")}}}, false, []string{
			"ErrorOccurred=True DeleteApplicationError", "ResourcesUpToDate=False DeleteApplicationError", "ParametersGenerated=True ParametersGenerated",
		}},
		"deletions wait": {outcome{result: generate.Result{Completeness: generate.Complete}, decision: generate.Decision{Held: &generate.Held{Digest: "0123456789abcdef"}}}, false, []string{
			"ErrorOccurred=False ApplicationSetUpToDate", "ResourcesUpToDate=False HeldOverBudget", "ParametersGenerated=True ParametersGenerated", "DeletionsHeld=True HeldOverBudget",
		}},
		"something is warned of": {outcome{result: generate.Result{Completeness: generate.Complete, Warnings: []string{"b"}, Elements: []generate.Element{{Warnings: []string{"a", "b"}}}}}, false, []string{
			"ErrorOccurred=False ApplicationSetUpToDate", "ResourcesUpToDate=True ApplicationSetUpToDate", "ParametersGenerated=True ParametersGenerated 1 elements, complete; warnings: a; b",
		}},
		"nothing is written": {outcome{result: generate.Result{Completeness: generate.Complete}, decision: generate.Decision{Changes: []generate.Change{{Verb: generate.Create}}}}, true, []string{
			"ErrorOccurred=False ApplicationSetUpToDate", "ResourcesUpToDate=False ApplicationSetModified", "ParametersGenerated=True ParametersGenerated",
		}},
	} {
		set := &v1alpha1.ApplicationSet{}
		s := &applicationSets{Controllers: &Controllers{opts: Options{Now: time.Now, Sets: SetOptions{DryRun: c.dry}}}}
		s.conditions(set, &c.o)
		got := make([]string, 0, len(set.Status.Conditions))
		for _, x := range set.Status.Conditions {
			line := fmt.Sprintf("%s=%s %s", x.Type, x.Status, x.Reason)
			if strings.Contains(x.Message, "warnings") {
				line += " " + x.Message
			}
			got = append(got, line)
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
