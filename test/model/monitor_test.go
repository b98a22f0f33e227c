package model

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/health"
	"github.com/rutterhq/rutter/internal/plan"
)

// monitor watches every write and notes what the specification does not allow. The
// cluster's lock is held in all its methods but broken.
type monitor struct {
	git *git

	mu       sync.Mutex
	breaches []string
	// sent is what was last applied of each object, and succeeded the contents of
	// hooks that have run to success, and since which commit.
	sent      map[rutter.Ref]string
	succeeded map[string]bool
	// runs are the runs of hooks that were started, by identity.
	runs map[string]plan.HookRun
	uids map[string]string // UID of a hook → identity
	over map[string]bool   // identities that have succeeded
	// byHand are objects that somebody deleted and that are not put back yet.
	byHand                 map[rutter.Ref]bool
	writes, deletes, hooks int
}

func newMonitor(g *git) *monitor {
	return &monitor{git: g, sent: map[rutter.Ref]string{}, succeeded: map[string]bool{}, runs: map[string]plan.HookRun{}, uids: map[string]string{}, over: map[string]bool{}, byHand: map[rutter.Ref]bool{}}
}

func (m *monitor) breach(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.breaches = append(m.breaches, fmt.Sprintf(format, args...))
}

func (m *monitor) broken() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.breaches
}

// applied is a write of an object.
func (m *monitor) applied(objects map[rutter.Ref]*unstructured.Unstructured, old, next *unstructured.Unstructured) {
	m.writes++
	ref, run := rutter.RefOf(next), text(next, "spec", "run")
	hook, isHook := plan.ParseHookRun(next.GetAnnotations()[rutter.AnnotationHookRun])
	if isHook && old == nil {
		m.started(ref, hook, next)
	}
	again := !isHook && (m.sent[ref] == run || run == "by hand")
	m.sent[ref] = run
	delete(m.byHand, ref)
	if again {
		return // what was in order once is put back
	}
	// There is a commit that has it so, and everything before it in that commit is done.
	why := "no commit has it so"
	for n := m.git.head(); n >= 0; n-- {
		x, ok := m.git.at(n).find(ref)
		if !ok || x.Run != run {
			continue
		}
		if why = m.before(objects, n, x); why == "" {
			return
		}
	}
	m.breach("%s was sent as %q out of order: %s", ref, run, why)
}

// started is a hook that begins to run.
func (m *monitor) started(ref rutter.Ref, hook plan.HookRun, next *unstructured.Unstructured) {
	m.hooks++
	identity := fmt.Sprintf("%s %s %d", ref, hook.Of, hook.Started.UnixNano())
	if before, twice := m.runs[identity]; twice && (m.over[identity] || before.Attempt == hook.Attempt) {
		m.breach("hook %s ran twice for one identity: attempts %d and %d", ref, before.Attempt, hook.Attempt)
	}
	m.runs[identity] = hook
	m.uids[string(next.GetUID())] = identity
}

// controlled is a change of a status.
func (m *monitor) controlled(next *unstructured.Unstructured) {
	if rutter.GVKOf(next) == jobs && health.Of(live(next)).Status == rutter.Healthy {
		m.succeeded[rutter.RefOf(next).String()+text(next, "spec", "run")] = true
		m.over[m.uids[string(next.GetUID())]] = true
	}
}

// before says what of a commit's earlier phases and waves is not done.
func (m *monitor) before(objects map[rutter.Ref]*unstructured.Unstructured, n int, x thing) string {
	for _, y := range m.git.at(n) {
		if slot(y) >= slot(x) || y.ref() == x.ref() {
			continue
		}
		switch o := objects[y.ref()]; {
		case y.Hook:
			if !m.succeeded[y.ref().String()+y.Run] {
				return fmt.Sprintf("of commit %d hook %s has not succeeded", n, y.Name)
			}
		case o == nil && m.byHand[y.ref()]:
			// somebody took it away meanwhile; it is put back by itself
		case o == nil:
			return fmt.Sprintf("of commit %d %s is not there", n, y.Name)
		case text(o, "spec", "run") != y.Run && text(o, "spec", "run") != "by hand":
			return fmt.Sprintf("%s is not as in commit %d", y.Name, n)
		case health.Of(o).Status != rutter.Healthy && health.Of(o).Status != "" && text(o, "spec", "run") != "by hand":
			return fmt.Sprintf("of commit %d %s is %s", n, y.Name, health.Of(o).Status)
		}
	}
	return ""
}

func live(o *unstructured.Unstructured) *unstructured.Unstructured {
	c := o.DeepCopy()
	c.SetDeletionTimestamp(nil)
	return c
}

// slot is the place of a thing in the order.
func slot(x thing) int {
	phases := map[rutter.Phase]int{rutter.PhasePreSync: 0, "": 1, rutter.PhaseSync: 1, rutter.PhasePostSync: 2}
	return phases[x.Phase]*1000 + x.Wave
}

// lag is how long the engine may go on with what it does for an older commit.
const lag = 500 * time.Millisecond

// deleted is a deletion that was asked for.
func (m *monitor) deleted(old *unstructured.Unstructured) {
	if old.GetAnnotations()[rutter.AnnotationHookRun] != "" {
		return
	}
	m.deletes++
	ref, head := rutter.RefOf(old), m.git.head()
	delete(m.sent, ref)
	for n := head; n >= 0; n-- {
		if _, declared := m.git.at(n).find(ref); !declared {
			return
		}
		if m.git.since(n) > lag {
			break
		}
	}
	m.breach("%s was deleted, and Git has it", ref)
}
