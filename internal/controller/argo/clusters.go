package argo

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

const labelSecretType = "argocd.argoproj.io/secret-type"

// clusterIndex remembers which member each Secret declared.
type clusterIndex struct {
	mu       sync.Mutex
	declared map[types.NamespacedName]rutter.ClusterInfo
}

func newClusterIndex() *clusterIndex {
	return &clusterIndex{declared: map[types.NamespacedName]rutter.ClusterInfo{}}
}

// get returns the member that a Secret declared last.
func (x *clusterIndex) get(key types.NamespacedName) (rutter.ClusterInfo, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	info, ok := x.declared[key]
	return info, ok
}

// of returns a Secret that declares a server.
func (x *clusterIndex) of(server string) (types.NamespacedName, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, info := range x.declared {
		if info.Server == server {
			return key, true
		}
	}
	return types.NamespacedName{}, false
}

// set records the member of a Secret; one without a server forgets it.
func (x *clusterIndex) set(key types.NamespacedName, info rutter.ClusterInfo) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if info.Server == "" {
		delete(x.declared, key)
	} else {
		x.declared[key] = info
	}
}

func (c *Controllers) setupClusters(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("cluster").
		For(&corev1.Secret{}, builder.WithPredicates(c.secretsOf("cluster"))).
		Complete(reconcile.Func(c.reconcileCluster))
}

// secretsOf matches the Secrets of some types in the control plane's namespace.
// One that loses its label is seen once more, so that it can be taken back.
func (c *Controllers) secretsOf(kinds ...string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		if o.GetNamespace() != c.opts.Namespace {
			return false
		}
		for _, k := range kinds {
			if o.GetLabels()[labelSecretType] == k {
				return true
			}
		}
		return false
	})
}

// reconcileCluster declares, changes or takes back one member.
func (c *Controllers) reconcileCluster(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var secret corev1.Secret
	err := c.client.Get(ctx, req.NamespacedName, &secret)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read cluster Secret %s: %w", req, err)
	}
	old, known := c.clusters.get(req.NamespacedName)
	if apierrors.IsNotFound(err) || secret.DeletionTimestamp != nil {
		if known {
			c.clusters.set(req.NamespacedName, rutter.ClusterInfo{})
			if other, ok := c.clusters.of(old.Server); ok { // declared twice, as during a rotation
				return c.reconcileCluster(ctx, reconcile.Request{NamespacedName: other})
			}
			c.opts.Clusters.Remove(old.Server)
			c.opts.Logger.Info("cluster removed", "secret", req.String(), "name", old.Name, "server", old.Server)
			c.clustersChanged(old)
		}
		return reconcile.Result{}, nil
	}
	info, cred, err := argo.ParseCluster(&secret, c.opts.AllowExec)
	info.Server = strings.TrimSuffix(info.Server, "/")
	if info.Server == "" {
		// A Secret that cannot be read says nothing of whether the cluster is one of
		// the fleet: what it declared before stays a member, with the problem.
		if info = old; !known {
			c.opts.Logger.Warn("cluster Secret cannot be used", "secret", req.String(), "err", err)
			return reconcile.Result{}, nil
		}
	}
	c.clusters.set(req.NamespacedName, info)
	if known && old.Server != info.Server {
		c.opts.Clusters.Remove(old.Server)
		c.clustersChanged(old)
	}
	if err == nil {
		err = c.opts.Clusters.Set(info, cred)
	}
	if err != nil {
		c.opts.Logger.Warn("cluster Secret cannot be used", "secret", req.String(), "err", err)
		c.opts.Clusters.SetBroken(info, fmt.Errorf("cluster Secret %s: %w", req, err))
	} else {
		c.opts.Logger.Info("cluster declared", "name", info.Name, "server", info.Server)
	}
	c.clustersChanged(info)
	if known && reflect.DeepEqual(old, info) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, c.retranslate(ctx, func(app *v1alpha1.Application) bool {
		d := app.Spec.Destination
		return strings.TrimRight(d.Server, "/") == info.Server || d.Name != "" && d.Name == info.Name
	})
}

// clustersChanged wakes the units that go to a member and the sets that list members.
func (c *Controllers) clustersChanged(info rutter.ClusterInfo) {
	c.opts.Engine.RefreshAll(func(u rutter.Unit) bool {
		return u.Target.Server == info.Server || u.Target.Name != "" && u.Target.Name == info.Name
	})
	c.sets.wakeClusterUsers()
}
