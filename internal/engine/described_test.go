package engine

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

// describing is a cluster of which only the description of its kinds is asked.
type describing struct {
	rutter.Cluster

	index   map[string]string
	fetched int
}

func (d *describing) Descriptions(context.Context) (map[string]string, error) { return d.index, nil }

func (d *describing) Description(context.Context, string) ([]byte, error) {
	d.fetched++
	return []byte(`{"components":{"schemas":{"com.example.v1.Widget":{"type":"object","properties":{"spec":{"type":"object"}},
		"x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Widget"}]}}}}`), nil
}

// A description is fetched once for all clusters that give it, kept while it is
// young, asked for anew when it may have changed, and forgotten with the last
// cluster that gave it.
func TestLearn(t *testing.T) {
	t.Parallel()
	types, err := compare.NewTypes(nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	e := New(Options{Types: types, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
	widget := rutter.GVK{Group: "example.com", Version: "v1", Kind: "Widget"}
	unit := func(server string) *state {
		return &state{server: server, desired: &desired{objects: []desiredObject{{gvk: widget}, {gvk: rutter.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}}}}}
	}
	c := &describing{index: map[string]string{"apis/example.com/v1": "/openapi/v3/apis/example.com/v1?hash=1"}}
	look := func(server string, fetched int) {
		t.Helper()
		e.learn(t.Context(), unit(server), c)
		if c.fetched != fetched || e.descriptions.of(server, widget).Field("spec") == nil {
			t.Errorf("at %s: fetched %d times, want %d; known %v", server, c.fetched, fetched, e.descriptions.of(server, widget))
		}
	}
	look("a", 1)
	look("a", 1)
	look("b", 1)
	now = now.Add(describedFor + time.Second)
	look("a", 1)
	c.index = map[string]string{"apis/example.com/v1": "/openapi/v3/apis/example.com/v1?hash=2"}
	now = now.Add(describedFor + time.Second)
	look("a", 2)
	look("b", 2)
	if len(e.descriptions.byURL) != 1 {
		t.Errorf("%d descriptions are kept", len(e.descriptions.byURL))
	}
	if opts := e.options(&desired{}, "a", widget); opts.Type == nil {
		t.Error("a comparison does not know the type")
	}
	if e.descriptions.of("c", widget) != nil {
		t.Error("known at a cluster that was never asked")
	}
}
