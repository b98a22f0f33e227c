package argo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

const (
	// releaseRetry is when a hand-over that waits is looked at again though nothing
	// was heard of it.
	releaseRetry = time.Minute
	// moveWindow is how long an Application must have been unwanted before it is
	// deleted: what moves from one set to another is often written in two steps,
	// and the set that gives may be seen before the one that takes.
	moveWindow = 2 * time.Second
)

// siblings are the ApplicationSets of a namespace that are not being deleted.
func (s *applicationSets) siblings(ctx context.Context, namespace string) ([]string, error) {
	var list v1alpha1.ApplicationSetList
	if err := s.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ApplicationSets of namespace %s: %w", namespace, err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, nil
}

// noteGenerated keeps what a set generates for the others; an element with an
// error is one of them, as its last good state stays.
func (s *applicationSets) noteGenerated(set *v1alpha1.ApplicationSet, result generate.Result) {
	names := make([]string, 0, len(result.Elements))
	for i := range result.Elements {
		if name := result.Elements[i].Name; name != "" {
			names = append(names, name)
		}
	}
	s.moves.note(client.ObjectKeyFromObject(set), names, result.Completeness == generate.Complete)
}

// elsewhere names, for those of the live Applications that are the set's and
// that it does not generate, another set that does.
func (s *applicationSets) elsewhere(set *v1alpha1.ApplicationSet, live []*v1alpha1.Application) map[string]string {
	var out map[string]string
	key := client.ObjectKeyFromObject(set)
	for _, app := range live {
		owner := metav1.GetControllerOfNoCopy(app)
		if app.Namespace != set.Namespace || owner == nil || owner.Kind != "ApplicationSet" || owner.Name != set.Name || s.moves.generates(key, app.Name) {
			continue
		}
		if other := s.moves.generator(client.ObjectKeyFromObject(app), set.Name); other != "" {
			if out == nil {
				out = map[string]string{}
			}
			out[app.Name] = other
		}
	}
	return out
}

// staying are the live Applications without those that another set has and does
// not generate any more: what goes itself takes nothing over.
func (s *applicationSets) staying(set *v1alpha1.ApplicationSet, live []*v1alpha1.Application) []*v1alpha1.Application {
	key := client.ObjectKeyFromObject(set)
	return slices.DeleteFunc(slices.Clone(live), func(app *v1alpha1.Application) bool {
		for _, name := range ownerOf(app) {
			owner := types.NamespacedName{Namespace: app.Namespace, Name: name}
			if name != set.Name && s.moves.known(owner) && !s.moves.generates(owner, app.Name) && !s.moves.generates(key, app.Name) {
				return true
			}
		}
		return false
	})
}

// handOver completes a decision with what is known of the other sets of the
// namespace. What is not known of them yet may be a move, so deletions wait for it.
func (s *applicationSets) handOver(ctx context.Context, set *v1alpha1.ApplicationSet, o *outcome) error {
	key := client.ObjectKeyFromObject(set)
	siblings, err := s.siblings(ctx, set.Namespace)
	if err != nil {
		return err
	}
	s.askOwners(key, o.decision.Changes)
	s.retain(key, o.decision.Changes)
	s.postpone(key, siblings, o)
	return nil
}

// askOwners wakes the sets that have an Application which this one generates
// and they do not: they let it go, now that it is known who has it.
func (s *applicationSets) askOwners(key types.NamespacedName, changes []generate.Change) {
	asked := map[string]bool{}
	for _, c := range changes {
		if c.Verb != generate.Refuse || c.Application == nil || rutter.CodeOf(c.Err) != rutter.CodeConflict {
			continue
		}
		for _, owner := range ownerOf(c.Application) {
			other := types.NamespacedName{Namespace: key.Namespace, Name: owner}
			if owner != key.Name && !asked[owner] && s.moves.known(other) && !s.moves.generates(other, c.Name) {
				asked[owner] = true
				s.wake(other)
			}
		}
	}
}

// retain ends the hand-overs that the set has begun and does not want any more.
func (s *applicationSets) retain(key types.NamespacedName, changes []generate.Change) {
	wanted := map[rutter.UnitID]bool{}
	for _, c := range changes {
		if c.Verb == generate.Release {
			wanted[unitID(types.NamespacedName{Namespace: key.Namespace, Name: c.Name})] = true
		}
	}
	for _, id := range s.moves.releasedBy(key) {
		if !wanted[id] {
			s.moves.released(id)
			s.opts.Engine.Retain(id)
		}
	}
}

// postpone takes the deletions out of a decision while they could still turn
// out to be moves.
func (s *applicationSets) postpone(key types.NamespacedName, siblings []string, o *outcome) {
	names := map[string]bool{}
	for _, c := range o.decision.Changes {
		if c.Verb == generate.Delete {
			names[c.Name] = true
		}
	}
	if o.decision.Held != nil {
		for _, name := range o.decision.Held.Names {
			names[name] = false
		}
	}
	var others map[types.NamespacedName]bool
	if len(names) > 0 {
		others = s.others(key, siblings)
	}
	now := s.opts.Now()
	since, pending := s.moves.give(key, names, others, now)
	if pending != "" {
		o.requeue = earliest(o.requeue, releaseRetry)
		// Some of it may be moves: nobody is asked to approve what is not known to be so.
		o.unsure = o.unsure || o.decision.Held != nil
		o.decision.Held = nil
	}
	for i := range o.decision.Changes {
		c := &o.decision.Changes[i]
		if c.Verb != generate.Delete {
			continue
		}
		left := moveWindow - now.Sub(since[c.Name])
		switch {
		case pending != "":
			c.Verb, c.Reason = generate.Keep, c.Reason+fmt.Sprintf("; it stays until it is known whether ApplicationSet %s has it now", pending)
		case left > 0:
			c.Verb, c.Reason = generate.Keep, c.Reason+"; it stays for a moment, as another set may be about to have it"
			o.requeue = earliest(o.requeue, left)
		}
	}
}

// others are the sets of a namespace besides one, true where they are about to
// be evaluated.
func (s *applicationSets) others(key types.NamespacedName, siblings []string) map[types.NamespacedName]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	others := make(map[types.NamespacedName]bool, len(siblings))
	for _, name := range siblings {
		if other := (types.NamespacedName{Namespace: key.Namespace, Name: name}); other != key {
			others[other] = s.state(other).dirty
		}
	}
	return others
}

// release gives an Application up once the one that takes over has its objects;
// false when that is not so yet. The engine moves the marks on the objects, so
// that none of them has to be touched otherwise, and wakes the set when it has.
// It can be repeated from any point: what has been moved is no longer this
// Application's.
func (s *applicationSets) release(ctx context.Context, set *v1alpha1.ApplicationSet, c generate.Change) (bool, error) {
	namespace, name, _ := strings.Cut(c.To, "/")
	from := unitID(client.ObjectKeyFromObject(c.Application))
	to := types.NamespacedName{Namespace: namespace, Name: name}
	s.moves.releasing(from, client.ObjectKeyFromObject(set))
	done, err := s.opts.Engine.HandOver(from, unitID(to))
	if err != nil || !done {
		return false, err
	}
	var taker v1alpha1.Application
	if err := s.client.Get(ctx, to, &taker); err != nil {
		return false, fmt.Errorf("read Application %s, which takes over: %w", to, err)
	}
	if taker.DeletionTimestamp != nil {
		return false, nil
	}
	if err := s.remove(ctx, c); err != nil {
		return false, err
	}
	s.moves.released(from)
	s.opts.Logger.Info("application handed over", "from", c.Application.Namespace+"/"+c.Name, "to", c.To, "set", set.Namespace+"/"+set.Name)
	return true, nil
}

// handedOver is told of every unit of which the report may have changed: a set
// that hands it over goes on.
func (s *applicationSets) handedOver(id rutter.UnitID) {
	key, ok := s.moves.releaser(id)
	if !ok {
		return
	}
	s.mu.Lock()
	known := s.state(key).dirty
	s.mu.Unlock()
	if !known {
		s.wake(key)
	}
}

// wakeGenerator wakes the set that generates an Application which has another
// owner now, or is gone: it adopts it, or makes it again.
func (s *applicationSets) wakeGenerator(o client.Object) {
	owner := ""
	for _, name := range ownerOf(o) {
		owner = name
	}
	if set := s.moves.generator(client.ObjectKeyFromObject(o), owner); set != "" {
		s.wake(types.NamespacedName{Namespace: o.GetNamespace(), Name: set})
	}
}

// childCreated looks again at the sets of the namespace that are to delete
// something: it may be what the new Application has. Many that are made at one
// time are one look.
func (s *applicationSets) childCreated(e event.CreateEvent) bool {
	for _, key := range s.moves.nudge(e.Object.GetNamespace()) {
		time.AfterFunc(moveWindow/2, func() {
			s.moves.nudged(key)
			s.wake(key)
		})
	}
	return false
}

// ended is called after the evaluation of a set, and when a set goes: others
// may have waited for that.
func (s *applicationSets) ended(key types.NamespacedName) {
	for _, other := range s.moves.end(key) {
		if !strings.HasPrefix(other.Name, notASet) {
			s.wake(other)
		}
	}
}

// leaves is for a set that is being deleted: what it had may be another one's now.
func (s *applicationSets) leaves(key types.NamespacedName) {
	if s.moves.leave(key) {
		s.ended(key)
		s.wakeRefused()
	}
}

// fate is what becomes of the objects of an Application that is being deleted.
// When that is because its set is, keep says that they stay: that set preserves
// them, or another set generates the Application, makes it again and has them then.
// wait is how long it is not known yet.
//
// An Application that was deleted for itself is made again too, but with new
// objects, as whoever did that wanted.
//
// Whatever is deleted waits for a moment: an Application that is renamed in Git is
// deleted and made by the same sync, in any order.
func (s *applicationSets) fate(ctx context.Context, app *v1alpha1.Application) (keep bool, wait time.Duration, err error) {
	left := moveWindow - s.opts.Now().Sub(app.DeletionTimestamp.Time)
	name := client.ObjectKeyFromObject(app)
	if s.moves.adoptedBefore(app.UID, app.DeletionTimestamp.Time) && s.moves.generator(name, "") != "" {
		return true, 0, nil
	}
	owner, gone, preserves, err := s.ownerGone(ctx, app)
	if err != nil || !gone {
		return false, left, err
	}
	if preserves || s.moves.generator(name, owner) != "" {
		return true, 0, nil
	}
	siblings, err := s.siblings(ctx, app.Namespace)
	if err != nil {
		return false, 0, err
	}
	// Its owner is among them when another set has that name by now. No set has the
	// name of who asks here, so it is woken by no set's event, but looks again.
	asker := askerOf(name)
	_, pending := s.moves.give(asker, map[string]bool{app.Name: true}, s.others(asker, siblings), s.opts.Now())
	switch {
	case pending == "" && s.moves.generator(name, "") != "":
		return true, 0, nil
	case left > 0:
		return false, left, nil
	case pending != "":
		return false, moveWindow, nil
	}
	return false, 0, nil
}

// ownerGone names the set of an Application, and reports whether it is gone or
// going, and whether one that is going preserves the objects of its Applications:
// in the foreground the garbage collector comes before the set has seen to it. The
// server is asked: the cache may learn of the Application's deletion before it
// learns of the set's, which is the cause.
func (s *applicationSets) ownerGone(ctx context.Context, app *v1alpha1.Application) (name string, gone, preserves bool, err error) {
	owner := metav1.GetControllerOf(app)
	if owner == nil || owner.Kind != "ApplicationSet" {
		return "", false, false, nil
	}
	var set v1alpha1.ApplicationSet
	key := types.NamespacedName{Namespace: app.Namespace, Name: owner.Name}
	err = s.reader.Get(ctx, key, &set)
	switch {
	case apierrors.IsNotFound(err):
		return owner.Name, true, false, nil
	case err != nil:
		return "", false, false, fmt.Errorf("read ApplicationSet %s, which Application %s is of: %w", key, app.Name, err)
	}
	going := set.DeletionTimestamp != nil && set.UID == owner.UID
	return owner.Name, going || set.UID != owner.UID, going && generate.Preserves(&set), nil
}

// notASet begins the names under which Applications wait for sets.
const notASet = "application/"

func askerOf(app types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: app.Namespace, Name: notASet + app.Name}
}

// forgetApplication is for an Application that is gone.
func (s *applicationSets) forgetApplication(app types.NamespacedName) { s.moves.forget(askerOf(app)) }

// sameOwner reports whether two states of an Application have the same owner.
func sameOwner(a, b *v1alpha1.Application) bool {
	x, y := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	if x == nil || y == nil {
		return x == y
	}
	return x.UID == y.UID
}
