package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/testenv"
)

// scene is a set with a namespace, a repository that its Applications are of,
// and a member that they go to. What is deleted, there or in the control plane,
// is counted.
type scene struct {
	w       *world
	set, ns string
	// repo has the folder apps/NAME for each element.
	repo *repo
	// member is the name of alpha in the control plane.
	member string
	// ways are those to alpha, one for each member that it is registered as.
	ways []*breaker
	seen *census
}

// scene prepares everything that a set needs, which is not there yet.
func (w *world) scene(t *testing.T, prefix string, elements ...string) *scene {
	t.Helper()
	s := w.stage(t, prefix, elements...)
	s.ns, s.member = w.alpha.namespace(t, prefix), s.set+"-member"
	s.join(t, s.member, nil)
	return s
}

// stage is a scene without a member.
func (w *world) stage(t *testing.T, prefix string, elements ...string) *scene {
	t.Helper()
	s := &scene{w: w, set: unique(prefix)}
	s.repo = w.repo(t, prefix, appFolders("1", elements...))
	s.seen = w.census(t, s.set+"-")
	return s
}

// join makes a member of alpha, under a name and by a way of its own.
func (s *scene) join(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	way := breakAPI(t, s.w.alpha.rest)
	s.ways = append(s.ways, way)
	secret, err := cli.ClusterSecret(controlNamespace, name, way.rest())
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(secret.Labels, labels)
	if err := s.w.hub.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.w.discard(object(t, "{apiVersion: v1, kind: Secret, metadata: {name: "+secret.Name+", namespace: "+controlNamespace+"}}"))
	})
}

// appFolders are a folder with one ConfigMap for each element.
func appFolders(value string, elements ...string) tree {
	files := tree{"README.md": "elements\n"}
	for _, e := range elements {
		files["apps/"+e+"/c.yaml"] = configMap(e, value)
	}
	return files
}

// numbered are the names e00, e01, …
func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("e%02d", i)
	}
	return out
}

// listOf is a list generator of elements with these names.
func listOf(names ...string) string {
	var out strings.Builder
	out.WriteString("    - list:\n        elements:")
	if len(names) == 0 {
		out.WriteString(" []")
	}
	for _, name := range names {
		fmt.Fprintf(&out, "\n        - {name: %s}", name)
	}
	return out.String()
}

// text is the set with some generators, which give name. More lines for the
// spec come with extra, and more for the metadata with meta.
func (s *scene) text(generators, extra, meta string) string {
	return s.vars().expand(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: "${SET}"` + meta + `}
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators:
` + generators + `
  template:
    metadata: {name: '${SET}-{{.name}}', labels: {set: "${SET}"}}
    spec:
      project: default
      source: {repoURL: "${REPO}", targetRevision: main, path: 'apps/{{.name}}'}
      destination: {name: "${MEMBER}", namespace: "${NS}"}
      syncPolicy: {automated: {prune: true, selfHeal: true}}
` + extra)
}

func (s *scene) vars() vars {
	return vars{"SET": s.set, "REPO": s.repo.url, "MEMBER": s.member, "NS": s.ns}
}

// create makes the set, or anything else.
func (s *scene) create(t *testing.T, text string) {
	t.Helper()
	s.w.create(t, text, s.vars())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the set says: %+v", s.conditions(context.WithoutCancel(t.Context())))
		}
	})
}

// conditions are what the set says, if it is there.
func (s *scene) conditions(ctx context.Context) []v1alpha1.ApplicationSetCondition {
	var set v1alpha1.ApplicationSet
	_ = s.w.hub.client.Get(ctx, client.ObjectKey{Namespace: controlNamespace, Name: s.set}, &set)
	return set.Status.Conditions
}

// change writes the set anew, with those annotations more that the text has.
func (s *scene) change(t *testing.T, text string) {
	t.Helper()
	next := object(t, text)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(next.GroupVersionKind())
		if err := s.w.hub.client.Get(t.Context(), client.ObjectKey{Namespace: controlNamespace, Name: next.GetName()}, live); err != nil {
			return err
		}
		live.Object["spec"] = next.Object["spec"]
		annotations := live.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		maps.Copy(annotations, next.GetAnnotations())
		live.SetAnnotations(annotations)
		return s.w.hub.client.Update(t.Context(), live, client.FieldValidation("Strict"))
	})
	if err != nil {
		t.Fatalf("change set %s: %v", next.GetName(), err)
	}
}

// app is the name of the Application of an element.
func (s *scene) app(element string) string { return s.set + "-" + element }

// awaitSynced waits until the Applications of some elements are.
func (s *scene) awaitSynced(t *testing.T, elements ...string) {
	t.Helper()
	for _, e := range elements {
		s.w.awaitSynced(t, s.app(e), "")
	}
}

// awaitSet waits for something to be true of the set.
func (s *scene) awaitSet(t *testing.T, ok func(*v1alpha1.ApplicationSet) error) *v1alpha1.ApplicationSet {
	t.Helper()
	return await(t, s.w.hub.client, &v1alpha1.ApplicationSetList{}, controlNamespace, s.set, func(set *v1alpha1.ApplicationSet) error {
		if set == nil {
			return fmt.Errorf("set %s is gone", s.set)
		}
		return ok(set)
	})
}

// awaitReason waits until a condition of the set has a reason and some texts.
func (s *scene) awaitReason(t *testing.T, of v1alpha1.ApplicationSetConditionType, reason string, texts ...string) *v1alpha1.ApplicationSet {
	t.Helper()
	return s.awaitSet(t, func(set *v1alpha1.ApplicationSet) error {
		for _, c := range set.Status.Conditions {
			if c.Type == of && c.Reason == reason && containsAll(c.Message, texts) {
				return nil
			}
		}
		return fmt.Errorf("condition %s has not reason %s with %q: %+v", of, reason, texts, set.Status.Conditions)
	})
}

// awaitInputsFailed waits until the set says that a generator could not look.
func (s *scene) awaitInputsFailed(t *testing.T, texts ...string) {
	t.Helper()
	s.awaitReason(t, v1alpha1.ApplicationSetConditionParametersGenerated, v1alpha1.ApplicationSetReasonInputsFailed, texts...)
}

// awaitWell waits until the set says that all is well.
func (s *scene) awaitWell(t *testing.T) {
	t.Helper()
	s.awaitReason(t, v1alpha1.ApplicationSetConditionErrorOccurred, v1alpha1.ApplicationSetReasonUpToDate)
}

// awaitHeld waits until so many removals wait, and returns their digest.
func (s *scene) awaitHeld(t *testing.T, n int, texts ...string) string {
	t.Helper()
	texts = append(texts, fmt.Sprintf("%d ", n))
	set := s.awaitReason(t, v1alpha1.ApplicationSetConditionDeletionsHeld, v1alpha1.ApplicationSetReasonHeldOverBudget, texts...)
	digest := generate.HeldDigest(set)
	if digest == "" {
		t.Fatalf("no digest is shown: %+v", set.Status.Conditions)
	}
	return digest
}

// approve lets a held plan through as a person does with an annotation.
func (s *scene) approve(t *testing.T, digest string) {
	t.Helper()
	s.w.hub.patch(t, &v1alpha1.ApplicationSet{}, controlNamespace, s.set, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, generate.AnnotationApprove, digest))
}

// rutter runs a command line as a person at the control plane does.
func (s *scene) rutter(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var said bytes.Buffer
	args = append(args, "-n", controlNamespace, "--kubeconfig", writeKubeconfig(t, s.w.hub.rest))
	code = cli.Main(t.Context(), args, strings.NewReader(""), &said, &said, "test", cli.Deps{})
	return code, said.String()
}

// apps are the elements whose Applications exist and are not being deleted.
func (s *scene) apps(t *testing.T) []string {
	t.Helper()
	var list v1alpha1.ApplicationList
	if err := s.w.hub.client.List(t.Context(), &list, client.InNamespace(controlNamespace)); err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range list.Items {
		if name, ok := strings.CutPrefix(list.Items[i].Name, s.set+"-"); ok && list.Items[i].DeletionTimestamp == nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// awaitApps waits until there are exactly the Applications of some elements.
func (s *scene) awaitApps(t *testing.T, elements ...string) {
	t.Helper()
	want := slices.Sorted(slices.Values(elements))
	testenv.Eventually(t, patience, func() error {
		if got := s.apps(t); !slices.Equal(want, got) {
			return fmt.Errorf("the Applications are %v, wanted %v", got, want)
		}
		return nil
	})
}

// deleted fails the test unless exactly the Applications of some elements were
// deleted, and their workloads; with none, nothing at all.
func (s *scene) deleted(t *testing.T, elements ...string) {
	t.Helper()
	want := slices.Sorted(slices.Values(elements))
	testenv.Eventually(t, patience, func() error { // what is on its way
		if apps, objects := len(s.seen.deleted()), s.deletedObjects(); apps < len(want) || objects < len(want) {
			return fmt.Errorf("%d Applications and %d objects were deleted, wanted %d", apps, objects, len(want))
		}
		return nil
	})
	if got := s.seen.deleted(); !slices.Equal(want, got) {
		t.Errorf("the deleted Applications are %v, wanted %v", got, want)
	}
	s.sameApps(t)
	if n := s.deletedObjects(); n != len(want) {
		t.Errorf("%d objects of the member were asked to be deleted, wanted %d", n, len(want))
	}
}

// deletedObjects is how many objects the members were asked to delete.
func (s *scene) deletedObjects() int {
	objects := map[string]bool{}
	for _, way := range s.ways {
		for _, p := range way.paths("DELETE", s.ns+"/configmaps/") {
			objects[p] = true
		}
	}
	return len(objects)
}

// sameApps fails the test when an Application was replaced, which the watch may
// not have told of yet.
func (s *scene) sameApps(t *testing.T) {
	t.Helper()
	var list v1alpha1.ApplicationList
	if err := s.w.hub.client.List(t.Context(), &list, client.InNamespace(controlNamespace)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		app := &list.Items[i]
		name, ours := strings.CutPrefix(app.Name, s.set+"-")
		if first, seen := s.seen.first(name); ours && seen && first != app.UID && !slices.Contains(s.seen.deleted(), name) {
			t.Errorf("Application %s was replaced", app.Name)
		}
	}
}

// objects are the UIDs of the member's ConfigMaps that the scene's Applications have.
func (s *scene) objects(t *testing.T) map[string]types.UID {
	t.Helper()
	var list corev1.ConfigMapList
	if err := s.w.alpha.client.List(t.Context(), &list, client.InNamespace(s.ns), client.HasLabels{"rutter.dev/unit"}); err != nil {
		t.Fatal(err)
	}
	out := map[string]types.UID{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].UID
	}
	return out
}
