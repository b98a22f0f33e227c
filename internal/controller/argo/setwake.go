package argo

import (
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// When a set is evaluated again: its own changes and those of its Applications
// mark it, and so does whoever knows that an answer to its generators changed.

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
	s.dirty[key] = true
}

// take reports whether the set's inputs changed since the last call.
func (s *applicationSets) take(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.retryAt[key]
	was := s.primed && (s.dirty[key] || !due.IsZero() && !s.opts.Now().Before(due))
	if was {
		delete(s.dirty, key)
		delete(s.retryAt, key)
		s.moves.begin(key)
	}
	return was
}

// untilDue is how long it is until the set is evaluated though nothing is
// heard; 0 is never.
func (s *applicationSets) untilDue(key types.NamespacedName) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.retryAt[key]
	if due.IsZero() {
		return 0
	}
	return max(due.Sub(s.opts.Now()), time.Millisecond)
}

func (s *applicationSets) takeAsk(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ask := s.asks[key]
	delete(s.asks, key)
	return ask
}

// wake evaluates a set again.
func (s *applicationSets) wake(key types.NamespacedName) {
	s.mark(key)
	s.wakes <- setEvent(key)
}

// wakeClusterUsers evaluates every set again that reads the list of members or
// waits for one.
func (s *applicationSets) wakeClusterUsers() { s.wakeAll(s.usesClusters, s.refused) }

// wakeFailed evaluates every set again of which a generator could not look.
func (s *applicationSets) wakeFailed() { s.wakeAll(s.failed) }

// prime lets the evaluations begin.
func (s *applicationSets) prime() {
	s.mu.Lock()
	s.primed = true
	s.mu.Unlock()
	s.wakeAll(s.dirty)
}

// wakeRefused evaluates every set again that waits for a project or a cluster.
func (s *applicationSets) wakeRefused() { s.wakeAll(s.refused) }

func (s *applicationSets) wakeAll(groups ...map[types.NamespacedName]bool) {
	keys := map[types.NamespacedName]bool{}
	s.mu.Lock()
	for _, g := range groups {
		maps.Copy(keys, g)
	}
	s.mu.Unlock()
	for key := range keys {
		s.wake(key)
	}
}

// remember subscribes to what the set read, so that it is woken by exactly that.
func (s *applicationSets) remember(key types.NamespacedName, repos []rutter.Repo) {
	s.opts.Engine.Repos().Subscribe("appset/"+key.String(), repos, func(failed bool) {
		s.mu.Lock()
		s.asks[key] = s.asks[key] || failed // so that the failure shows, and not what was known before
		s.mu.Unlock()
		s.wake(key)
	})
}

// note records what else may wake the set; what turns out not to is taken back.
func (s *applicationSets) note(key types.NamespacedName, set *v1alpha1.ApplicationSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[key], s.failed[key] = true, true
	if generate.UsesClusters(set) {
		s.usesClusters[key] = true
	} else {
		delete(s.usesClusters, key)
	}
}

func (s *applicationSets) noteFailed(key types.NamespacedName, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if failed {
		s.failed[key] = true
	} else {
		delete(s.failed, key)
	}
}

func (s *applicationSets) noteRefused(key types.NamespacedName, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused {
		s.refused[key] = true
	} else {
		delete(s.refused, key)
	}
}
