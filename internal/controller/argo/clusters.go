package argo

import (
	"context"
	"fmt"
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
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

const labelSecretType = "argocd.argoproj.io/secret-type"

// clusterIndex remembers which member each Secret declared.
type clusterIndex struct {
	mu      sync.Mutex
	servers map[types.NamespacedName]string
}

func newClusterIndex() *clusterIndex {
	return &clusterIndex{servers: map[types.NamespacedName]string{}}
}

// swap records the member of a Secret and returns the one it declared before.
func (x *clusterIndex) swap(key types.NamespacedName, server string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.servers[key]
	if server == "" {
		delete(x.servers, key)
	} else {
		x.servers[key] = server
	}
	return old
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
	if apierrors.IsNotFound(err) || secret.DeletionTimestamp != nil {
		if old := c.clusters.swap(req.NamespacedName, ""); old != "" {
			c.opts.Clusters.Remove(old)
			c.opts.Logger.Info("cluster removed", "secret", req.String(), "server", old)
			c.clustersChanged(old)
		}
		return reconcile.Result{}, nil
	}
	info, cred, err := argo.ParseCluster(&secret, c.opts.AllowExec)
	server := strings.TrimSuffix(info.Server, "/")
	if old := c.clusters.swap(req.NamespacedName, server); old != "" && old != server {
		c.opts.Clusters.Remove(old)
		c.clustersChanged(old)
	}
	if err == nil {
		err = c.opts.Clusters.Set(info, cred)
	}
	if err != nil {
		c.opts.Logger.Warn("cluster Secret cannot be used", "secret", req.String(), "err", err)
		if server == "" {
			return reconcile.Result{}, nil
		}
		c.opts.Clusters.SetBroken(info, fmt.Errorf("cluster Secret %s: %w", req, err))
	} else {
		c.opts.Logger.Info("cluster declared", "name", info.Name, "server", info.Server)
	}
	c.clustersChanged(server)
	return reconcile.Result{}, nil
}

// clustersChanged wakes the units that go to a member and the sets that list members.
func (c *Controllers) clustersChanged(string) {
	c.opts.Engine.RefreshAll(func(u rutter.Unit) bool { return true })
	c.sets.wakeClusterUsers()
}
