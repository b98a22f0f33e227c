package argo

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter"
)

// TestListeners: exactly those sets are woken that asked what an event is about,
// with what was rendered into their questions.
func TestListeners(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "argocd", Name: name} }
	repo := func(name string) rutter.ForgeQuery { return rutter.ForgeQuery{Owner: "org", Repo: name} }
	pulls := func(names ...string) (out []askedForge) {
		for _, n := range names {
			out = append(out, askedForge{query: repo(n), pulls: true})
		}
		return out
	}
	list := []askedForge{{query: rutter.ForgeQuery{Owner: "org"}}}
	about := func(name string) func(rutter.ForgeQuery, bool) bool {
		return func(q rutter.ForgeQuery, pulls bool) bool { return pulls && q.Repo == name }
	}
	pushed := func(q rutter.ForgeQuery, pulls bool) bool { return !pulls && q.Owner == "org" }
	now := time.Unix(1_700_000_000, 0)
	names := func(keys []types.NamespacedName) (out []string) {
		for _, k := range keys {
			out = append(out, k.Name)
		}
		slices.Sort(out)
		return out
	}
	woken := func(l *listeners, at time.Time, concerns func(rutter.ForgeQuery, bool) bool) []string {
		keys, _ := l.heard(at, concerns)
		return names(keys)
	}

	var l listeners
	l.settle(key("one"), pulls("fleet"), false)
	l.settle(key("matrix"), pulls("fleet", "shop"), false)
	l.settle(key("other"), pulls("other"), false)
	l.settle(key("git"), nil, false)
	if d := cmp.Diff([]string{"matrix", "one"}, woken(&l, now, about("fleet"))); d != "" {
		t.Error(d)
	}
	l.settle(key("plugin"), nil, true)
	if d := cmp.Diff([]string{"plugin"}, woken(&l, now, about("nobody's"))); d != "" {
		t.Errorf("a plugin is woken by everything: %s", d)
	}
	// But not as often as everything happens.
	keys, after := l.heard(now.Add(time.Second), about("nobody's"))
	if len(keys) != 0 || after[key("plugin")] != listPause-time.Second {
		t.Errorf("woken again at once: %v, %v", keys, after)
	}
	if keys, after = l.heard(now.Add(2*time.Second), about("nobody's")); len(keys)+len(after) != 0 {
		t.Errorf("woken more than once after the pause: %v, %v", keys, after)
	}
	if !l.listNow(key("plugin"), now.Add(listPause)) {
		t.Error("what comes in the pause is lost")
	}
	l.drop(key("plugin"))

	// What is being asked wakes already; what is asked no more does until the end.
	l.noteForge(key("one"), pulls("shop")[0])
	if d := cmp.Diff([]string{"matrix", "one"}, woken(&l, now, about("shop"))); d != "" {
		t.Error(d)
	}
	l.settle(key("one"), pulls("shop"), false)
	l.drop(key("matrix"))
	if got := woken(&l, now, about("fleet")); len(got) > 0 {
		t.Errorf("asked no more: %v", got)
	}

	// Lists are looked at once in a while, however often the owner pushes, and
	// what comes in the pause is not lost.
	l.settle(key("list"), list, false)
	if d := cmp.Diff([]string{"list"}, woken(&l, now, pushed)); d != "" {
		t.Error(d)
	}
	keys, after = l.heard(now.Add(10*time.Second), pushed)
	if len(keys) != 0 || after[key("list")] != 50*time.Second {
		t.Errorf("in the pause: %v, %v", keys, after)
	}
	if keys, after := l.heard(now.Add(20*time.Second), pushed); len(keys)+len(after) != 0 {
		t.Errorf("in the pause, again: %v, %v", keys, after)
	}
	if !l.listNow(key("list"), now.Add(time.Minute)) {
		t.Error("the pause ended, and the set is not woken")
	}
	if _, after := l.heard(now.Add(90*time.Second), pushed); after[key("list")] != 30*time.Second {
		t.Errorf("the pause after that: %v", after)
	}
	l.drop(key("list"))
	if l.listNow(key("list"), now) {
		t.Error("a set that is gone is woken")
	}
}
