package argo

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter"
)

func setKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "argocd", Name: name}
}

// evaluated is one evaluation of a set.
func (m *moves) evaluated(name string, apps ...string) []types.NamespacedName {
	m.begin(setKey(name))
	m.note(setKey(name), apps, true)
	return m.end(setKey(name))
}

func TestMovesAwaitOthers(t *testing.T) {
	a, b := setKey("a"), setKey("b")
	lost := map[string]bool{"x": true}
	now := time.Unix(1000, 0)
	both := map[types.NamespacedName]bool{b: false}
	dirty := map[types.NamespacedName]bool{b: true}

	m := newMoves()
	m.evaluated("a")
	if _, pending := m.give(a, lost, both, now); pending != "b" {
		t.Error("what a set makes that was never evaluated is not known")
	}
	if woken := m.evaluated("b", "x"); !slices.Equal(woken, []types.NamespacedName{a}) {
		t.Errorf("who waited is not woken: %v", woken)
	}
	if m.generator(setKey("x"), "a") != "b" || m.generator(setKey("x"), "b") != "" {
		t.Error("who generates it is not known")
	}

	m = newMoves()
	m.evaluated("a")
	m.evaluated("b")
	if _, pending := m.give(a, lost, both, now); pending != "" {
		t.Errorf("waits for %s, which is known", pending)
	}
	later := map[string]bool{"x": true, "y": true}
	since, pending := m.give(a, later, dirty, now.Add(time.Second))
	if pending != "b" || !since["x"].Equal(now) || since["y"].Equal(now) {
		t.Errorf("a set whose inputs have changed is waited for: %q %v", pending, since)
	}
	m.begin(b)
	if _, pending = m.give(a, later, both, now); pending != "b" {
		t.Error("an evaluation that has only begun is no answer")
	}
	m.end(b)
	if _, pending = m.give(a, later, dirty, now); pending != "" {
		t.Error("one that is woken again and again is waited for without end")
	}
	if _, pending = m.give(a, nil, dirty, now); pending != "" || len(m.unwanted)+len(m.awaits) != 0 {
		t.Error("nothing is kept when nothing goes")
	}

	// The evaluation that is on may have begun before the change: where the set is
	// marked again, the next one counts.
	m.begin(b)
	if _, pending = m.give(a, lost, dirty, now); pending != "b" || len(m.end(b)) != 0 {
		t.Error("an older evaluation is taken for an answer")
	}
	if len(m.evaluated("b")) != 1 {
		t.Error("the next one is none")
	}

	// Two that lose something at one time do not wait for each other for ever.
	m = newMoves()
	m.evaluated("a")
	m.evaluated("b")
	m.begin(a)
	m.begin(b)
	m.give(a, lost, both, now)
	m.give(b, map[string]bool{"y": true}, map[types.NamespacedName]bool{a: false}, now)
	m.end(a)
	m.end(b)
	m.begin(a)
	m.begin(b)
	if _, pending := m.give(a, lost, both, now); pending != "" {
		t.Error("a waits for b again")
	}
	if _, pending := m.give(b, map[string]bool{"y": true}, map[types.NamespacedName]bool{a: false}, now); pending != "" {
		t.Error("b waits for a again")
	}

	// A set that goes is waited for no longer.
	m = newMoves()
	m.evaluated("a")
	m.give(a, lost, both, now)
	if _, pending := m.give(a, lost, nil, now); pending != "" {
		t.Error("a set that is gone is waited for")
	}
}

// TestMovesThatFail: an evaluation that came to nothing is no answer, and a set that
// goes is the answer that is waited for.
func TestMovesThatFail(t *testing.T) {
	a, b := setKey("a"), setKey("b")
	lost := map[string]bool{"x": true}
	now := time.Unix(1000, 0)
	m := newMoves()
	m.evaluated("a")
	m.begin(b)
	m.give(a, lost, map[types.NamespacedName]bool{b: false}, now)
	m.fail(b)
	if _, pending := m.give(a, lost, map[types.NamespacedName]bool{b: false}, now); pending != "b" {
		t.Errorf("a failed evaluation is taken for an answer: %q", pending)
	}
	m.begin(b)
	m.fail(b) // and again
	if woken := m.evaluated("b", "x"); !slices.Equal(woken, []types.NamespacedName{a}) {
		t.Errorf("who waited is not woken by the next one: %v", woken)
	}

	// b is deleted while its evaluation is waited for: that is never counted again.
	m = newMoves()
	m.evaluated("a")
	m.evaluated("b")
	m.give(a, lost, map[types.NamespacedName]bool{b: true}, now)
	if !m.leave(b) {
		t.Error("that it goes is news")
	}
	if woken := m.end(b); !slices.Equal(woken, []types.NamespacedName{a}) || len(m.awaits) > 0 {
		t.Errorf("who waited for a set that goes is not woken: %v %v", woken, m.awaits)
	}
}

// TestApprovedIsAwaitedAnew: what waited for an approval may have been given to
// another set since it was first unwanted.
func TestApprovedIsAwaitedAnew(t *testing.T) {
	a, b := setKey("a"), setKey("b")
	held, going := map[string]bool{"x": false}, map[string]bool{"x": true}
	now := time.Unix(1000, 0)
	m := newMoves()
	m.evaluated("a")
	m.evaluated("b")
	clean, dirty := map[types.NamespacedName]bool{b: false}, map[types.NamespacedName]bool{b: true}
	m.give(a, held, clean, now)
	if _, pending := m.give(a, held, dirty, now.Add(time.Hour)); pending != "" {
		t.Errorf("what waits for a person waits for %s", pending)
	}
	later := now.Add(2 * time.Hour)
	since, pending := m.give(a, going, dirty, later)
	if pending != "b" || !since["x"].Equal(later) {
		t.Errorf("it goes at once, whatever b is about to have: %q, since %v", pending, since)
	}
	m.evaluated("b")
	if since, pending = m.give(a, going, dirty, later.Add(time.Second)); pending != "" || !since["x"].Equal(later) {
		t.Errorf("and waits once: %q, since %v", pending, since)
	}
	if _, pending = m.give(a, held, dirty, later); pending != "" {
		t.Errorf("held again, it waits for %s", pending)
	}
}

func TestMovesIncomplete(t *testing.T) {
	m := newMoves()
	m.note(setKey("a"), []string{"x", "y"}, true)
	m.note(setKey("a"), []string{"z"}, false)
	for _, name := range []string{"x", "y", "z"} {
		if !m.generates(setKey("a"), name) {
			t.Errorf("an answer that is not complete takes %s back", name)
		}
	}
	m.note(setKey("a"), []string{"z"}, true)
	if m.generates(setKey("a"), "x") {
		t.Error("a complete answer takes nothing back")
	}
	id := rutter.UnitID{Dialect: "argo", Namespace: "argocd", Name: "x"}
	m.releasing(id, setKey("a"))
	if by, ok := m.releaser(id); !ok || by != setKey("a") || len(m.releasedBy(setKey("a"))) != 1 {
		t.Error("who hands it over is not known")
	}
	m.released(id)
	if len(m.releasedBy(setKey("a"))) != 0 {
		t.Error("a hand-over that is over is remembered")
	}
}
