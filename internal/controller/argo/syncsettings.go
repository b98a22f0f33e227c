package argo

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

// applySyncing hands on what is set for all syncs, the flags of the process before
// argocd-cmd-params-cm, and how managed objects are marked for others: when that
// changes, every Application is translated anew.
func (c *Controllers) applySyncing(ctx context.Context, cm, params *corev1.ConfigMap) error {
	all := maps.Clone(params.Data)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, c.opts.Params)
	syncing, problems := argo.ParseSyncSettings(all)
	tracking, more := argo.ParseTracking(cm)
	for _, p := range append(problems, more...) {
		c.opts.Logger.Warn("a setting is not acted on", "problem", p)
	}
	c.opts.Engine.SetSyncing(syncing)
	c.settingsMu.Lock()
	changed := c.tracking != tracking
	c.tracking = tracking
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
