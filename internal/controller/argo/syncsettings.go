package argo

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/policy"
)

// applySyncing hands on what is set for all syncs, the flags of the process before
// argocd-cmd-params-cm, how managed objects are marked for others, and whose rights
// syncs use: when one of the last two changes, every Application is translated anew.
func (c *Controllers) applySyncing(ctx context.Context, cm, params *corev1.ConfigMap) error {
	all := maps.Clone(params.Data)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, c.opts.Params)
	syncing, problems := argo.ParseSyncSettings(all)
	tracking, more := argo.ParseTracking(cm)
	identities, wrong := argo.ParseImpersonation(cm)
	for _, p := range slices.Concat(problems, more) {
		c.opts.Logger.Warn("a setting is not acted on", "problem", p)
	}
	for _, p := range wrong {
		c.opts.Logger.Warn("a setting is not acted on as it is written", "problem", p)
	}
	c.opts.Engine.SetSyncing(syncing)
	c.settingsMu.Lock()
	changed := c.tracking != tracking || c.identities != identities
	c.tracking, c.identities = tracking, identities
	c.settingsMu.Unlock()
	if !changed {
		return nil
	}
	return c.retranslate(ctx, func(*v1alpha1.Application) bool { return true })
}

func (c *Controllers) trackingNow() rutter.Tracking {
	c.settingsMu.Lock()
	defer c.settingsMu.Unlock()
	return c.tracking
}

func (c *Controllers) identitiesNow() policy.Impersonation {
	c.settingsMu.Lock()
	defer c.settingsMu.Unlock()
	return c.identities
}

// Identity is the engine's question with whose rights a unit's calls are made.
func (c *Controllers) Identity(unit rutter.Unit, cluster rutter.ClusterInfo) (user string, err error) {
	return argo.Identity(unit, cluster, c.projects.get, c.identitiesNow())
}
