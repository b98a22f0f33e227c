package argo_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/testenv"
)

func tier(want string) func(*v1alpha1.Application) error {
	return func(app *v1alpha1.Application) error {
		if got := app.Labels["tier"]; got != want {
			return fmt.Errorf("tier is %q, want %q", got, want)
		}
		return nil
	}
}

func uids(apps map[string]*v1alpha1.Application) map[string]types.UID {
	out := map[string]types.UID{}
	for name, app := range apps {
		out[name] = app.UID
	}
	return out
}

// TestMemoryOutlivesRestart: an outage that begins before a restart does no harm
// after it. What the generator answered last stays in force, other changes go
// on, nothing is removed, and it recovers by itself.
func TestMemoryOutlivesRestart(t *testing.T) {
	p := newPlane(t)
	dir := repository(t, "a", "b", "c")
	stop := p.start(daemon.SetConfig{})
	p.create(p.set("{git: {repoURL: 'file://"+dir+"', revision: main, requeueAfterSeconds: 1, directories: [{path: '*'}]}}",
		func(set *v1alpha1.ApplicationSet) {
			set.Spec.Template.Name, set.Spec.Template.Spec.Source.Path = "{{.path.basename}}", "{{.path.path}}"
		}))
	abc := []string{"a", "b", "c"}
	p.await(abc, tier("one"))
	p.awaitCondition(v1alpha1.ApplicationSetConditionParametersGenerated, "True", v1alpha1.ApplicationSetReasonParametersGenerated)
	before := uids(p.apps())
	stop()

	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	p.writes.reset()
	p.start(daemon.SetConfig{})
	p.awaitCondition(v1alpha1.ApplicationSetConditionParametersGenerated, "False", v1alpha1.ApplicationSetReasonInputsFailed, "generators[0].git", "stays in force")
	p.awaitCondition(v1alpha1.ApplicationSetConditionErrorOccurred, "True", v1alpha1.ApplicationSetReasonGenerationFromParamsError)
	p.change(func(set *v1alpha1.ApplicationSet) { set.Spec.Template.Labels["tier"] = "two" })
	p.await(abc, tier("two"))

	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	p.awaitCondition(v1alpha1.ApplicationSetConditionErrorOccurred, "False", v1alpha1.ApplicationSetReasonUpToDate)
	if after := uids(p.apps()); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("other Applications: %v, before %v", after, before)
	}
	for _, w := range p.writes.of("applications") {
		if strings.HasPrefix(w, "DELETE") {
			t.Errorf("a deletion: %s", w)
		}
	}
}

// TestHeldAndApproved: removals over the budget wait, while the set grows and
// changes; only the digest of what waits lets them through, also when the
// controller is stopped before it has carried them out.
func TestHeldAndApproved(t *testing.T) {
	p := newPlane(t)
	stop := p.start(daemon.SetConfig{})
	all := []string{"a", "b", "c", "d", "e", "f"}
	p.create(p.set(names(all...)))
	p.await(all)
	p.says(0, "approve fleet", "nothing waits")

	p.generators(names("a", "new"))
	set := p.awaitCondition(v1alpha1.ApplicationSetConditionDeletionsHeld, "True", v1alpha1.ApplicationSetReasonHeldOverBudget,
		"5 of 6 Applications would be deleted, at most 3", "b, c, d, e, f", "rutter approve appset/fleet ")
	p.await(append(all, "new"))
	digest := generate.HeldDigest(set)
	p.awaitCondition(v1alpha1.ApplicationSetConditionResourcesUpToDate, "False", v1alpha1.ApplicationSetReasonHeldOverBudget)
	p.says(3, "approve appset/fleet", "5 of 6 Applications", "  - b\n", "  - f\n", digest)
	p.says(3, "approve appset/fleet 0123456789abcdef", "0123456789abcdef is not what waits", digest)
	p.says(0, "appset list", "HELD", "Suspended")
	p.says(0, "app list", "(removal waits)")
	p.says(0, "unhold a", "a was not held")
	p.says(0, "appset get fleet", "  - b\n", "DeletionsHeld=True")
	p.awaitEvent(v1alpha1.ApplicationSetReasonHeldOverBudget)
	p.awaitEvent("ApplicationsCreated")

	// What a person approved is carried out by whoever runs next.
	stop()
	p.says(0, "approve appset/fleet "+digest, "approved")
	p.start(daemon.SetConfig{})
	p.await([]string{"a", "new"})
	p.awaitCondition(v1alpha1.ApplicationSetConditionDeletionsHeld, "False", v1alpha1.ApplicationSetReasonUpToDate)

	// An approval is of one plan: the same names again wait again.
	p.generators(names(all...))
	p.await(all)
	p.generators(names())
	set = p.awaitCondition(v1alpha1.ApplicationSetConditionDeletionsHeld, "True", v1alpha1.ApplicationSetReasonHeldOverBudget, "generates nothing any more", "6 Applications")
	if again := generate.HeldDigest(set); again == digest || again == "" {
		t.Errorf("another plan has another digest: %q", again)
	}
	// What is left of a plan waits on, though so few would not have waited by themselves.
	p.generators(names("a", "b", "c", "d", "e"))
	set = p.awaitCondition(v1alpha1.ApplicationSetConditionDeletionsHeld, "True", v1alpha1.ApplicationSetReasonHeldOverBudget,
		"1 of 6 Applications would be deleted, what is left of a plan that waits")
	p.says(0, "approve appset/fleet "+generate.HeldDigest(set), "approved")
	p.await([]string{"a", "b", "c", "d", "e"})
}

// awaitEvent waits for an event about the set.
func (p *plane) awaitEvent(reason string) {
	p.Helper()
	testenv.Eventually(p, patience, func() error {
		var list corev1.EventList
		if err := p.client.List(p.Context(), &list, client.InNamespace(p.ns)); err != nil {
			return fmt.Errorf("list events: %w", err)
		}
		for i := range list.Items {
			if e := &list.Items[i]; e.InvolvedObject.Name == "fleet" && e.Reason == reason && len(e.Message) <= 1024 {
				return nil
			}
		}
		return fmt.Errorf("no event %s: %d others", reason, len(list.Items))
	})
}

// TestOneWrite: one changed element costs one write, and nothing changed costs none.
func TestOneWrite(t *testing.T) {
	p := newPlane(t)
	var all []string
	for i := range 30 {
		all = append(all, fmt.Sprintf("app-%02d", i))
	}
	p.start(daemon.SetConfig{})
	p.create(p.set(names(all...)))
	p.await(all)
	p.awaitCondition(v1alpha1.ApplicationSetConditionResourcesUpToDate, "True", v1alpha1.ApplicationSetReasonUpToDate)
	p.writes.reset()
	p.change(func(set *v1alpha1.ApplicationSet) {
		set.Annotations = map[string]string{"argocd.argoproj.io/application-set-refresh": "true"}
	})
	testenv.Eventually(t, patience, func() error {
		if len(p.live().Annotations) > 0 {
			return errors.New("the refresh was not answered")
		}
		return nil
	})
	if w := p.writes.of("applications/"); len(w) != 0 {
		t.Errorf("nothing changed: %q", w)
	}
	p.generators(strings.Replace(names(all...), "{name: app-07}", "{name: app-07, path: other}", 1))
	p.change(func(set *v1alpha1.ApplicationSet) {
		set.Spec.Template.Spec.Source.Path = `{{ default .name (get . "path") }}`
	})
	testenv.Eventually(t, patience, func() error {
		if got := p.apps()["app-07"].Spec.Source.Path; got != "other" {
			return fmt.Errorf("its path is %q", got)
		}
		return nil
	})
	time.Sleep(300 * time.Millisecond) // what should not come has the time to
	if w := p.writes.of("applications/"); len(w) != 1 || !strings.HasSuffix(w[0], "/app-07") {
		t.Errorf("one changed: %q", w)
	}
	edited := p.apps()["app-03"]
	if err := p.client.Patch(p.Context(), edited, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":"mine"}}}`))); err != nil {
		t.Fatal(err)
	}
	p.await(all, tier("one"))
}

// TestElementsAlone: an element that cannot be keeps its last good state, and
// the others go on; what it lacks may come later.
func TestElementsAlone(t *testing.T) {
	p := newPlane(t)
	p.start(daemon.SetConfig{})
	element := func(name, project, cluster string) string {
		return fmt.Sprintf("{name: %q, project: %s, cluster: %s}", name, project, cluster)
	}
	list := func(elements ...string) string { return "{list: {elements: [" + strings.Join(elements, ", ") + "]}}" }
	in := func(set *v1alpha1.ApplicationSet) {
		set.Spec.Template.Spec.Project, set.Spec.Template.Spec.Destination.Server = "{{.project}}", ""
		set.Spec.Template.Spec.Destination.Name = "{{.cluster}}"
	}
	p.create(p.set(list(element("a", "default", "in-cluster"), element("b", "default", "in-cluster"), element("c", "default", "in-cluster")), in))
	p.await([]string{"a", "b", "c"}, tier("one"))
	next := p.set(list(element("a", "default", "nowhere"), element("b", "later", "in-cluster"), element("c", "default", "in-cluster"), element("Bad_Name", "default", "in-cluster")), in)
	p.change(func(set *v1alpha1.ApplicationSet) {
		set.Spec.Generators, set.Spec.Template.Labels["tier"] = next.Spec.Generators, "two"
	})
	p.awaitCondition(v1alpha1.ApplicationSetConditionErrorOccurred, "True", v1alpha1.ApplicationSetReasonRenderTemplateParamsError,
		"Bad_Name", `no cluster "nowhere"`, `no project "later"`)
	apps := p.apps()
	if len(apps) != 3 || apps["a"].Labels["tier"] != "one" || apps["b"].Labels["tier"] != "one" || apps["c"].Labels["tier"] != "two" {
		t.Errorf("bad ones stay as they were: %v", apps)
	}
	project := &v1alpha1.AppProject{}
	project.Namespace, project.Name = p.ns, "later"
	p.create(project)
	testenv.Eventually(t, patience, func() error {
		if app := p.apps()["b"]; app.Spec.Project != "later" {
			return errors.New("the project is there, and it was not noticed")
		}
		return nil
	})
}

// TestDryRun: nothing but the status is written.
func TestDryRun(t *testing.T) {
	p := newPlane(t)
	p.start(daemon.SetConfig{DryRun: "true", Policy: "create-update"})
	p.create(p.set(names("a", "b")))
	p.awaitCondition(v1alpha1.ApplicationSetConditionResourcesUpToDate, "False", v1alpha1.ApplicationSetReasonModified, "2 changes are not carried out")
	if w := append(append(p.writes.of("applications"), p.writes.of("configmaps")...), p.writes.of("applicationsets")...); len(w) != 0 || len(p.apps()) != 0 {
		t.Errorf("something was written: %q", w)
	}
}
