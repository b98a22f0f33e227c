package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/testenv"
)

// kills is how often TestGeneratorsKilled kills the controller.
const kills = 20

// fleetOfKills is a set that grows and shrinks while its controller is killed.
type fleetOfKills struct {
	*scene

	p   *plane
	rnd *rand.Rand
	// wanted are the names of the Applications of the elements that the set has or
	// another one to which they moved, and left those that were given up.
	wanted map[string]string
	moved  map[string]bool
	left   map[string]bool
	spare  []string
	// first are the UIDs that the elements' objects had first.
	first map[string]types.UID
}

// TestGeneratorsKilled kills the controller at random moments, most of them in
// the middle of what it writes, while a set grows, shrinks with and without an
// approval, renames, and gives elements to another set. No Application of the
// end may be deleted in between.
// RUTTER_E2E_SEED repeats a run.
func TestGeneratorsKilled(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("RUTTER_E2E_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("RUTTER_E2E_SEED=%d", seed)
	p := borrow(t)
	all := numbered(60)
	f := &fleetOfKills{scene: p.scene(t, "killed", all...), p: p, rnd: rand.New(rand.NewPCG(seed, 1)),
		wanted: map[string]string{}, moved: map[string]bool{}, left: map[string]bool{}, spare: all, first: map[string]types.UID{}}
	p.start(t)
	f.grow(12)
	f.create(t, f.text(false))
	f.create(t, f.text(true))
	f.settle(t)
	for round := range kills {
		f.round(t, round)
	}
	f.settle(t)
	f.check(t)
}

// text is the set as it is wanted now, or the other one, to which elements moved.
func (f *fleetOfKills) text(other bool) string {
	var list strings.Builder
	list.WriteString("    - list:\n        elements:")
	for _, name := range slices.Sorted(maps.Keys(f.wanted)) {
		if f.moved[name] == other {
			fmt.Fprintf(&list, "\n        - {name: %s, app: %s}", name, f.wanted[name])
		}
	}
	generators := list.String()
	if !strings.Contains(generators, "- {") {
		generators += " []"
	}
	text := strings.Replace(f.scene.text(generators, "", `, annotations: {rutter.dev/deletion-budget: "25% min 3 per 0s"}`), f.set+"-{{.name}}", f.set+"-{{.app}}", 1)
	if other {
		text = strings.Replace(text, `metadata: {name: "`+f.set+`"`, `metadata: {name: "`+f.set+`-other"`, 1)
	}
	return text
}

// own are the elements of the set itself that may leave it, in order: the first
// ones stay.
func (f *fleetOfKills) own() []string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(f.wanted)), func(name string) bool { return f.moved[name] })
	return names[4:]
}

func (f *fleetOfKills) grow(n int) {
	for _, name := range f.spare[:n] {
		f.wanted[name] = name
	}
	f.spare = f.spare[n:]
}

// shrink takes n elements away.
func (f *fleetOfKills) shrink(n int) {
	names := f.own()
	f.rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:n] {
		f.left[f.wanted[name]] = true
		delete(f.wanted, name)
	}
}

// rename gives n elements' Applications other names: their objects are handed over.
func (f *fleetOfKills) rename(n int) {
	names := f.own()
	for _, i := range f.rnd.Perm(len(names))[:n] {
		old := f.wanted[names[i]]
		f.left[old] = true
		f.wanted[names[i]] = old + "x"
	}
}

// move gives n elements to the other set.
func (f *fleetOfKills) move(n int) {
	names := f.own()
	for _, i := range f.rnd.Perm(len(names))[:n] {
		f.moved[names[i]] = true
	}
}

// round changes the set, kills the controller at some moment after that, and
// starts it again.
func (f *fleetOfKills) round(t *testing.T, round int) {
	t.Helper()
	write := func() { f.change(t, f.text(false)) }
	var what string
	var writes int
	switch round % 5 {
	case 0:
		what, writes = "grow", 10
		f.grow(9)
	case 1:
		what, writes = "shrink", 3
		f.shrink(2)
	case 2:
		what, writes = "rename", 8
		f.rename(2)
	case 3:
		what, writes = "move", 8
		f.move(2)
		write = func() {
			f.change(t, f.text(true))
			f.change(t, f.text(false))
		}
	case 4:
		what, writes = "shrink over budget", 8
		f.settle(t)
		f.shrink(6)
		f.change(t, f.text(false))
		f.awaitSomeHeld(t)
		write = func() { f.approve(t, f.digest(t)) }
	}
	moment := f.arm(1 + f.rnd.IntN(writes))
	write()
	how := "in the middle of a write"
	select {
	case <-moment:
	case <-time.After(time.Duration(500+f.rnd.IntN(1000)) * time.Millisecond):
		how = "at rest"
	}
	f.p.kill(t)
	f.p.api.mend()
	f.note(t)
	t.Logf("round %d: %s, killed %s", round, what, how)
	f.p.start(t)
	switch {
	case round%5 == 4:
		f.settled(t) // what was approved goes on, and nobody approves it again
	case f.rnd.IntN(2) == 0:
		f.settle(t)
	}
}

// arm kills the controller at its nth write from now: before it arrives, or
// before the answer does.
func (f *fleetOfKills) arm(n int) <-chan struct{} {
	moment := make(chan struct{})
	process, early := f.p.process, f.rnd.IntN(2) == 0
	var seen atomic.Int64
	f.p.api.swap(func(r *http.Request) bool {
		return r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/status") && seen.Add(1) == int64(n)
	}, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if !early {
			forward.ServeHTTP(w, r)
		}
		_ = process.cmd.Process.Kill() // plane.kill waits for its end
		close(moment)
		hangUp(w, r, forward)
	})
	return moment
}

// awaitSomeHeld waits until removals wait.
func (f *fleetOfKills) awaitSomeHeld(t *testing.T) {
	t.Helper()
	f.awaitSet(t, func(set *v1alpha1.ApplicationSet) error {
		if generate.HeldDigest(set) == "" {
			return fmt.Errorf("nothing waits: %+v", set.Status.Conditions)
		}
		return nil
	})
}

// digest is that of what waits; empty when nothing does.
func (f *fleetOfKills) digest(t *testing.T) string {
	t.Helper()
	return generate.HeldDigest(get(t, f.w.hub, controlNamespace, f.set, &v1alpha1.ApplicationSet{}))
}

// note remembers the objects that are there for the first time.
func (f *fleetOfKills) note(t *testing.T) {
	t.Helper()
	for name, uid := range f.objects(t) {
		if _, known := f.first[name]; !known {
			f.first[name] = uid
		}
	}
}

// settle waits until there is exactly what is wanted, and approves what waits:
// removals that a kill kept back may add up to more than the budget.
func (f *fleetOfKills) settle(t *testing.T) {
	t.Helper()
	approved := ""
	f.until(t, func() {
		if digest := f.digest(t); digest != "" && digest != approved {
			f.approve(t, digest)
			approved = digest
		}
	})
}

// settled waits until there is exactly what is wanted.
func (f *fleetOfKills) settled(t *testing.T) { t.Helper(); f.until(t, func() {}) }

func (f *fleetOfKills) until(t *testing.T, meanwhile func()) {
	t.Helper()
	want := slices.Sorted(maps.Values(f.wanted))
	testenv.Eventually(t, patience, func() error {
		meanwhile()
		if got := f.apps(t); !slices.Equal(got, want) {
			return fmt.Errorf("the Applications are %v, wanted %v; the set says %+v", got, want, f.conditions(t.Context()))
		}
		if got, want := slices.Sorted(maps.Keys(f.objects(t))), slices.Sorted(maps.Keys(f.wanted)); !slices.Equal(got, want) {
			return fmt.Errorf("the objects are %v, wanted %v", got, want)
		}
		return nil
	})
	f.note(t)
}

// check compares the end with all that was seen on the way.
func (f *fleetOfKills) check(t *testing.T) {
	t.Helper()
	for element, app := range f.wanted {
		f.w.awaitSynced(t, f.app(app), "")
		if f.first[element] != f.objects(t)[element] {
			t.Errorf("the object of %s was replaced", element)
		}
	}
	f.sameApps(t)
	for _, app := range f.seen.deleted() {
		if !f.left[app] {
			t.Errorf("Application %s was deleted, which the set wants", app)
		}
	}
	for _, path := range f.ways[0].paths("DELETE", f.ns+"/configmaps/") {
		if _, wanted := f.wanted[path[strings.LastIndex(path, "/")+1:]]; wanted {
			t.Errorf("the member was asked to delete %s, which is wanted", path)
		}
	}
	t.Logf("%d Applications are there at the end, %d were given up on the way", len(f.wanted), len(f.left))
}
