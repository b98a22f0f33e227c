package argo

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// setOwner is the field manager of what ApplicationSets write.
const setOwner = client.FieldOwner("rutter-applicationset")

func isTemplated(s string) bool { return strings.Contains(s, "{{") }

// check refuses generated Applications whose project or destination does not
// exist; the others go on (reference 5.11). What exists already stays as it is.
// It reports whether it refused any.
func (s *applicationSets) check(changes []generate.Change) (refused bool) {
	for i := range changes {
		c := &changes[i]
		if c.Verb != generate.Create && c.Verb != generate.Update {
			continue
		}
		if err := s.valid(c.Application); err != nil {
			c.Verb, c.Err, c.Reason = generate.Refuse, err, err.Error()
			refused = true
		}
	}
	return refused
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

func (s *applicationSets) valid(app *v1alpha1.Application) error {
	project := app.Spec.Project
	if project == "" {
		project = "default"
	}
	if _, ok := s.projects.get(project); !ok && project != "default" {
		return rutter.Errorf(rutter.CodeNotFound, "application %q: project %q does not exist", app.Name, project)
	}
	d := app.Spec.Destination
	if _, err := s.opts.Clusters.Lookup(rutter.Target{Server: d.Server, Name: d.Name}); err != nil {
		return fmt.Errorf("application %q: spec.destination: %w", app.Name, err)
	}
	return nil
}

// carryOut writes the changes side by side and returns what failed; a failure
// of one stops no other.
func (s *applicationSets) carryOut(ctx context.Context, set *v1alpha1.ApplicationSet, changes []generate.Change) []error {
	errs := make([]error, len(changes))
	var g errgroup.Group
	g.SetLimit(setWriters)
	for i, c := range changes {
		switch c.Verb {
		case generate.Create, generate.Update, generate.Delete:
			g.Go(func() error { errs[i] = s.write(ctx, set, c); return nil })
		case generate.Refuse:
			errs[i] = c.Err
		case generate.Keep, generate.Hold, generate.Release: // hand-overs are not asked for
		}
	}
	_ = g.Wait() // errors are kept by change
	var failed []error
	for _, err := range errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

func (s *applicationSets) write(ctx context.Context, set *v1alpha1.ApplicationSet, c generate.Change) error {
	var err error
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
		err = s.update(ctx, c.Application)
	case generate.Delete:
		err = s.remove(ctx, c)
	case generate.Keep, generate.Hold, generate.Refuse, generate.Release:
	}
	if err != nil {
		return fmt.Errorf("%s application %q: %w", c.Verb, c.Name, err)
	}
	return nil
}

// update writes everything but the status and the operation, which are others'.
func (s *applicationSets) update(ctx context.Context, want *v1alpha1.Application) error {
	var live v1alpha1.Application
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(want), &live); err != nil {
		return fmt.Errorf("read it: %w", err)
	}
	next := live.DeepCopy()
	next.Spec, next.Labels, next.Annotations = want.Spec, want.Labels, want.Annotations
	next.Finalizers, next.OwnerReferences = want.Finalizers, want.OwnerReferences
	return s.client.Patch(ctx, next, client.MergeFrom(&live), setOwner)
}

// remove deletes an Application. Its workloads stay when the set says so, or
// when its cluster is no longer a member and nothing could be cleaned up there.
func (s *applicationSets) remove(ctx context.Context, c generate.Change) error {
	app := c.Application
	d := app.Spec.Destination
	_, lookup := s.opts.Clusters.Lookup(rutter.Target{Server: d.Server, Name: d.Name})
	if c.StripFinalizer || rutter.CodeOf(lookup) == rutter.CodeNotFound {
		if err := s.client.Patch(ctx, withoutCascade(app), client.MergeFrom(app), setOwner); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("take off its finalizer: %w", err)
		}
	}
	uid := app.UID
	err := s.client.Delete(ctx, app, client.Preconditions{UID: &uid})
	return client.IgnoreNotFound(err)
}

func countWrites(changes []generate.Change) int {
	n := 0
	for _, c := range changes {
		if c.Verb == generate.Create || c.Verb == generate.Update || c.Verb == generate.Delete {
			n++
		}
	}
	return n
}
