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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/preview"
	"github.com/rutterhq/rutter/internal/testenv"
)

const plannedSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata:
  name: ${SET}
  namespace: argocd
  annotations: {rutter.dev/deletion-budget: 25% min 3 per 0s}
spec:
  goTemplate: true
  generators:
  - git: {repoURL: '${REPO}', revision: main, directories: [{path: 'apps/*'}]}
  template:
    metadata: {name: '${SET}-${STEP}{{.path.basename}}'}
    spec:
      project: default
      source: {repoURL: '${REPO}', targetRevision: main, path: '{{.path.path}}'}
      destination: {name: alpha, namespace: ${NS}}
      syncPolicy: {automated: {prune: true, selfHeal: true}, syncOptions: [CreateNamespace=true]}`

// planned is the fleet of one test.
type planned struct {
	t     *testing.T
	w     *world
	r     *repo
	set   vars
	files tree
	cache string
	// namespaces are all into which something went.
	namespaces []string
}

// TestPlanIsCarriedOut: what the plan of a change says before the push is what
// the controller does after it, object by object, on a real cluster: what it
// adds and changes comes to be as it says, what it moves keeps its UID, what it
// deletes goes, what it says is held stays until it is approved, and nothing
// else is written.
func TestPlanIsCarriedOut(t *testing.T) {
	t.Parallel()
	const changes = 30
	w := start(t)
	ns := w.alpha.namespace(t, "planned")
	p := &planned{t: t, w: w, namespaces: []string{ns}, cache: t.TempDir(), files: tree{
		"base/kustomization.yaml": "resources: [config.yaml]\n", "base/config.yaml": configMap("settings", "first"),
	}}
	for i := range 6 {
		p.files[plannedOverlay(i)] = plannedContent(i)
	}
	p.r = w.repo(t, "planned", p.files)
	p.set = vars{"REPO": p.r.url, "NS": ns, "SET": unique("planned"), "STEP": ""}
	p.push(tree{"declared/set.yaml": p.set.expand(plannedSet)})
	w.create(t, plannedSet, p.set)
	var state plannedState
	testenv.Eventually(t, patience, func() error {
		if state = p.state(); len(state.objects) != 6 || len(state.apps) != 6 {
			return fmt.Errorf("%d objects and %d Applications of 6", len(state.objects), len(state.apps))
		}
		return nil
	})
	const seed = 5
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(3, seed))
	seen := map[string]int{}
	for step := range changes {
		what, changed := p.random(r, step)
		seen[what]++
		base := p.r.git(t, "rev-parse", "HEAD")
		commit := p.r.commit(t, changed)
		plan := p.plan(base, commit, what == plannedHeld)
		pushed(t, p.r.addr, p.r.url)
		if changed["declared/set.yaml"] != "" {
			w.replace(t, plannedSet, p.set)
		}
		what = fmt.Sprintf("%d, %s", step, what)
		t.Log(what)
		if len(plan.Held) > 0 {
			state = p.approve(what, plan, state)
			continue
		}
		state = p.settle(what, plan, state)
	}
	if len(seen) != 8 {
		t.Errorf("only these kinds of change came up: %v", seen)
	}
}

// plannedHeld is the kind of change that the budget holds back.
const plannedHeld = "more Applications less than the budget lets go"

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
	switch n := r.IntN(8); {
	case n == 0:
		what, changed = "the base", tree{"base/config.yaml": configMap("settings", fmt.Sprintf("v%d", step))}
	case n == 1:
		what, changed = "one overlay", tree{one: p.files[one] + fmt.Sprintf("commonAnnotations: {step: s%d}\n", step)}
		if before, _, ok := strings.Cut(p.files[one], "commonAnnotations"); ok {
			changed = tree{one: before}
		}
	case n == 2 && len(overlays) > 4:
		what, changed = "an Application less", tree{one: ""}
	case n == 3 && len(overlays) > 6:
		what, changed = plannedHeld, tree{}
		for _, i := range r.Perm(len(overlays))[:5] {
			changed[overlays[i]] = ""
		}
	case n <= 4:
		what, changed = "an Application more", tree{plannedOverlay(10 + step): plannedContent(10 + step)}
	case n == 5:
		p.set["STEP"] = fmt.Sprintf("n%d-", step)
		what, changed = "other names of Applications", tree{"declared/set.yaml": p.set.expand(plannedSet)}
	case n == 6:
		p.set["NS"] = unique("planned-made")
		p.namespaces = append(p.namespaces, p.set["NS"])
		what, changed = "another namespace, which is made", tree{"declared/set.yaml": p.set.expand(plannedSet)}
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

func (p *planned) plan(base, head string, held bool) preview.Plan {
	p.t.Helper()
	cfg := daemon.PlanConfig{Repo: p.r.clone, Base: base, Head: head, URLs: []string{p.r.url}, Namespace: controlNamespace, KubeVersion: "v1.37.0",
		CacheDir: filepath.Join(p.cache, "plan"), Offline: true,
		Inventory: &preview.Inventory{Clusters: []preview.ClusterFacts{{Name: "alpha", Server: strings.TrimRight(p.w.alpha.rest.Host, "/")}}}}
	if held { // as the controller will name it
		cfg.REST, cfg.Offline = p.w.hub.rest, false
	}
	plan, err := daemon.Plan(p.t.Context(), cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(plan.Problems)+len(plan.Refused) > 0 || plan.Empty() != held || len(plan.Held) > 0 != held {
		p.t.Fatalf("the plan of a plain change:\n%s", preview.Text(plan, preview.TextOptions{}))
	}
	return plan
}

// plannedState is what is there: versions and UIDs of objects, and the names of
// Applications.
type plannedState struct {
	objects map[string]plannedObject
	apps    []string
}

type plannedObject struct{ version, uid, unit string }

func (p *planned) state() plannedState {
	p.t.Helper()
	out := plannedState{objects: map[string]plannedObject{}}
	for _, kind := range []string{"ConfigMap", "Secret"} {
		for _, ns := range p.namespaces {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
			if err := p.w.alpha.client.List(p.t.Context(), list, client.InNamespace(ns), client.HasLabels{rutter.LabelUnit}); err != nil {
				p.t.Fatal(err)
			}
			for i := range list.Items {
				o := &list.Items[i]
				out.objects[kind+" "+ns+"/"+o.Name] = plannedObject{o.ResourceVersion, string(o.UID), o.Labels[rutter.LabelUnit]}
			}
		}
	}
	var apps v1alpha1.ApplicationList
	if err := p.w.hub.client.List(p.t.Context(), &apps, client.InNamespace(controlNamespace)); err != nil {
		p.t.Fatal(err)
	}
	for i := range apps.Items {
		if strings.HasPrefix(apps.Items[i].Name, p.set["SET"]+"-") {
			out.apps = append(out.apps, apps.Items[i].Name)
		}
	}
	slices.Sort(out.apps)
	return out
}

// settle waits until everything in the plan has come about, and finds that
// nothing else has.
func (p *planned) settle(what string, plan preview.Plan, before plannedState) plannedState {
	p.t.Helper()
	touched := map[string]bool{}
	for _, c := range plan.Objects {
		touched[c.Kind+" "+c.Namespace+"/"+c.Name] = true
		testenv.Eventually(p.t, patience, func() error { return p.carriedOut(what, c, before) })
	}
	apps := slices.Clone(before.apps)
	for _, a := range plan.Applications {
		switch a.Verb {
		case preview.Add:
			apps = append(apps, a.Name)
		case preview.Move:
			apps = append(without(apps, a.From), a.Name)
		case preview.Delete:
			apps = without(apps, a.Name)
		case preview.Change, preview.Leave:
		}
	}
	slices.Sort(apps)
	return p.nothingElse(what, before, apps, touched)
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}

// carriedOut compares one object with what the plan says of it.
func (p *planned) carriedOut(what string, c preview.ObjectChange, before plannedState) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(schema.GroupVersionKind{Group: c.Group, Version: c.Version, Kind: c.Kind})
	err := p.w.alpha.client.Get(p.t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, live)
	old := before.objects[c.Kind+" "+c.Namespace+"/"+c.Name]
	switch {
	case c.Verb == preview.Delete && apierrors.IsNotFound(err):
		return nil
	case c.Verb == preview.Delete:
		return fmt.Errorf("%s: %s %s is to be deleted and is there (%w)", what, c.Kind, c.Name, err)
	case err != nil:
		return fmt.Errorf("%s: %s %s is to be there: %w", what, c.Kind, c.Name, err)
	case c.Verb != preview.Add && live.GetResourceVersion() == old.version:
		return fmt.Errorf("%s: %s %s is to change and is as it was", what, c.Kind, c.Name)
	case c.Verb != preview.Add && string(live.GetUID()) != old.uid:
		p.t.Fatalf("%s: %s %s was made anew, and the plan says %s", what, c.Kind, c.Name, c.Verb)
	case !within(c.After.Object, live.Object):
		return fmt.Errorf("%s: %s %s is not as the plan says", what, c.Kind, c.Name)
	}
	return nil
}

// nothingElse waits for the Applications that are to be there, and finds that no
// object was written but those that may have been.
func (p *planned) nothingElse(what string, before plannedState, apps []string, touched map[string]bool) plannedState {
	p.t.Helper()
	var after plannedState
	testenv.Eventually(p.t, patience, func() error {
		if after = p.state(); !slices.Equal(after.apps, apps) {
			return fmt.Errorf("%s: the Applications are %v, by the plan they are %v", what, after.apps, apps)
		}
		return nil
	})
	for name, o := range after.objects {
		if old, was := before.objects[name]; !touched[name] && (!was || old != o) {
			p.t.Errorf("%s: %s is not in the plan and was written", what, name)
		}
	}
	for name := range before.objects {
		if _, is := after.objects[name]; !is && !touched[name] {
			p.t.Errorf("%s: %s is not in the plan and is gone", what, name)
		}
	}
	return after
}

// approve waits until the controller holds what the plan says, by the same
// digest, finds that nothing has gone, lets it go, and finds that exactly that went.
func (p *planned) approve(what string, plan preview.Plan, before plannedState) plannedState {
	p.t.Helper()
	held := plan.Held[0]
	testenv.Eventually(p.t, patience, func() error {
		set := get(p.t, p.w.hub, controlNamespace, p.set["SET"], &v1alpha1.ApplicationSet{})
		if digest := generate.HeldDigest(set); digest != held.Digest {
			return fmt.Errorf("%s: the controller holds %q, the plan says %q", what, digest, held.Digest)
		}
		return nil
	})
	before = p.settle(what, plan, before)
	gone, apps := map[string]bool{}, before.apps
	for _, name := range held.Applications {
		unit := (rutter.UnitID{Dialect: "argo", Namespace: controlNamespace, Name: name}).Hash()
		for object, o := range before.objects {
			if o.unit == unit {
				gone[object] = true
			}
		}
		apps = without(slices.Clone(apps), name)
	}
	if len(gone) < len(held.Applications) {
		p.t.Fatalf("%s: the Applications that are held have %d objects", what, len(gone))
	}
	p.w.hub.patch(p.t, &v1alpha1.ApplicationSet{}, controlNamespace, p.set["SET"], fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, generate.AnnotationApprove, held.Digest))
	var after plannedState
	testenv.Eventually(p.t, patience, func() error {
		after = p.state()
		for object := range gone {
			if _, is := after.objects[object]; is {
				return fmt.Errorf("%s: %s is approved to go and is there", what, object)
			}
		}
		return nil
	})
	return p.nothingElse(what, before, apps, gone)
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
