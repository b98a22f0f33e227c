package argo

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// retainProject keeps a project that an Application refers to from going before
// it: what the project allows is needed to delete the Application's objects. The
// finalizer is the reference's (2.9).
func (c *Controllers) retainProject(ctx context.Context, name string) {
	var project v1alpha1.AppProject
	key := types.NamespacedName{Namespace: c.opts.Namespace, Name: name}
	if err := c.client.Get(ctx, key, &project); err != nil || project.DeletionTimestamp != nil || slices.Contains(project.Finalizers, finalizer) {
		return
	}
	if last, asked := c.retained.Swap(project.UID, project.ResourceVersion); asked && last == project.ResourceVersion {
		return // the cache is behind, or it may not be done
	}
	next := project.DeepCopy()
	next.Finalizers = append(next.Finalizers, finalizer)
	err := c.client.Patch(ctx, next, client.MergeFromWithOptions(&project, client.MergeFromWithOptimisticLock{}), FieldOwner)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		c.opts.Logger.Warn("a project may be deleted before its applications: its finalizer cannot be set", "project", name, "err", err)
	}
}

// releaseProjects lets the projects go that are being deleted and that no
// Application refers to any more.
func (c *Controllers) releaseProjects(ctx context.Context) error {
	var projects v1alpha1.AppProjectList
	if err := c.client.List(ctx, &projects, client.InNamespace(c.opts.Namespace)); err != nil {
		return fmt.Errorf("list AppProjects: %w", err)
	}
	for i := range projects.Items {
		p := &projects.Items[i]
		if p.DeletionTimestamp == nil || !slices.Contains(p.Finalizers, finalizer) {
			continue
		}
		users, err := c.usersOf(ctx, p.Name)
		if err != nil {
			return err
		}
		if len(users) > 0 {
			c.apps.events.note(p, corev1.EventTypeNormal, "Retained", fmt.Sprintf("goes when the %d Applications of it have gone: %s", len(users), few(users, shownNames, ", ")))
			continue
		}
		c.retained.Delete(p.UID)
		next := p.DeepCopy()
		next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == finalizer })
		err = c.client.Patch(ctx, next, client.MergeFromWithOptions(p, client.MergeFromWithOptimisticLock{}), FieldOwner)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove the finalizer of AppProject %s: %w", p.Name, err)
		}
	}
	return nil
}

// usersOf are the Applications of a project, by name.
func (c *Controllers) usersOf(ctx context.Context, project string) ([]string, error) {
	var list v1alpha1.ApplicationList
	if err := c.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil { // they are read only
		return nil, fmt.Errorf("list Applications: %w", err)
	}
	var users []string
	for i := range list.Items {
		if app := &list.Items[i]; app.Spec.Project == project && c.opts.manages(app.Namespace) {
			users = append(users, app.Namespace+"/"+app.Name)
		}
	}
	slices.Sort(users)
	return users, nil
}
