package argo

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter/internal/dialect/argo"
)

// applyRemoval takes in what is set about removing objects.
func (c *Controllers) applyRemoval(cm *corev1.ConfigMap) {
	s, problems := argo.ParseRemoval(cm)
	for _, p := range problems {
		c.opts.Logger.Warn("a setting is not acted on", "problem", p)
	}
	c.settingsMu.Lock()
	defer c.settingsMu.Unlock()
	c.removal = s
}

func (c *Controllers) clusterGoneWaits() bool {
	c.settingsMu.Lock()
	defer c.settingsMu.Unlock()
	return c.removal.WaitForCluster
}
