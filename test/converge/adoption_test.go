package converge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/plan"
)

// former is a way in which an object was applied before.
type former struct {
	name, manager string
	// client says that the manager applies on its own side and leaves an annotation.
	client              bool
	labels, annotations map[string]string
}

var formers = []former{
	{name: "kubectl", manager: "kubectl-client-side-apply", client: true},
	{name: "argo-label", manager: "argocd-controller", client: true, labels: map[string]string{"app.kubernetes.io/instance": "guestbook"}},
	{name: "argo-annotation", manager: "argocd-controller", client: true, annotations: map[string]string{rutter.AnnotationTracking: "guestbook:x"}},
	{
		name: "argo-both", manager: "argocd-controller",
		labels: map[string]string{"app.kubernetes.io/instance": "guestbook"}, annotations: map[string]string{rutter.AnnotationTracking: "guestbook:x"},
	},
	{name: "flux", manager: "kustomize-controller", labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "a", "kustomize.toolkit.fluxcd.io/namespace": "b"}},
}

// adopted is how many shapes each former owner has applied.
const adopted = 30

// testAdoption: what another tool applied becomes ours with one write, which
// changes nothing but marks and owners; the former owner keeps nothing, and what
// Git drops later goes.
func testAdoption(t *testing.T, s *suite, shapes []shape) {
	for _, f := range formers {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			ns := "adopt-" + f.name
			s.namespace(t, ns)
			writes, n := 0, 0
			for i := range shapes {
				x := &shape{name: shapes[i].name, raw: shapes[i].raw.DeepCopy()}
				if x.raw.GetNamespace() != "cv" || n == adopted || slices.Contains([]string{"default", "limited", "full"}, x.raw.GetName()) || x.raw.GetKind() == "Pod" {
					continue
				}
				x.raw.SetNamespace(ns)
				x.sent = x.raw
				n++
				writes += s.adopt(t, x, f)
			}
			if n < adopted {
				t.Errorf("only %d shapes", n)
			}
			t.Logf("converge: %d objects of %s taken over with %d writes", n, f.name, writes)
			if writes > n {
				t.Errorf("%d writes for %d objects", writes, n)
			}
		})
	}
}

func (s *suite) namespace(t *testing.T, name string) {
	t.Helper()
	for _, text := range []string{`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"%[1]s"}}`, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default","namespace":"%[1]s"}}`} {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(fmt.Sprintf(text, name))); err != nil {
			t.Fatal(err)
		}
		if _, err := s.cluster.Apply(t.Context(), u, rutter.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// adopt applies a shape as the former owner did, takes it over as the engine
// does, and returns how many writes that took.
func (s *suite) adopt(t *testing.T, x *shape, f former) (writes int) {
	t.Helper()
	res := s.resource(t, x)
	before, err := f.apply(t, res, x.raw)
	if err != nil {
		t.Fatalf("%s: %v", x.name, err)
	}
	x.sent = plan.Sent(x.raw, s.unit, true)
	events, err := res.Watch(t.Context(), metav1.ListOptions{ResourceVersion: before.GetResourceVersion(), FieldSelector: "metadata.name=" + x.raw.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	opts := compare.Options{Types: s.types}
	live, err := s.cluster.Apply(t.Context(), x.sent, rutter.ApplyOptions{Takeover: func(live, told *unstructured.Unstructured) ([]byte, bool) {
		return compare.Takeover(x.sent, live, told, opts)
	}})
	if err != nil {
		t.Errorf("%s: %v", x.name, err)
		return 0
	}
	for seen := before.GetResourceVersion(); seen != live.GetResourceVersion(); writes++ {
		ev, ok := <-events.ResultChan()
		if !ok {
			t.Fatal("the watch has ended")
		}
		u, _ := ev.Object.(*unstructured.Unstructured)
		seen = u.GetResourceVersion()
	}
	if writes > 1 {
		t.Errorf("%s: %d writes", x.name, writes)
	}
	if r := s.judge(t, x, live, s.types); !r.Equal {
		t.Errorf("%s: not Synced: %+v", x.name, r.Diffs)
	}
	if a, b := unmarked(before), unmarked(live); jsonOf(a) != jsonOf(b) {
		t.Errorf("%s: has changed\n%s\n%s", x.name, jsonOf(a), jsonOf(b))
	}
	for _, e := range live.GetManagedFields() {
		if rutter.FormerManager(e.Manager, string(e.Operation), e.Subresource) {
			t.Errorf("%s: %s still owns %s", x.name, e.Manager, e.FieldsV1)
		}
	}
	for name := range live.GetLabels() {
		if strings.Contains(name, "fluxcd") {
			t.Errorf("%s: still has the mark %s", x.name, name)
		}
	}
	if _, there := live.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"]; there {
		t.Errorf("%s: still says what was applied last", x.name)
	}
	s.later(t, x, live)
	return writes
}

// apply applies a shape as the former owner does.
func (f former) apply(t *testing.T, res dynamic.ResourceInterface, raw *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	u := raw.DeepCopy()
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(labels, f.labels)
	maps.Copy(annotations, f.annotations)
	labels["dropped-later"] = "x"
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	raw.SetLabels(without(labels, f.labels))
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	if !f.client {
		return res.Apply(t.Context(), u.GetName(), compare.FoldSecret(u), metav1.ApplyOptions{FieldManager: f.manager, Force: true})
	}
	annotations["kubectl.kubernetes.io/last-applied-configuration"] = jsonOf(u.Object)
	u.SetAnnotations(annotations)
	return res.Create(t.Context(), u, metav1.CreateOptions{FieldManager: f.manager})
}

func without(m, these map[string]string) map[string]string {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(k, _ string) bool { _, ok := these[k]; return ok })
	return out
}

// unmarked is what an object holds besides marks.
func unmarked(u *unstructured.Unstructured) map[string]any {
	out := &unstructured.Unstructured{Object: content(u)}
	marks := func(name string) bool {
		return name == rutter.LabelUnit || name == rutter.AnnotationTracking || name == "app.kubernetes.io/instance" || strings.Contains(name, "fluxcd") || strings.HasPrefix(name, "kubectl.")
	}
	labels, annotations := out.GetLabels(), out.GetAnnotations()
	maps.DeleteFunc(labels, func(k, _ string) bool { return marks(k) })
	maps.DeleteFunc(annotations, func(k, _ string) bool { return marks(k) })
	if len(annotations) == 0 {
		annotations = nil
	}
	out.SetLabels(labels)
	out.SetAnnotations(annotations)
	return out.Object
}

// later takes a field out of Git: it goes from the object as well.
func (s *suite) later(t *testing.T, x *shape, live *unstructured.Unstructured) {
	t.Helper()
	commit := x.sent.DeepCopy()
	labels := commit.GetLabels()
	delete(labels, "dropped-later")
	commit.SetLabels(labels)
	r := compare.Local(commit, live, compare.Options{Types: s.types})
	if len(r.Diffs) == 0 || r.Diffs[0].Path != ".metadata.labels.dropped-later" {
		t.Errorf("%s: a field that Git drops is not seen: %+v", x.name, r.Diffs)
	}
	after, err := s.cluster.Apply(t.Context(), commit, rutter.ApplyOptions{})
	if err != nil {
		t.Errorf("%s: %v", x.name, err)
	} else if _, there := after.GetLabels()["dropped-later"]; there {
		t.Errorf("%s: a field that Git drops stays", x.name)
	}
}
