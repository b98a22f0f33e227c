package argo

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

// applyRemoval takes in what is set about removing objects.
func (c *Controllers) applyRemoval(ctx context.Context, cm *corev1.ConfigMap) error {
	s, problems := argo.ParseRemoval(cm)
	for _, p := range problems {
		c.opts.Logger.Warn("a setting is not acted on", "problem", p)
	}
	c.settingsMu.Lock()
	changed := !reflect.DeepEqual(c.removal, s)
	c.removal = s
	c.settingsMu.Unlock()
	if !changed {
		return nil
	}
	return c.retranslate(ctx, func(*v1alpha1.Application) bool { return true })
}

// pruneBudget is what is set for all Applications; nil is the default.
func (c *Controllers) pruneBudget() *rutter.Budget {
	c.settingsMu.Lock()
	defer c.settingsMu.Unlock()
	return c.removal.PruneBudget
}

func (c *Controllers) clusterGoneWaits() bool {
	c.settingsMu.Lock()
	defer c.settingsMu.Unlock()
	return c.removal.WaitForCluster
}
