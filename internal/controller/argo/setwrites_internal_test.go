package argo

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/deploy"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/testenv"
)

// newWriter is a rig whose server knows sets and Applications.
func newWriter(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, SetOptions{})
	for _, add := range []func() error{
		func() error { return v1alpha1.AddToScheme(r.client.Scheme()) },
		func() error { return apiextensionsv1.AddToScheme(r.client.Scheme()) },
	} {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := fs.Glob(deploy.CRDs, "crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := deploy.CRDs.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(raw, crd); err != nil {
			t.Fatal(err)
		}
		if err := r.client.Create(t.Context(), crd); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		return errors.Join(r.client.List(t.Context(), &v1alpha1.ApplicationList{}, client.InNamespace(r.namespace)),
			r.client.List(t.Context(), &v1alpha1.ApplicationSetList{}, client.InNamespace(r.namespace)))
	})
	return r
}

// declared makes a set, and an Application of it or of nobody.
func (r *rig) declared(t *testing.T, name string, owned bool) (*v1alpha1.ApplicationSet, *v1alpha1.Application) {
	t.Helper()
	spec := v1alpha1.ApplicationSpec{Project: "default", Destination: v1alpha1.ApplicationDestination{Server: "https://kubernetes.default.svc"},
		Source: &v1alpha1.ApplicationSource{RepoURL: "https://git.invalid/x", Path: "x"}}
	set := &v1alpha1.ApplicationSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.Generators = []v1alpha1.ApplicationSetGenerator{{}}
	set.Spec.Template.Spec = spec
	r.create(t, set)
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{finalizer}}, Spec: spec}
	if owned {
		app.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion.WithKind("ApplicationSet"))}
	}
	r.create(t, app)
	return set, app
}

func (r *rig) patch(t *testing.T, o client.Object, patch string) {
	t.Helper()
	if err := r.client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// between is what somebody does after a set has decided about an Application, and
// before it has carried that out.
type between struct {
	reason string
	act    func(t *testing.T, r *rig, app *v1alpha1.Application)
	// holds says that the decision still does.
	holds bool
}

func cases() map[string]between {
	patch := func(p string) func(*testing.T, *rig, *v1alpha1.Application) {
		return func(t *testing.T, r *rig, app *v1alpha1.Application) {
			t.Helper()
			r.patch(t, app, p)
		}
	}
	return map[string]between{
		"nothing":     {"the decision is carried out", func(*testing.T, *rig, *v1alpha1.Application) {}, true},
		"a-refresh":   {"whoever works with it does not change it", patch(`{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}}`), true},
		"a-hold":      {"a person holds it since", patch(`{"metadata":{"annotations":{"rutter.dev/hold":"who=ada; why=x; until=2099-01-01T00:00:00Z"}}}`), false},
		"an-edit":     {"a person edited it since", patch(`{"spec":{"project":"other"}}`), false},
		"other-owner": {"it is another set's since", patch(`{"metadata":{"ownerReferences":[{"apiVersion":"argoproj.io/v1alpha1","kind":"ApplicationSet","name":"z","uid":"z","controller":true}]}}`), false},
		"made-again": {"it is another one since", func(t *testing.T, r *rig, app *v1alpha1.Application) {
			t.Helper()
			again := app.DeepCopy()
			again.ResourceVersion, again.UID = "", ""
			r.patch(t, app, `{"metadata":{"finalizers":null}}`)
			if err := r.client.Delete(t.Context(), app); err != nil {
				t.Fatal(err)
			}
			r.create(t, again)
		}, false},
	}
}

// carried is what became of a change: whether it is said to be done, whether the
// set is woken to decide anew, and the Application after it.
func (r *rig) carried(t *testing.T, set *v1alpha1.ApplicationSet, c generate.Change) (done, woken bool, after *v1alpha1.Application) {
	t.Helper()
	done, err := r.write(t.Context(), set, c)
	if err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(set)
	after = &v1alpha1.Application{}
	if err := r.client.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: c.Name}, after); apierrors.IsNotFound(err) {
		after = nil
	} else if err != nil {
		t.Fatal(err)
	}
	return done, r.wakes.early[key], after
}

// TestUpdatesOfWhatWasChangedSince: nothing is written over what somebody wrote
// after it was decided about.
func TestUpdatesOfWhatWasChangedSince(t *testing.T) {
	r := newWriter(t)
	for name, tc := range cases() {
		set, app := r.declared(t, name, true)
		want := app.DeepCopy()
		want.Spec.Source.Path = "y"
		c := generate.Change{Verb: generate.Update, Name: name, Application: want, Live: app.DeepCopy()}
		tc.act(t, r, app)
		done, woken, after := r.carried(t, set, c)
		if done != tc.holds || woken == tc.holds || (after.Spec.Source.Path == "y") != tc.holds {
			t.Errorf("%s: %s: done %v, woken %v, path %s", name, tc.reason, done, woken, after.Spec.Source.Path)
		}
	}
}

// TestRemovalsOfWhatWasChangedSince: what goes is what was decided about, or
// nothing does.
func TestRemovalsOfWhatWasChangedSince(t *testing.T) {
	r := newWriter(t)
	for name, tc := range cases() {
		for _, strip := range []bool{false, true} {
			set, app := r.declared(t, name+map[bool]string{true: "-strip"}[strip], true)
			c := generate.Change{Verb: generate.Delete, Name: app.Name, Application: app.DeepCopy(), StripFinalizer: strip}
			tc.act(t, r, app)
			done, woken, after := r.carried(t, set, c)
			going := after == nil || after.DeletionTimestamp != nil
			if done != tc.holds || woken == tc.holds || going != tc.holds {
				t.Errorf("%s: %s: done %v, woken %v, going %v", app.Name, tc.reason, done, woken, going)
			}
			if strip && tc.holds && after != nil {
				t.Errorf("%s: its finalizer is heeded: %v", app.Name, after.Finalizers)
			}
			if !tc.holds && name != "made-again" && !slices.Equal(after.Finalizers, app.Finalizers) {
				t.Errorf("%s: its finalizers were touched: %v", app.Name, after.Finalizers)
			}
		}
	}
}

// TestNobodyIsAdoptedByWhatIsGone: an Application is given to no set that is gone or
// going, since the garbage collector would delete it for that.
func TestNobodyIsAdoptedByWhatIsGone(t *testing.T) {
	r := newWriter(t)
	for name, act := range map[string]func(set *v1alpha1.ApplicationSet){
		"there": func(*v1alpha1.ApplicationSet) {},
		"gone": func(set *v1alpha1.ApplicationSet) {
			if err := r.client.Delete(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		},
		"going": func(set *v1alpha1.ApplicationSet) {
			r.patch(t, set, `{"metadata":{"finalizers":["rutter.dev/test"]}}`)
			if err := r.client.Delete(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		},
		"made-again": func(set *v1alpha1.ApplicationSet) {
			again := set.DeepCopy()
			again.UID, again.ResourceVersion = "", ""
			if err := r.client.Delete(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			r.create(t, again)
		},
	} {
		set, app := r.declared(t, "adopt-"+name, false)
		was := set.DeepCopy()
		act(set)
		want := app.DeepCopy()
		want.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(was, v1alpha1.GroupVersion.WithKind("ApplicationSet"))}
		done, woken, after := r.carried(t, was, generate.Change{Verb: generate.Update, Name: app.Name, Application: want, Live: app})
		if there := name == "there"; done != there || woken == there || (len(after.OwnerReferences) > 0) != there {
			t.Errorf("%s: done %v, woken %v, owners %v", name, done, woken, after.OwnerReferences)
		}
	}
}
