package argo

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

const (
	// LabelMemory is on the ConfigMaps that hold the memories of sets, so that
	// nobody keeps them in a cache.
	LabelMemory = "rutter.dev/applicationset-memory"
	// memoryLimit keeps such a ConfigMap well below what the API server takes.
	memoryLimit = 800 << 10
	// heldLimit is as much of that as names what waits.
	heldLimit = 150 << 10
)

// memory is what the evaluations of one set leave to the next: the last good
// answers of its generators, and the plan of removals that was approved and may
// not be carried out in full yet. It is written to a ConfigMap that the set
// owns, so that an outage that begins before a restart does no harm after it.
type memory struct {
	uid     types.UID
	answers generate.Memory
	digest  string
	ticket  string
	// held is the digest of the removals that wait, as it was written last, shown
	// what commands show of them, and waiting which they are.
	held    string
	shown   []byte
	waiting string
	// removed is what went lately without being asked.
	removed string
	stored  bool
	// fleeting says that we may not keep it: it lasts as long as the process.
	fleeting bool
}

// memories are those of all sets, each read once.
type memories struct {
	mu sync.Mutex
	by map[types.NamespacedName]memory
}

// of is the memory of a set; one that another of the same name had is not.
func (m *memories) of(set *v1alpha1.ApplicationSet) (memory, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one, ok := m.by[client.ObjectKeyFromObject(set)]
	return one, ok && one.uid == set.UID
}

func (m *memories) put(set *v1alpha1.ApplicationSet, one memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by = map[types.NamespacedName]memory{}
	}
	one.uid = set.UID
	m.by[client.ObjectKeyFromObject(set)] = one
}

// drop forgets the memory of a set that is gone.
func (m *memories) drop(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, key)
}

func memoryOf(set *v1alpha1.ApplicationSet) *corev1.ConfigMap {
	yes := true
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.Namespace, Name: generate.MemoryName(set), Labels: map[string]string{LabelMemory: "true"},
		Annotations: map[string]string{"rutter.dev/applicationset": set.Name},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ApplicationSet",
			Name: set.Name, UID: set.UID, Controller: &yes}},
	}}
}

// recall reads the memory of a set. One that cannot be read is not an empty
// one: without it, what a generator in an outage made would not be known.
func (s *applicationSets) recall(ctx context.Context, set *v1alpha1.ApplicationSet) (memory, error) {
	if one, ok := s.memories.of(set); ok {
		return one, nil
	}
	stored := memoryOf(set)
	err := s.reader.Get(ctx, client.ObjectKeyFromObject(stored), stored)
	if apierrors.IsNotFound(err) {
		s.memories.put(set, memory{})
		return memory{}, nil
	}
	if apierrors.IsForbidden(err) {
		// Nothing is deleted for the lack of it; changes wait for the end of an outage.
		s.opts.Logger.Warn("ConfigMaps may not be read: what generators answered last is not kept over a restart, give the controller get, create and update of ConfigMaps there", "namespace", set.Namespace, "set", set.Name)
		one := memory{fleeting: true}
		s.memories.put(set, one)
		return one, nil
	}
	if err != nil {
		return memory{}, fmt.Errorf("read the memory of ApplicationSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	one := memory{stored: true, ticket: stored.Data[generate.MemoryTicket], waiting: stored.Data[generate.MemoryWaiting],
		removed: stored.Data[generate.MemoryRemoved], shown: stored.BinaryData[generate.MemoryHeld], held: heldIn(stored)}
	if one.answers, err = generate.DecodeMemory(stored.BinaryData[generate.MemoryAnswers]); err != nil {
		s.opts.Logger.Warn("the memory of an ApplicationSet cannot be read and is made anew", "set", set.Namespace+"/"+set.Name, "err", err)
		one.answers = generate.Memory{}
	}
	if one.digest, err = one.answers.Digest(); err != nil {
		return memory{}, err
	}
	s.memories.put(set, one)
	return one, nil
}

// keep writes the memory of a set, if it is another than before.
func (s *applicationSets) keep(ctx context.Context, set *v1alpha1.ApplicationSet, before memory, o *outcome) error {
	answers := o.result.Memory
	digest, err := answers.Digest()
	if err != nil {
		return err
	}
	next := memory{answers: answers, digest: digest, ticket: o.decision.Ticket, waiting: o.decision.Waiting, removed: o.decision.Removed, stored: true}
	switch h := o.decision.Held; {
	case h != nil && h.Digest == before.held, h == nil && o.unsure:
		next.held, next.shown = before.held, before.shown
	case h != nil:
		next.held = h.Digest
		if next.shown, err = h.Encode(heldLimit); err != nil {
			return err
		}
	}
	if next.same(before) || !before.stored && next.same(memory{digest: digest}) && answers.Len() == 0 {
		return nil
	}
	if next.fleeting = before.fleeting || s.opts.Sets.DryRun; next.fleeting {
		s.memories.put(set, next)
		return nil
	}
	stored := memoryOf(set)
	stored.Data, stored.BinaryData = map[string]string{}, map[string][]byte{}
	room := memoryLimit - len(next.shown)
	for key, text := range map[string]string{generate.MemoryTicket: next.ticket, generate.MemoryWaiting: next.waiting, generate.MemoryRemoved: next.removed} {
		if text != "" {
			stored.Data[key] = text
		}
		room -= len(text)
	}
	if next.held != "" {
		stored.BinaryData[generate.MemoryHeld] = next.shown
	}
	data, left, err := answers.Encode(room)
	if err != nil {
		return err
	}
	if left > 0 {
		s.opts.Logger.Warn("the answers of some generators are too large to be remembered over a restart", "set", set.Namespace+"/"+set.Name, "generators", left)
	}
	stored.BinaryData[generate.MemoryAnswers] = data
	err = s.client.Update(ctx, stored, setOwner)
	if apierrors.IsNotFound(err) {
		err = s.client.Create(ctx, stored, setOwner)
	}
	if err != nil {
		return fmt.Errorf("keep the memory of ApplicationSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	s.memories.put(set, next)
	return nil
}

// same reports whether two memories are written as the same.
func (m memory) same(other memory) bool {
	return m.digest == other.digest && m.ticket == other.ticket && m.held == other.held && m.waiting == other.waiting && m.removed == other.removed
}

// heldIn is the digest of the removals that wait, as a memory has them.
func heldIn(stored *corev1.ConfigMap) string {
	h, err := generate.DecodeHeld(stored.BinaryData[generate.MemoryHeld])
	if err != nil || h == nil {
		return ""
	}
	return h.Digest
}
