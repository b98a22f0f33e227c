package argo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// setOwner is the field manager of what ApplicationSets write.
const setOwner = client.FieldOwner("rutter-applicationset")

// carryOut writes what was decided: first the memory, without which nothing is
// deleted, as it says what was approved and how much went lately, then what grows and changes, then what goes. A failure of
// one stops no other.
func (s *applicationSets) carryOut(ctx context.Context, set *v1alpha1.ApplicationSet, before memory, o *outcome) {
	for _, c := range o.decision.Changes {
		if c.Err != nil && (c.Verb == generate.Refuse || c.Verb == generate.Hold) {
			o.refusals = append(o.refusals, c.Err)
		}
	}
	err := s.keep(ctx, set, before, o)
	if err != nil {
		o.failures = append(o.failures, failure{err: err})
	}
	if s.opts.Sets.DryRun {
		return
	}
	changes := o.decision.Changes
	s.writeAll(ctx, set, o, changes, func(c generate.Change) bool { return c.Verb == generate.Create || c.Verb == generate.Update })
	s.keepUp(ctx, set, o)
	if err != nil {
		return
	}
	s.writeAll(ctx, set, o, changes, func(c generate.Change) bool { return c.Verb == generate.Delete || c.Verb == generate.Release })
}

// keepUp writes to the Applications that stay what the set says of its deletion;
// what is deleted now needs that no more. The set is looked at again soon when it
// was guarded for that time.
func (s *applicationSets) keepUp(ctx context.Context, set *v1alpha1.ApplicationSet, o *outcome) {
	going := map[string]bool{}
	for _, c := range o.decision.Changes {
		if c.Verb == generate.Delete {
			going[c.Name] = true
		}
	}
	s.writeAll(ctx, set, o, o.decision.Upkeep, func(c generate.Change) bool { return !going[c.Name] })
	if o.decision.Freeing {
		o.requeue = earliest(o.requeue, moveWindow)
	}
}

// writeAll carries out those changes that are meant, side by side.
func (s *applicationSets) writeAll(ctx context.Context, set *v1alpha1.ApplicationSet, o *outcome, changes []generate.Change, meant func(generate.Change) bool) {
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(setWriters)
	for _, c := range changes {
		if !meant(c) {
			continue
		}
		g.Go(func() error {
			done, err := s.write(ctx, set, c)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				o.failures = append(o.failures, failure{verb: c.Verb, err: fmt.Errorf("%s application %q: %w", c.Verb, c.Name, err)})
			case done:
				o.written = append(o.written, c)
			default:
				o.requeue = earliest(o.requeue, releaseRetry)
			}
			return nil
		})
	}
	_ = g.Wait() // errors are kept in the outcome
	slices.SortFunc(o.failures, func(a, b failure) int { return strings.Compare(a.err.Error(), b.err.Error()) })
}

// write carries out one change; false when it has to wait.
func (s *applicationSets) write(ctx context.Context, set *v1alpha1.ApplicationSet, c generate.Change) (done bool, err error) {
	switch c.Verb {
	case generate.Create:
		app := c.Application.DeepCopy()
		app.ResourceVersion = ""
		err = s.client.Create(ctx, app, setOwner)
		if apierrors.IsAlreadyExists(err) {
			err = nil // the cache was behind; the event of that object wakes the set again
			s.mark(client.ObjectKeyFromObject(set))
		}
	case generate.Update:
		err = s.update(ctx, set, c)
	case generate.Delete:
		err = s.remove(ctx, c)
	case generate.Release:
		done, err = s.release(ctx, set, c)
		return s.decidedAnew(set, done, err)
	case generate.Keep, generate.Hold, generate.Refuse:
	}
	return s.decidedAnew(set, err == nil, err)
}

// errChanged says that a decision was about something else than what is there now.
var errChanged = errors.New("it was changed since that was decided")

// decidedAnew has a set evaluated again where a decision does not hold any more.
func (s *applicationSets) decidedAnew(set *v1alpha1.ApplicationSet, done bool, err error) (bool, error) {
	if !errors.Is(err, errChanged) && !apierrors.IsConflict(err) {
		return done, err
	}
	s.wake(client.ObjectKeyFromObject(set))
	return false, nil
}

// changedSince reports whether somebody wrote what a decision was about: another
// owner, or a person who holds it or edited it.
func changedSince(decided, live *v1alpha1.Application) bool {
	return decided.UID != live.UID || generate.Edited(decided, live) || !sameOwner(decided, live)
}

// update writes everything but the status and the operation, which are others'.
func (s *applicationSets) update(ctx context.Context, set *v1alpha1.ApplicationSet, c generate.Change) error {
	want := c.Application
	var live v1alpha1.Application
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(want), &live); err != nil {
		return fmt.Errorf("read it: %w", err)
	}
	if live.DeletionTimestamp != nil {
		return nil // since it was decided about
	}
	if changedSince(c.Live, &live) {
		return errChanged
	}
	// The answer is written into next, and want shares values with the cache.
	next, want := live.DeepCopy(), want.DeepCopy()
	next.Spec, next.Labels, next.Annotations = want.Spec, want.Labels, want.Annotations
	next.Finalizers, next.OwnerReferences = want.Finalizers, want.OwnerReferences
	patch := client.MergeFrom(&live)
	if !sameOwner(&live, next) {
		if err := s.stillThere(ctx, set, next); err != nil {
			return err
		}
		s.moves.adopt(live.UID, s.opts.Now()) // nobody adopts what is deleted with its set, which the cache may not know yet
		patch = client.MergeFromWithOptions(&live, client.MergeFromWithOptimisticLock{})
	}
	if err := s.client.Patch(ctx, next, patch, setOwner); err != nil {
		return err
	}
	s.noteWritten(next)
	return nil
}

// stillThere makes sure that what a set adopts is not given to one that is gone,
// whose Applications the garbage collector deletes. The server is asked.
func (s *applicationSets) stillThere(ctx context.Context, set *v1alpha1.ApplicationSet, next *v1alpha1.Application) error {
	if len(ownerOf(next)) == 0 {
		return nil
	}
	var now v1alpha1.ApplicationSet
	err := s.reader.Get(ctx, client.ObjectKeyFromObject(set), &now)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read its set: %w", err)
	case err != nil || now.UID != set.UID || now.DeletionTimestamp != nil:
		return errChanged
	}
	return nil
}

// remove deletes an Application, and without its finalizer where its workloads
// are to stay. It is the one that was decided about, or nothing is done.
func (s *applicationSets) remove(ctx context.Context, c generate.Change) error {
	live := &v1alpha1.Application{}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(c.Application), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if changedSince(c.Application, live) {
		return errChanged
	}
	if c.StripFinalizer {
		freed := withoutDeletion(live)
		if err := s.client.Patch(ctx, freed, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}), setOwner); err != nil {
			return client.IgnoreNotFound(err)
		}
		live = freed
	}
	uid, version := live.UID, live.ResourceVersion
	return client.IgnoreNotFound(s.client.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version}))
}
