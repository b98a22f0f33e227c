package argo

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// moves is what the sets know of each other, so that an Application which goes
// from one to another is not taken for one that nobody wants. Of what a set
// generates only the names are kept.
type moves struct {
	mu sync.Mutex
	// generated are the names of the Applications of each set that was evaluated
	// since the start, in order, and running the sets that are being evaluated.
	generated map[types.NamespacedName][]string
	running   map[types.NamespacedName]bool
	// waiting are the sets that are to be told when another was evaluated.
	waiting map[types.NamespacedName]bool
	// gone is since when Applications of a set are unwanted.
	gone map[types.NamespacedName]map[string]time.Time
	// handing are the hand-overs in progress, with the set that gives.
	handing map[rutter.UnitID]types.NamespacedName
}

func newMoves() *moves {
	return &moves{generated: map[types.NamespacedName][]string{}, running: map[types.NamespacedName]bool{}, waiting: map[types.NamespacedName]bool{},
		gone: map[types.NamespacedName]map[string]time.Time{}, handing: map[rutter.UnitID]types.NamespacedName{}}
}

// begin notes that a set is being evaluated, and end that it was: it returns the
// sets of the namespace that waited for that.
func (m *moves) begin(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[key] = true
}

func (m *moves) end(key types.NamespacedName) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, key)
	var woken []types.NamespacedName
	for other := range m.waiting {
		if other.Namespace == key.Namespace && other != key {
			woken = append(woken, other)
			delete(m.waiting, other)
		}
	}
	return woken
}

func (m *moves) wait(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting[key] = true
}

// settled reports whether the set was evaluated and is not being evaluated again.
func (m *moves) settled(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.generated[key]
	return known && !m.running[key]
}

func (m *moves) known(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.generated[key]
	return known
}

// note keeps the names of what a set generates. An answer that is not complete
// takes none back.
func (m *moves) note(key types.NamespacedName, apps []*v1alpha1.Application, complete bool) {
	names := make([]string, 0, len(apps))
	for _, app := range apps {
		names = append(names, app.Name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !complete {
		names = append(names, m.generated[key]...)
	}
	slices.Sort(names)
	m.generated[key] = slices.Compact(names)
}

// forget is for a set that is deleted.
func (m *moves) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.generated, key)
	delete(m.running, key)
	delete(m.gone, key)
	delete(m.waiting, key)
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

// unwanted notes what a set is to delete, and returns since when that is so.
func (m *moves) unwanted(key types.NamespacedName, names map[string]bool, now time.Time) map[string]time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	since := make(map[string]time.Time, len(names))
	for name := range names {
		since[name] = now
		if t, known := m.gone[key][name]; known {
			since[name] = t
		}
	}
	if len(since) == 0 {
		delete(m.gone, key)
	} else {
		m.gone[key] = since
	}
	return maps.Clone(since)
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
