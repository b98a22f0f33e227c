package argo

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter"
)

// moves is what the sets know of each other, so that an Application which goes
// from one to another is not taken for one that nobody wants. Of what a set
// generates only the names are kept.
type moves struct {
	mu sync.Mutex
	// generated are the names of the Applications of each set that was evaluated
	// since the start, in order.
	generated map[types.NamespacedName][]string
	// begun counts the evaluations of each set, and running says that one is on.
	begun   map[types.NamespacedName]int
	running map[types.NamespacedName]bool
	// unwanted is what a set is to delete.
	unwanted map[types.NamespacedName]map[string]loss
	// awaits are the evaluations of other sets that must be over before.
	awaits map[types.NamespacedName]map[types.NamespacedName]int
	// nudging are the sets that are about to be woken for what was made.
	nudging map[types.NamespacedName]bool
	// adopted is when Applications got another owner, for as long as the garbage
	// collector may still be about to delete them for what it read before.
	adopted map[types.UID]time.Time
	// handing are the hand-overs in progress, with the set that gives.
	handing map[rutter.UnitID]types.NamespacedName
}

// loss is since when an Application is to be deleted; one that waits for an approval
// is not going yet.
type loss struct {
	since time.Time
	going bool
}

func newMoves() *moves {
	return &moves{generated: map[types.NamespacedName][]string{}, begun: map[types.NamespacedName]int{}, running: map[types.NamespacedName]bool{},
		unwanted: map[types.NamespacedName]map[string]loss{}, awaits: map[types.NamespacedName]map[types.NamespacedName]int{},
		nudging: map[types.NamespacedName]bool{}, adopted: map[types.UID]time.Time{}, handing: map[rutter.UnitID]types.NamespacedName{}}
}

// begin notes that a set is being evaluated.
func (m *moves) begin(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[key] = true
	m.begun[key]++
}

// end notes that it was, and returns those that waited for nothing else.
func (m *moves) end(key types.NamespacedName) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, key)
	var woken []types.NamespacedName
	for waits, on := range m.awaits {
		if n, is := on[key]; !is || m.begun[key] < n {
			continue
		}
		if delete(on, key); len(on) == 0 {
			delete(m.awaits, waits)
			woken = append(woken, waits)
		}
	}
	return woken
}

// fail notes that an evaluation came to nothing: who waits for it, waits for the next.
func (m *moves) fail(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, key)
	for _, on := range m.awaits {
		if n, is := on[key]; is && n <= m.begun[key] {
			on[key] = m.begun[key] + 1
		}
	}
}

// give notes what somebody is to delete, false where that waits for an approval,
// and returns since when that is so, and
// one of the sets that must be evaluated before: of what is new, each one whose
// answer may be older. What was approved is new again, however long it waited: it
// may have been given to another set meanwhile. An evaluation is waited for once, so that two sets do not
// wait for each other for ever. siblings are the other sets, true where they are
// about to be evaluated.
func (m *moves) give(key types.NamespacedName, names map[string]bool, siblings map[types.NamespacedName]bool, now time.Time) (since map[string]time.Time, pending string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(names) == 0 {
		delete(m.unwanted, key)
		delete(m.awaits, key)
		return nil, ""
	}
	since = make(map[string]time.Time, len(names))
	losses := make(map[string]loss, len(names))
	fresh := false
	for name, going := range names {
		l, known := m.unwanted[key][name]
		if !known || going && !l.going {
			l, fresh = loss{now, going}, true
		}
		l.going = going
		losses[name], since[name] = l, l.since
	}
	m.unwanted[key] = losses
	if fresh {
		m.await(key, siblings)
	}
	for other := range m.awaits[key] {
		if _, there := siblings[other]; !there {
			delete(m.awaits[key], other)
		} else if pending == "" || other.Name < pending {
			pending = other.Name
		}
	}
	return since, pending
}

// nudge returns the sets of a namespace that are to delete something, each once
// until nudged is called.
func (m *moves) nudge(namespace string) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []types.NamespacedName
	for key := range m.unwanted {
		if key.Namespace == namespace && !m.nudging[key] && !strings.HasPrefix(key.Name, notASet) {
			m.nudging[key] = true
			keys = append(keys, key)
		}
	}
	return keys
}

func (m *moves) nudged(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.nudging, key)
}

// collectorLag is how long after it has read who owns an object the garbage
// collector may delete it.
const collectorLag = time.Minute

// adopt notes that an Application gets another owner.
func (m *moves) adopt(app types.UID, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.adopted, func(_ types.UID, at time.Time) bool { return now.Sub(at) > collectorLag })
	m.adopted[app] = now
}

// adoptedBefore reports whether an Application that was deleted then may have
// been deleted for an owner that it had no more.
func (m *moves) adoptedBefore(app types.UID, deleted time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, known := m.adopted[app]
	return known && deleted.Sub(at) <= collectorLag
}

// await has somebody wait for the sets whose answers may be older; m.mu is held.
func (m *moves) await(key types.NamespacedName, siblings map[types.NamespacedName]bool) {
	for other, dirty := range siblings {
		need := m.begun[other]
		if _, known := m.generated[other]; dirty || !known && !m.running[other] {
			need++
		} else if !m.running[other] {
			continue
		}
		if m.awaits[key] == nil {
			m.awaits[key] = map[types.NamespacedName]int{}
		}
		m.awaits[key][other] = need
	}
}

// known reports whether the set was evaluated since the start.
func (m *moves) known(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.generated[key]
	return known
}

// note keeps the names of what a set generates. An answer that is not complete
// takes none back. names is the caller's no more.
func (m *moves) note(key types.NamespacedName, names []string, complete bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !complete {
		names = append(names, m.generated[key]...)
	}
	slices.Sort(names)
	m.generated[key] = slices.Compact(names)
}

// leave is for a set that is being deleted: it generates nothing any more. It
// reports whether that is news.
func (m *moves) leave(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.generated[key]
	delete(m.generated, key)
	delete(m.begun, key)
	delete(m.running, key)
	for _, on := range m.awaits {
		if _, is := on[key]; is {
			on[key] = 0 // end, which follows, is what it waits for
		}
	}
	return known
}

// forget is for a set that is gone.
func (m *moves) forget(key types.NamespacedName) {
	m.leave(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.unwanted, key)
	delete(m.awaits, key)
}

func (m *moves) generates(set types.NamespacedName, name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := slices.BinarySearch(m.generated[set], name)
	return found
}

// generator names the set, other than one, that generates an Application; the
// first of several, or "".
func (m *moves) generator(app types.NamespacedName, not string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := ""
	for set, names := range m.generated {
		if set.Namespace != app.Namespace || set.Name == not || first != "" && first < set.Name {
			continue
		}
		if _, found := slices.BinarySearch(names, app.Name); found {
			first = set.Name
		}
	}
	return first
}

func (m *moves) releasing(id rutter.UnitID, set types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handing[id] = set
}

func (m *moves) released(id rutter.UnitID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.handing, id)
}

// releaser is the set that hands a unit over.
func (m *moves) releaser(id rutter.UnitID) (types.NamespacedName, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	set, ok := m.handing[id]
	return set, ok
}

// releasedBy are the units that a set hands over.
func (m *moves) releasedBy(set types.NamespacedName) []rutter.UnitID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []rutter.UnitID
	for id, by := range m.handing {
		if by == set {
			ids = append(ids, id)
		}
	}
	return ids
}
