package engine

import (
	"slices"
	"testing"

	"github.com/rutterhq/rutter"
)

func testUnit(name, path string) rutter.Unit {
	return rutter.Unit{ID: rutter.UnitID{Dialect: "argo", Namespace: "argocd", Name: name}, Instance: name,
		Sources: []rutter.Source{{RepoURL: "https://git.example.com/r", Path: path, TargetRevision: "main"}},
		Target:  rutter.Target{Server: "https://a", Namespace: "shop"}}
}

func TestClaims(t *testing.T) {
	a, b := &state{instance: "a"}, &state{instance: "b"}
	k := claim{"https://a", rutter.Ref{Kind: "ConfigMap", Namespace: "shop", Name: "c"}}
	c := newClaims()
	if others := c.declare(a, k); len(others) != 0 {
		t.Errorf("nobody else is concerned: %v", others)
	}
	if c.other(a, k) != nil || c.other(b, k) != a || c.declare(a, k) != nil {
		t.Error("one unit declares it")
	}
	if others := c.declare(b, k); !slices.Equal(others, []*state{a}) {
		t.Error("a learns that b declares it too")
	}
	if c.other(a, k) != b || c.other(b, k) != a {
		t.Error("each sees the other")
	}
	if others := c.withdraw(a, k, true); !slices.Equal(others, []*state{b}) || c.other(b, k) != nil || c.declares(a, k) {
		t.Error("who only watches has no say")
	}
	if len(c.of(k)) != 2 {
		t.Error("but is told of it")
	}
	b.leaving.Store(true)
	if c.other(a, k) != nil || c.declares(b, k) {
		t.Error("a unit that goes keeps nothing")
	}
	b.leaving.Store(false)
	c.withdraw(a, k, false)
	c.withdraw(b, k, false)
	if len(c.sole)+len(c.shared) != 0 {
		t.Error("what nobody declares is remembered")
	}
}

func TestRivals(t *testing.T) {
	unit := testUnit("a", "app")
	elsewhere := testUnit("b", "app")
	elsewhere.Target.Namespace = "other"
	other := testUnit("b", "app")
	other.Sources[0].RepoURL = "https://git.example.com/other"
	for name, tc := range map[string]struct {
		rival unsettled
		want  bool
	}{
		"new":                      {unsettled{unit: other, fresh: true}, true},
		"newer commit, same repo":  {unsettled{unit: testUnit("b", "elsewhere")}, true},
		"newer commit, other repo": {unsettled{unit: other}, false},
		"broken, same sources":     {unsettled{unit: testUnit("b", "app"), fresh: true, tried: true}, true},
		"broken, other path":       {unsettled{unit: testUnit("b", "elsewhere"), fresh: true, tried: true}, false},
		"broken, other namespace":  {unsettled{unit: elsewhere, fresh: true, tried: true}, false},
		"broken, other repo":       {unsettled{unit: other, fresh: true, tried: true}, false},
	} {
		if got := tc.rival.rivals(unit); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
