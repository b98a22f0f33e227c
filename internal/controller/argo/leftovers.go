package argo

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

// leaveBehind writes down what an Application leaves at a cluster that is no
// longer one of the fleet, before it is let go. Where that may not be written, the
// log has to do.
func (a *applications) leaveBehind(ctx context.Context, app *v1alpha1.Application) error {
	left := argo.LeftBy(app, a.opts.Now())
	a.events.note(app, corev1.EventTypeWarning, "ClusterGone", fmt.Sprintf(
		"released, since its cluster %s is not one of the fleet any more: %d objects are left there; see rutter cluster leftovers", left.Cluster, left.Count))
	var stored corev1.ConfigMap
	err := a.reader.Get(ctx, types.NamespacedName{Namespace: a.opts.Namespace, Name: argo.LeftoversName(left.Cluster)}, &stored)
	missing := apierrors.IsNotFound(err)
	if err == nil || missing {
		next := &stored
		if missing {
			next = argo.NewLeftovers(a.opts.Namespace, left.Cluster)
		}
		if err = left.Write(next); err != nil {
			return fmt.Errorf("write down what Application %s/%s leaves: %w", app.Namespace, app.Name, err)
		}
		if missing {
			err = a.client.Create(ctx, next, FieldOwner)
		} else {
			err = a.client.Update(ctx, next, FieldOwner)
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		a.opts.Logger.Warn("what is left at a cluster that is gone may not be written down", "application", app.Namespace+"/"+app.Name, "cluster", cmp.Or(left.Cluster, "?"), "objects", left.Count, "err", err)
	case err != nil:
		return fmt.Errorf("write down what Application %s/%s leaves at cluster %s: %w", app.Namespace, app.Name, left.Cluster, err)
	}
	return nil
}
