package e2e

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// TestPrune removes a manifest from Git: what it declared goes where prune is
// on, and is only reported where it is off.
func TestPrune(t *testing.T) {
	t.Parallel()
	w := start(t)
	pruning, reporting := unique("prune-on"), unique("prune-off")
	on, off := w.alpha.namespace(t, "prune-on"), w.alpha.namespace(t, "prune-off")
	r := w.repo(t, "prune", tree{"app/keep.yaml": configMap("keep", "1"), "app/drop.yaml": configMap("drop", "1") + "---\n" + service("drop")})
	w.create(t, application(pruning, "app", ""), vars{"REPO": r.url, "NS": on})
	w.create(t, `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: "${NAME}"}
spec:
  project: default
  source: {repoURL: "${REPO}", path: app}
  destination: {name: alpha, namespace: "${NS}"}
  syncPolicy: {automated: {selfHeal: true}}
`, vars{"REPO": r.url, "NS": off, "NAME": reporting})
	w.awaitSynced(t, pruning, "")
	w.awaitSynced(t, reporting, "")

	head := r.push(t, tree{"app/drop.yaml": ""})
	app := w.awaitSynced(t, pruning, head)
	if n := len(app.Status.Resources); n != 1 {
		t.Errorf("prune-on still lists %d resources", n)
	}
	gone(t, w.alpha, on, "drop", &corev1.ConfigMap{})
	gone(t, w.alpha, on, "drop", &corev1.Service{})
	get(t, w.alpha, on, "keep", &corev1.ConfigMap{})

	app = w.awaitApp(t, reporting, func(app *v1alpha1.Application) error { return onlyReported(app, head) })
	get(t, w.alpha, off, "drop", &corev1.ConfigMap{})
	get(t, w.alpha, off, "drop", &corev1.Service{})
	if len(app.Status.Conditions) > 0 {
		t.Errorf("prune-off shows %+v", app.Status.Conditions)
	}

	// An edit of what is left is still healed, and that prunes nothing either.
	w.alpha.patch(t, &corev1.ConfigMap{}, off, "keep", `{"data":{"value":"by hand"}}`)
	await(t, w.alpha.client, &corev1.ConfigMapList{}, off, "keep", func(c *corev1.ConfigMap) error {
		if c == nil || c.Data["value"] != "1" {
			return errors.New("it is not put back")
		}
		return nil
	})
	w.awaitApp(t, reporting, func(app *v1alpha1.Application) error { return onlyReported(app, head) })
	get(t, w.alpha, off, "drop", &corev1.ConfigMap{})
}

// onlyReported checks that both objects named drop are shown as to be pruned.
func onlyReported(app *v1alpha1.Application, head string) error {
	if app.Status.Sync.Revision != head || app.Status.Sync.Status != "OutOfSync" {
		return fmt.Errorf("is %s at %s", app.Status.Sync.Status, app.Status.Sync.Revision)
	}
	extra := 0
	for _, res := range app.Status.Resources {
		if res.Name == "drop" && res.RequiresPruning && res.Status == "OutOfSync" {
			extra++
		} else if res.Status != "Synced" || res.RequiresPruning {
			return fmt.Errorf("%s %s is %s", res.Kind, res.Name, res.Status)
		}
	}
	if extra != 2 {
		return fmt.Errorf("%d resources are shown as to be pruned, wanted 2", extra)
	}
	return nil
}
