package daemon_test

import (
	"testing"

	"github.com/rutterhq/rutter/internal/preview"
)

func TestPlanTry(t *testing.T) {
	c := newPlanClone(t, planFleet())
	p := c.plan(nil)
	t.Log("\n" + preview.Text(p, preview.TextOptions{}))
	files := planFleet()
	c.commit(map[string]string{
		"bases/app/all.yaml":             replace(files["bases/app/all.yaml"], "app:1.0.0", "app:1.1.0"),
		"charts/web/values.yaml":         replace(files["charts/web/values.yaml"], "replicas: 2", "replicas: 0"),
		"apps/shop-7/kustomization.yaml": "",
		"system/monitoring/all.yaml":     "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: hunter3}\n",
		"platform/kustomization.yaml":    "resources: [monitoring.yaml]\ncommonAnnotations: {team: platform}\n",
	})
	p = c.plan(nil)
	t.Log("\n" + preview.Text(p, preview.TextOptions{}))
}
