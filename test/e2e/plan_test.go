package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/preview"
	"github.com/rutterhq/rutter/internal/testenv"
)

const plannedSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata:
  name: ${SET}
  namespace: argocd
spec:
  goTemplate: true
  generators:
  - git: {repoURL: '${REPO}', revision: main, directories: [{path: 'apps/*'}]}
  template:
    metadata: {name: '${SET}-{{.path.basename}}'}
    spec:
      project: default
      source: {repoURL: '${REPO}', targetRevision: main, path: '{{.path.path}}'}
      destination: {name: alpha, namespace: ${NS}}
      syncPolicy: {automated: {prune: true, selfHeal: true}}`

// planned is the fleet of one test.
type planned struct {
	t     *testing.T
	w     *world
	r     *repo
	ns    string
	files tree
	cache string
}

// TestPlanIsCarriedOut: what the plan of a change says before the push is what
// the controller does after it, object by object, on a real cluster: what it
// adds and changes comes to be as it says, what it deletes goes, and nothing
// else is written.
func TestPlanIsCarriedOut(t *testing.T) {
	t.Parallel()
	const changes = 30
	w := start(t)
	p := &planned{t: t, w: w, ns: w.alpha.namespace(t, "planned"), cache: t.TempDir(), files: tree{
		"base/kustomization.yaml": "resources: [config.yaml]\n", "base/config.yaml": configMap("settings", "first"),
	}}
	for i := range 6 {
		p.files[plannedOverlay(i)] = plannedContent(i)
	}
	p.r = w.repo(t, "planned", p.files)
	set := vars{"REPO": p.r.url, "NS": p.ns, "SET": unique("planned")}
	p.push(tree{"declared/set.yaml": set.expand(plannedSet)})
	w.create(t, plannedSet, set)
	state := map[string]string{}
	testenv.Eventually(t, patience, func() error {
		if state = p.versions(); len(state) != 6 {
			return fmt.Errorf("%d objects of 6", len(state))
		}
		return nil
	})
	r := rand.New(rand.NewPCG(3, 5))
	for step := range changes {
		what, changed := p.random(r, step)
		base := p.r.git(t, "rev-parse", "HEAD")
		commit := p.r.commit(t, changed)
		plan := p.plan(base, commit)
		pushed(t, p.r.addr, p.r.url)
		state = p.settle(fmt.Sprintf("%d, %s", step, what), plan, state)
	}
}

func (p *planned) push(files tree) {
	maps.Copy(p.files, files)
	p.r.push(p.t, files)
}

func plannedOverlay(i int) string { return fmt.Sprintf("apps/a%d/kustomization.yaml", i) }

func plannedContent(i int) string {
	return fmt.Sprintf("namePrefix: a%d-\nresources: [../../base]\n", i)
}

// random is one of what people do.
func (p *planned) random(r *rand.Rand, step int) (what string, changed tree) {
	overlays := slices.DeleteFunc(slices.Sorted(maps.Keys(p.files)), func(n string) bool { return !strings.HasPrefix(n, "apps/") })
	one := overlays[r.IntN(len(overlays))]
	switch n := r.IntN(5); {
	case n == 0:
		what, changed = "the base", tree{"base/config.yaml": configMap("settings", fmt.Sprintf("v%d", step))}
	case n == 1:
		what, changed = "one overlay", tree{one: p.files[one] + fmt.Sprintf("commonAnnotations: {step: s%d}\n", step)}
		if strings.Contains(p.files[one], "commonAnnotations") {
			what, changed = "one overlay", tree{one: p.files[one][:strings.Index(p.files[one], "commonAnnotations")]} //nolint:gocritic // the documents of the tests have it
		}
	case n == 2 && len(overlays) > 4:
		what, changed = "an Application less", tree{one: ""}
	case n <= 3:
		what, changed = "an Application more", tree{plannedOverlay(10 + step): plannedContent(10 + step)}
	default:
		what, changed = "a Secret comes or goes", tree{"base/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: p" + fmt.Sprint(step) + "}\n",
			"base/kustomization.yaml": "resources: [config.yaml, secret.yaml]\n"}
		if p.files["base/secret.yaml"] != "" {
			changed = tree{"base/secret.yaml": "", "base/kustomization.yaml": "resources: [config.yaml]\n"}
		}
	}
	for name, content := range changed {
		p.files[name] = content
		if content == "" {
			delete(p.files, name)
		}
	}
	return what, changed
}

func (p *planned) plan(base, head string) preview.Plan {
	p.t.Helper()
	inventory := &preview.Inventory{Clusters: []preview.ClusterFacts{{Name: "alpha", Server: strings.TrimRight(p.w.alpha.rest.Host, "/")}}}
	plan, err := daemon.Plan(p.t.Context(), daemon.PlanConfig{Repo: p.r.clone, Base: base, Head: head, URLs: []string{p.r.url}, Namespace: controlNamespace,
		Inventory: inventory, KubeVersion: "v1.37.0", Offline: true, CacheDir: filepath.Join(p.cache, "plan")})
	if err != nil {
		p.t.Fatal(err)
	}
	if len(plan.Problems)+len(plan.Held)+len(plan.Refused) > 0 || plan.Empty() {
		p.t.Fatalf("the plan of a plain change:\n%s", preview.Text(plan, preview.TextOptions{}))
	}
	return plan
}

// versions are the objects that are there, by kind and name, with their versions.
func (p *planned) versions() map[string]string {
	p.t.Helper()
	out := map[string]string{}
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}} {
		if err := p.w.alpha.client.List(p.t.Context(), list, client.InNamespace(p.ns), client.HasLabels{"rutter.dev/unit"}); err != nil {
			p.t.Fatal(err)
		}
		switch l := list.(type) {
		case *corev1.ConfigMapList:
			for _, o := range l.Items {
				out["ConfigMap/"+o.Name] = o.ResourceVersion
			}
		case *corev1.SecretList:
			for _, o := range l.Items {
				out["Secret/"+o.Name] = o.ResourceVersion
			}
		}
	}
	return out
}

// settle waits until everything in the plan has come about, and finds that
// nothing else has.
func (p *planned) settle(what string, plan preview.Plan, before map[string]string) map[string]string {
	p.t.Helper()
	touched := map[string]bool{}
	for _, c := range plan.Objects {
		touched[c.Kind+"/"+c.Name] = true
		testenv.Eventually(p.t, patience, func() error {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(schema.GroupVersionKind{Group: c.Group, Version: c.Version, Kind: c.Kind})
			err := p.w.alpha.client.Get(p.t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, live)
			switch {
			case c.Verb == preview.Delete && apierrors.IsNotFound(err):
				return nil
			case c.Verb == preview.Delete:
				return fmt.Errorf("%s: %s %s is to be deleted and is there (%w)", what, c.Kind, c.Name, err)
			case err != nil:
				return fmt.Errorf("%s: %s %s is to be there: %w", what, c.Kind, c.Name, err)
			case c.Verb == preview.Change && live.GetResourceVersion() == before[c.Kind+"/"+c.Name]:
				return fmt.Errorf("%s: %s %s is to change and is as it was", what, c.Kind, c.Name)
			case !within(c.After.Object, live.Object):
				return fmt.Errorf("%s: %s %s is not as the plan says", what, c.Kind, c.Name)
			}
			return nil
		})
	}
	after := p.versions()
	for name, version := range after {
		if old, was := before[name]; !touched[name] && (!was || old != version) {
			p.t.Errorf("%s: %s is not in the plan and was written", what, name)
		}
	}
	for name := range before {
		if _, is := after[name]; !is && !touched[name] {
			p.t.Errorf("%s: %s is not in the plan and is gone", what, name)
		}
	}
	return after
}

// within reports whether all of a value is in another, which may have more fields.
func within(want, have any) bool {
	w, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(want, have)
	}
	h, ok := have.(map[string]any)
	if !ok {
		return false
	}
	for k, v := range w {
		if !within(v, h[k]) {
			return false
		}
	}
	return true
}
