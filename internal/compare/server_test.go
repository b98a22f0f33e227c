package compare_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/testenv"
)

// server is a real API server with a namespace of the test's own.
type server struct {
	dynamic   dynamic.Interface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	namespace string
}

func newServer(t *testing.T) *server {
	t.Helper()
	env := testenv.Hub(t)
	cfg := env.RESTConfig()
	cfg.QPS, cfg.WarningHandler = -1, rest.NoWarnings{}
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	disc, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &server{
		dynamic: dyn, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disc)),
		namespace: env.Namespace(t),
	}
}

// place gives a sample names of this test's own.
func (s *server) place(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	switch {
	case out.GetNamespace() != "":
		out.SetNamespace(s.namespace)
	case out.GetKind() != "CustomResourceDefinition":
		out.SetName(out.GetName() + "-" + s.namespace)
	}
	return out
}

func (s *server) resource(t *testing.T, u *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	gvk := u.GroupVersionKind()
	var mapping *meta.RESTMapping
	testenv.Eventually(t, 2*time.Minute, func() (err error) {
		if mapping, err = s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			s.mapper.Reset()
		}
		return err
	})
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return s.dynamic.Resource(mapping.Resource).Namespace(u.GetNamespace())
	}
	return s.dynamic.Resource(mapping.Resource)
}

func (s *server) apply(t *testing.T, u *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	t.Helper()
	b, err := json.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	force := true
	opts := metav1.PatchOptions{FieldManager: rutter.FieldManager, Force: &force}
	if dryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	return s.resource(t, u).Patch(t.Context(), u.GetName(), types.ApplyPatchType, b, opts)
}

// serverSamples are the declared samples in an order in which they can be applied.
func serverSamples(t *testing.T) []sample {
	t.Helper()
	list := samples(t)
	rank := func(s sample) int {
		if s.desired.GetKind() == "CustomResourceDefinition" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b sample) int { return cmp.Compare(rank(a), rank(b)) })
	return list
}

// TestServer asks a real API server about everything that the package claims:
// what was applied is equal; whatever Git changes is never called equal when
// the server would change something; what is edited by hand is found.
func TestServer(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	var git, doubtful, hand int
	for _, s := range serverSamples(t) {
		desired := srv.place(s.desired)
		live, err := srv.apply(t, desired, false)
		if errors.IsNotFound(err) {
			testenv.Eventually(t, 2*time.Minute, func() error {
				live, err = srv.apply(t, desired, false)
				return err
			})
		} else if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		t.Cleanup(func() { srv.remove(t, live) })
		srv.converged(t, s.name, desired, live)
		g, d := srv.changesInGit(t, s.name, desired, live)
		git, doubtful = git+g, doubtful+d
		hand += srv.editsByHand(t, s.name, desired)
	}
	t.Logf("%d changes in Git judged, %d of them left to the dry run without need; %d edits by hand, all found", git, doubtful, hand)
	if git < 150 || hand < 100 {
		t.Errorf("too few were possible: %d changes in Git, %d edits by hand", git, hand)
	}
}

// fresh puts an object back as if nobody had ever edited it. What can't be
// deleted at once is applied again, which leaves the editor's name on it.
func (s *server) fresh(t *testing.T, desired *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if kind := desired.GetKind(); kind != "CustomResourceDefinition" && kind != "Namespace" {
		res, zero := s.resource(t, desired), int64(0)
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		if _, err := res.Patch(t.Context(), desired.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		background := metav1.DeletePropagationBackground
		opts := metav1.DeleteOptions{GracePeriodSeconds: &zero, PropagationPolicy: &background}
		if err := res.Delete(t.Context(), desired.GetName(), opts); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, 2*time.Minute, func() error {
			_, err := res.Patch(t.Context(), desired.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
			if errors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("%s is still there: %w", desired.GetName(), err)
		})
	}
	live, err := s.apply(t, desired, false)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// remove deletes what isn't in the test's namespace.
func (s *server) remove(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	if len(u.GetFinalizers()) > 0 {
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		if _, err := s.resource(t, u).Patch(context.Background(), u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Log(err)
		}
	}
	if u.GetNamespace() == "" && u.GetKind() != "CustomResourceDefinition" {
		if err := s.resource(t, u).Delete(context.Background(), u.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Log(err)
		}
	}
}

func (s *server) converged(t *testing.T, name string, desired, live *unstructured.Unstructured) {
	t.Helper()
	got := paths(compare.Local(desired, live, ours))
	if want := doubts[name]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: Local right after the apply: %v, want %v", name, got, want)
	}
	predicted, err := s.apply(t, desired, true)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if r := compare.Predicted(predicted, live, ours); !r.Equal {
		t.Errorf("%s: Predicted right after the apply: %+v", name, r.Diffs)
	}
	a, _ := compare.OwnedHash(live, rutter.FieldManager, nil)
	if b, _ := compare.OwnedHash(predicted, rutter.FieldManager, nil); a != b {
		t.Errorf("%s: OwnedHash differs", name)
	}
}

// changesInGit takes each declared value out, and changes each, one at a time.
func (s *server) changesInGit(t *testing.T, name string, desired, live *unstructured.Unstructured) (tried, doubtful int) {
	t.Helper()
	leaves(desired.Object, nil, func(at []any, v any) {
		if !ownedPath(at) {
			return
		}
		for _, value := range []any{nil, other(v)} {
			if _, isIndex := at[len(at)-1].(int); isIndex && value == nil {
				continue
			}
			changed := desired.DeepCopy()
			set(t, changed, value, at...)
			predicted, err := s.apply(t, changed, true)
			if err != nil {
				continue // immutable or invalid: nothing to compare
			}
			tried++
			local, truth := compare.Local(changed, live, ours), compare.Predicted(predicted, live, ours)
			switch {
			case local.Equal && !truth.Equal:
				t.Errorf("%s: %v = %v in Git: Local says equal, the server would change %v", name, at, value, paths(truth))
			case !local.Equal && truth.Equal && len(doubts[name]) == 0:
				doubtful++
			}
		}
	})
	return tried, doubtful
}

// editsByHand changes each declared value in the cluster as another manager.
func (s *server) editsByHand(t *testing.T, name string, desired *unstructured.Unstructured) (found int) {
	t.Helper()
	res := s.resource(t, desired)
	leaves(desired.Object, nil, func(at []any, _ any) {
		if !ownedPath(at) {
			return
		}
		live := s.fresh(t, desired)
		v, ok := lookup(live, at)
		if !ok || v == nil {
			return
		}
		before, _ := compare.OwnedHash(live, rutter.FieldManager, nil)
		change := live.DeepCopy()
		set(t, change, other(v), at...)
		edited, err := res.Update(t.Context(), change, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
		if err != nil {
			return // immutable or invalid
		}
		if now, _ := lookup(edited, at); fmt.Sprint(now) == fmt.Sprint(v) {
			return // the server has normalised the edit away
		}
		found++
		if after, _ := compare.OwnedHash(edited, rutter.FieldManager, nil); after == before {
			t.Errorf("%s: %v edited by hand: OwnedHash is the same", name, at)
		}
		r := compare.Local(desired, edited, ours)
		if r.Equal {
			t.Errorf("%s: %v edited by hand: Local says equal", name, at)
		}
		predicted, err := s.apply(t, desired, true)
		if err != nil {
			return
		}
		r = compare.Predicted(predicted, edited, ours)
		if r.Equal {
			t.Errorf("%s: %v edited by hand: Predicted says equal", name, at)
			return
		}
		named := func(d rutter.FieldDiff) bool { return d.Live == "" || d.Manager == "kubectl-edit" }
		if !slices.ContainsFunc(r.Diffs, named) {
			t.Errorf("%s: %v edited by hand: the manager isn't named: %+v", name, at, r.Diffs)
		}
	})
	return found
}

// Scenario B27 on a real server: a commit changes one field while another is
// ignored, whoever owns the ignored one.
func TestServerKeepsIgnoredFields(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	original := srv.place(sampleOf(t, "deployment").desired)
	rules := read(t, ruleList...)
	ignoring := compare.Options{Rules: rules}
	for _, tt := range []struct {
		reason string
		scale  int64
		want   int64
	}{
		{"the field is ours alone and Git has moved on", 0, 3},
		{"another manager has taken the field", 8, 8},
	} {
		live, err := srv.apply(t, original, false)
		if err != nil {
			t.Fatal(err)
		}
		if tt.scale > 0 {
			set(t, live, tt.scale, "spec", "replicas")
			if live, err = srv.resource(t, live).Update(t.Context(), live, metav1.UpdateOptions{FieldManager: "scaler"}); err != nil {
				t.Fatal(err)
			}
		}
		commit := original.DeepCopy()
		set(t, commit, int64(5), "spec", "replicas")
		set(t, commit, "nginx:1.28", "spec", "template", "spec", "containers", 0, "image")
		if got := paths(compare.Local(commit, live, ignoring)); fmt.Sprint(got) != `[.spec.template.spec.containers[name="web"].image]` {
			t.Errorf("%s: before: %v", tt.reason, got)
		}
		live, err = srv.apply(t, compare.Respect(commit, live, rules), false)
		if err != nil {
			t.Fatal(err)
		}
		if replicas, _ := lookup(live, []any{"spec", "replicas"}); replicas != tt.want {
			t.Errorf("%s: replicas are %v, want %v", tt.reason, replicas, tt.want)
		}
		if r := compare.Local(commit, live, ignoring); !r.Equal {
			t.Errorf("%s: doesn't converge: %+v", tt.reason, r.Diffs)
		}
	}
}
