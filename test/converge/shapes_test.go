package converge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/cluster"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/local"
	"github.com/rutterhq/rutter/internal/plan"
	"github.com/rutterhq/rutter/internal/schema"
	"github.com/rutterhq/rutter/internal/testenv"
)

// What the suite holds at least.
const (
	minShapes = 150
	minKinds  = 60
)

// suite is a cluster of the test's own, and what is counted on it.
type suite struct {
	cluster rutter.Cluster
	dynamic dynamic.Interface
	unit    rutter.Unit
	// definitions are those among the shapes: the cluster's own schema.
	definitions []*unstructured.Unstructured
	types       *compare.Types

	dryRuns, unnamed, owned, refused, foreign, real atomic.Int64
	falseDrift, missedDrift                         atomic.Int64
}

// shape is one declared object: as Git has it, as it is sent, as it is live.
type shape struct {
	name                  string
	raw, sent, live, told *unstructured.Unstructured
}

// sink takes no interest: the suite reads what it wants to see.
type sink struct{}

func (sink) Observed(rutter.LiveEvent)           {}
func (sink) Listed(string, rutter.GVK, int64)    {}
func (sink) Tainted(string, rutter.GVK, error)   {}
func (sink) Reachable(server string, down error) {}

// TestConverge is the suite.
func TestConverge(t *testing.T) {
	shapes := load(t)
	s := start(t, shapes)
	kinds := map[string]bool{}
	for i := range shapes {
		kinds[shapes[i].sent.GroupVersionKind().GroupKind().String()] = true
		s.apply(t, &shapes[i])
	}
	s.types = s.fresh(t)
	t.Run("shapes", func(t *testing.T) {
		for i := range shapes {
			t.Run(shapes[i].name, func(t *testing.T) {
				t.Parallel()
				s.converged(t, &shapes[i])
				s.ownedEdits(t, &shapes[i])
				s.foreignEdits(t, &shapes[i])
				s.realEdit(t, &shapes[i])
			})
		}
	})
	for name, scenario := range map[string]func(*testing.T, *suite){"B22": testB22, "B23": testB23, "B26": testB26} {
		t.Run(name, func(t *testing.T) { scenario(t, s) })
	}
	t.Run("adoption", func(t *testing.T) { testAdoption(t, s, shapes) })
	t.Logf("converge: %d shapes of %d kinds; %d owned fields edited by hand (%d of them for real), %d edits refused by the server; %d fields of others edited; "+
		"%d comparisons needed a dry run; false drift %d, missed drift %d, found and not named %d",
		len(shapes), len(kinds), s.owned.Load(), s.real.Load(), s.refused.Load(), s.foreign.Load(), s.dryRuns.Load(), s.falseDrift.Load(), s.missedDrift.Load(), s.unnamed.Load())
	if len(shapes) < minShapes || len(kinds) < minKinds {
		t.Errorf("%d shapes of %d kinds: at least %d of %d are wanted", len(shapes), len(kinds), minShapes, minKinds)
	}
}

// load reads the shapes in the order in which they are applied.
func load(t *testing.T) []shape {
	t.Helper()
	files, err := filepath.Glob("testdata/shapes/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []shape
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		dec := yaml.NewDecoder(bytes.NewReader(data))
		for {
			var doc any
			if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			text, err := json.Marshal(doc)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			u := &unstructured.Unstructured{}
			if err := json.Unmarshal(text, &u.Object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			out = append(out, shape{name: fmt.Sprintf("%s/%s", u.GetKind(), u.GetName()), raw: u.DeepCopy(), sent: u})
		}
	}
	return out
}

func start(t *testing.T, shapes []shape) *suite {
	t.Helper()
	cfg := testenv.Own(t, local.Options{Name: "converge", Shape: local.Hub}).RESTConfig()
	registry := cluster.New(cluster.Options{Logger: slog.New(slog.DiscardHandler), Sink: sink{}})
	t.Cleanup(registry.Close)
	if err := registry.SetLocal(cfg); err != nil {
		t.Fatal(err)
	}
	c, err := registry.Lookup(rutter.Target{Name: cluster.LocalName})
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS, cfg.WarningHandler = -1, rest.NoWarnings{}
	s := &suite{cluster: c, unit: rutter.Unit{ID: rutter.UnitID{Dialect: "argo", Namespace: "argocd", Name: "converge"}, Instance: "converge"}}
	if s.dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	for _, x := range shapes {
		if x.sent.GetKind() == "CustomResourceDefinition" {
			s.definitions = append(s.definitions, x.sent)
		}
	}
	return s
}

// fresh is what a comparer knows of types after a start.
func (s *suite) fresh(t *testing.T) *compare.Types {
	t.Helper()
	types, err := compare.NewTypes(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range s.definitions {
		more, err := schema.FromDefinition(d)
		if err != nil {
			t.Fatal(err)
		}
		types = types.With(more)
	}
	return types
}

func (s *suite) gvk(u *unstructured.Unstructured) rutter.GVK {
	gvk := u.GroupVersionKind()
	return rutter.GVK{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}

// apply sends a shape as the engine does; a kind may take a moment to be served.
func (s *suite) apply(t *testing.T, x *shape) {
	t.Helper()
	testenv.Eventually(t, 30*time.Second, func() error {
		m, err := s.cluster.Mapping(t.Context(), s.gvk(x.sent))
		if err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		sent := plan.Sent(x.sent, s.unit, m.Namespaced)
		if x.live, err = s.cluster.Apply(t.Context(), sent, rutter.ApplyOptions{}); err != nil {
			if code := rutter.CodeOf(err); code != rutter.CodeNotFound && code != rutter.CodeUnavailable {
				t.Fatalf("%s: %v", x.name, err)
			}
			return fmt.Errorf("%s: %w", x.name, err)
		}
		x.sent = sent
		return nil
	})
}

// resource reaches the object of a shape as somebody else.
func (s *suite) resource(t *testing.T, x *shape) dynamic.ResourceInterface {
	t.Helper()
	m, err := s.cluster.Mapping(t.Context(), s.gvk(x.sent))
	if err != nil {
		t.Fatal(err)
	}
	gvr := x.sent.GroupVersionKind().GroupVersion().WithResource(m.Resource)
	if m.Namespaced {
		return s.dynamic.Resource(gvr).Namespace(x.sent.GetNamespace())
	}
	return s.dynamic.Resource(gvr)
}

// judge is the verdict on a live object as the engine reaches it: by itself
// where that is enough, and by the server's dry run where it is not.
func (s *suite) judge(t *testing.T, x *shape, live *unstructured.Unstructured, types *compare.Types) compare.Result {
	t.Helper()
	opts := compare.Options{Manager: rutter.FieldManager, Types: types}
	if r := compare.Local(x.sent, live, opts); r.Equal {
		return r
	}
	s.dryRuns.Add(1)
	predicted, err := s.cluster.Apply(t.Context(), compare.Respect(x.sent, live, nil), rutter.ApplyOptions{DryRun: true})
	if err != nil {
		t.Errorf("dry run: %v", err)
		return compare.Result{}
	}
	return compare.Predicted(predicted, live, opts)
}

// offline compares what Git has with a live object whose fields nobody is known
// to own, as rutter diff does.
func (s *suite) offline(x *shape, live *unstructured.Unstructured) compare.Result {
	bare := live.DeepCopy()
	bare.SetManagedFields(nil)
	return compare.Local(x.raw, bare, compare.Options{Types: s.types, Final: true})
}

// content is an object without what says when it was written.
func content(u *unstructured.Unstructured) map[string]any {
	out := u.DeepCopy()
	out.SetResourceVersion("")
	out.SetGeneration(0)
	out.SetManagedFields(nil)
	return out.Object
}

// converged: what was applied is Synced at once, after a restart, and for who
// knows no types; and applying it again changes nothing.
func (s *suite) converged(t *testing.T, x *shape) {
	t.Helper()
	read, err := s.resource(t, x).Get(t.Context(), x.sent.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for reason, r := range map[string]compare.Result{
		"at once":         s.judge(t, x, x.live, s.types),
		"after a restart": s.judge(t, x, read, s.fresh(t)),
		"without types":   s.judge(t, x, read, nil),
	} {
		if !r.Equal {
			s.falseDrift.Add(1)
			t.Errorf("not Synced %s: %+v", reason, r.Diffs)
		}
	}
	if r := compare.Local(x.sent, read, compare.Options{Types: s.types}); !r.Equal {
		t.Logf("needs a dry run: %+v", r.Diffs)
	}
	if r := s.offline(x, read); !r.Equal {
		s.falseDrift.Add(1)
		t.Errorf("offline: not equal: %+v", r.Diffs)
	}
	again, err := s.cluster.Apply(t.Context(), compare.Respect(x.sent, read, nil), rutter.ApplyOptions{})
	switch {
	case err != nil:
		t.Error(err)
	case jsonOf(content(again)) != jsonOf(content(read)): // the server may write it anew for an empty list that it drops
		t.Errorf("applied again, it is another: %s\n%s", jsonOf(read.Object), jsonOf(again.Object))
	}
	if x.told, err = s.cluster.Apply(t.Context(), compare.Respect(x.sent, read, nil), rutter.ApplyOptions{DryRun: true}); err != nil {
		t.Fatal(err)
	}
	x.live = read
}
