package argo

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// When a set is evaluated again: its own changes and those of its Applications
// mark it, and so does whoever knows that an answer to its generators changed.

// setState is what is remembered of a set between its evaluations.
type setState struct {
	// dirty says that its inputs changed; else only its status may need writing.
	dirty bool
	// usesClusters says that it reads the list of members.
	usesClusters bool
	// refused says that an Application of it names a project or a cluster that is
	// not there: it is looked at again when one appears.
	refused bool
	// failed says that a generator could not look, and attempts counts the evaluations
	// that failed one after the other.
	failed   bool
	attempts int
	// asks says that its next evaluation asks the repositories.
	asks bool
	// statusAt is when its status was written, and retryAt when it is due again
	// though nothing is heard.
	statusAt, retryAt time.Time
}

// state is that of a set; s.mu is held.
func (s *applicationSets) state(key types.NamespacedName) *setState {
	st := s.states[key]
	if st == nil {
		st = &setState{}
		s.states[key] = st
	}
	return st
}

func ownerOf(o client.Object) []string {
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == "ApplicationSet" {
		return []string{owner.Name}
	}
	return nil
}

func (s *applicationSets) setOf(_ context.Context, o client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range ownerOf(o) {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}})
	}
	return out
}

func (s *applicationSets) noteDirty(o client.Object) bool {
	s.mark(client.ObjectKeyFromObject(o))
	return true
}

// childChanged wakes a set when one of its Applications was edited (it is put
// back) or shows another state (the set's status lists it).
func (s *applicationSets) childChanged(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*v1alpha1.Application)
	after, ok2 := e.ObjectNew.(*v1alpha1.Application)
	if !ok1 || !ok2 {
		return false
	}
	if !slices.Equal(ownerOf(before), ownerOf(after)) {
		s.wakeGenerator(after)
	}
	if len(ownerOf(after)) == 0 {
		return false
	}
	if generate.Edited(before, after) && !s.wrote(after) {
		s.mark(types.NamespacedName{Namespace: after.Namespace, Name: ownerOf(after)[0]})
		return true
	}
	return before.Status.Sync.Status != after.Status.Sync.Status || before.Status.Health.Status != after.Status.Health.Status
}

// noteWritten remembers what a set has just written, which is no news to it.
func (s *applicationSets) noteWritten(app *v1alpha1.Application) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written[client.ObjectKeyFromObject(app)] = app.ResourceVersion
}

// wrote reports whether a version of an Application is as its set wrote it. The
// event may come before the answer to the request: then the set is evaluated
// once more than it has to be.
func (s *applicationSets) wrote(app *v1alpha1.Application) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(app)
	version, ok := s.written[key]
	if ok {
		delete(s.written, key)
	}
	return ok && version == app.ResourceVersion
}

func (s *applicationSets) childDeleted(e event.DeleteEvent) bool {
	s.mu.Lock()
	delete(s.written, client.ObjectKeyFromObject(e.Object))
	s.mu.Unlock()
	s.wakeGenerator(e.Object)
	if owners := ownerOf(e.Object); len(owners) > 0 {
		s.mark(types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: owners[0]})
		return true
	}
	return false
}

func (s *applicationSets) mark(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state(key).dirty = true
}

// take reports whether the set's inputs changed since the last call.
func (s *applicationSets) take(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state(key)
	was := s.primed && (st.dirty || !st.retryAt.IsZero() && !s.opts.Now().Before(st.retryAt))
	if was {
		st.dirty, st.retryAt = false, time.Time{}
		s.moves.begin(key)
	}
	return was
}

// ready reports whether the members and the projects are known; else the set is
// woken when they are.
func (s *applicationSets) ready(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.primed {
		s.state(key).dirty = true
	}
	return s.primed
}

// untilDue is how long it is until the set is evaluated though nothing is
// heard; 0 is never.
func (s *applicationSets) untilDue(key types.NamespacedName) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.state(key).retryAt
	if due.IsZero() {
		return 0
	}
	return max(due.Sub(s.opts.Now()), time.Millisecond)
}

func (s *applicationSets) takeAsk(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state(key)
	ask := st.asks
	st.asks = false
	return ask
}

// wake evaluates a set again.
func (s *applicationSets) wake(key types.NamespacedName) {
	s.mark(key)
	s.wakes.add(key)
}

// wakes are the sets that are woken by others than their own events. Whoever
// wakes one never waits: the queue holds each set once, and what comes before it
// is there is kept.
type wakes struct {
	mu    sync.Mutex
	queue wakeQueue
	early map[types.NamespacedName]bool
}

type wakeQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// start is a source of the controller: it takes what is woken from now on.
func (w *wakes) start(_ context.Context, queue wakeQueue) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	for key := range w.early {
		queue.Add(reconcile.Request{NamespacedName: key})
	}
	w.early = nil
	return nil
}

func (w *wakes) add(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.Add(reconcile.Request{NamespacedName: key})
		return
	}
	if w.early == nil {
		w.early = map[types.NamespacedName]bool{}
	}
	w.early[key] = true
}

// wakeClusterUsers evaluates every set again that reads the list of members or
// waits for one.
func (s *applicationSets) wakeClusterUsers() {
	s.wakeAll(func(st *setState) bool { return st.usesClusters || st.refused })
}

// wakeFailed evaluates every set again of which a generator could not look.
func (s *applicationSets) wakeFailed() { s.wakeAll(func(st *setState) bool { return st.failed }) }

// wakeRefused evaluates every set again that waits for a project or a cluster.
func (s *applicationSets) wakeRefused() { s.wakeAll(func(st *setState) bool { return st.refused }) }

// prime lets the evaluations begin.
func (s *applicationSets) prime() {
	s.mu.Lock()
	s.primed = true
	s.mu.Unlock()
	s.wakeAll(func(st *setState) bool { return st.dirty })
}

func (s *applicationSets) wakeAll(concerned func(*setState) bool) {
	var keys []types.NamespacedName
	s.mu.Lock()
	for key, st := range s.states {
		if concerned(st) {
			keys = append(keys, key)
		}
	}
	s.mu.Unlock()
	for _, key := range keys {
		s.wake(key)
	}
}

// remember subscribes to what the set read, so that it is woken by exactly that.
func (s *applicationSets) remember(key types.NamespacedName, repos []rutter.Repo) {
	s.opts.Engine.Repos().Subscribe("appset/"+key.String(), repos, func(failed bool) {
		s.mu.Lock()
		st := s.state(key)
		st.asks = st.asks || failed // so that the failure shows, and not what was known before
		s.mu.Unlock()
		s.wake(key)
	})
}

// note records what else may wake the set; what turns out not to is taken back.
func (s *applicationSets) note(key types.NamespacedName, set *v1alpha1.ApplicationSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state(key)
	st.refused, st.failed, st.usesClusters = true, true, generate.UsesClusters(set)
}
