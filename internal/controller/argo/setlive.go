package argo

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// concerned are the Applications that a decision about a set is about: its own,
// and those that have a name that it generates. All of the namespace are looked
// through only when some are given up, for one that has the same objects.
func (s *applicationSets) concerned(ctx context.Context, set *v1alpha1.ApplicationSet, r *generate.Result) ([]*v1alpha1.Application, error) {
	live, err := s.children(ctx, set, client.MatchingFields{ownerIndex: set.Name})
	if err != nil {
		return nil, err
	}
	own := make(map[string]bool, len(live))
	for _, app := range live {
		own[app.Name] = true
	}
	found := 0
	for _, app := range r.Applications {
		if own[app.Name] {
			found++
			continue
		}
		var other v1alpha1.Application
		switch err := s.client.Get(ctx, types.NamespacedName{Namespace: set.Namespace, Name: app.Name}, &other); {
		case err == nil:
			live = append(live, &other)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("read Application %s/%s: %w", set.Namespace, app.Name, err)
		}
	}
	if found < len(own) && r.Completeness == generate.Complete {
		return s.children(ctx, set)
	}
	return live, nil
}

// children are the Applications of a set's namespace, or those of them that
// match. They are the cache's own: what is decided about is not written to.
func (s *applicationSets) children(ctx context.Context, set *v1alpha1.ApplicationSet, match ...client.ListOption) ([]*v1alpha1.Application, error) {
	var list v1alpha1.ApplicationList
	if err := s.client.List(ctx, &list, append(match, client.InNamespace(set.Namespace), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list the Applications of ApplicationSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	live := make([]*v1alpha1.Application, 0, len(list.Items))
	for i := range list.Items {
		live = append(live, &list.Items[i])
	}
	return live, nil
}
