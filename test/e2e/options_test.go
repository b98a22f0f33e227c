package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// TestReplaceOption puts the whole object in the place of what is there: what Git
// does not declare goes, but for what ties it to others.
func TestReplaceOption(t *testing.T) {
	t.Parallel()
	w := start(t)
	app, all := unique("replace"), unique("replace-all")
	ns, nsAll := w.alpha.namespace(t, "replace"), w.alpha.namespace(t, "replace-all")
	r := w.repo(t, "replace", tree{
		"app/c.yaml": annotated(configMap("c", "1"), "sync-options", "Replace=true"), "app/d.yaml": configMap("d", "1"),
		"all/e.yaml": configMap("e", "1"),
	})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.create(t, application(all, "all", "    syncOptions: [Replace=true]\n"), vars{"REPO": r.url, "NS": nsAll})
	w.awaitSynced(t, app, "") // made where there was none
	w.awaitSynced(t, all, "")
	by := map[string]string{"c": ns, "d": ns, "e": nsAll}
	uids := map[string]string{}
	for name, ns := range by {
		w.alpha.patch(t, &corev1.ConfigMap{}, ns, name, `{"data":{"extra":"by hand"},"metadata":{"finalizers":["example.com/keep"]}}`)
		uids[name] = string(get(t, w.alpha, ns, name, &corev1.ConfigMap{}).UID)
	}
	commit := r.push(t, tree{
		"app/c.yaml": annotated(configMap("c", "2"), "sync-options", "Replace=true"), "app/d.yaml": configMap("d", "2"), "all/e.yaml": configMap("e", "2"),
	})
	w.awaitSynced(t, app, commit)
	w.awaitSynced(t, all, commit)
	for name, ns := range by {
		c := get(t, w.alpha, ns, name, &corev1.ConfigMap{})
		if _, extra := c.Data["extra"]; c.Data["value"] != "2" || extra != (name == "d") || string(c.UID) != uids[name] || len(c.Finalizers) != 1 {
			t.Errorf("%s is %v with finalizers %v; replaced is what asks for it, and not made anew", name, c.Data, c.Finalizers)
		}
	}
}

// TestForceOption deletes and creates again what cannot be changed in place, where
// the object or the sync asks for it, and never a Namespace.
func TestForceOption(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("force")
	ns := w.alpha.namespace(t, "force")
	own := unique("force-own")
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + own + "\n"
	r := w.repo(t, "force", tree{
		"app/web.yaml": annotated(deployment("web", 0), "sync-options", "Force=true"), "app/api.yaml": deployment("api", 0),
		"app/job.yaml": annotated(suspendedJob("once", "a"), "sync-options", "Force=true,Replace=true"),
		"app/ns.yaml":  annotated(namespace, "sync-options", "Force=true,Replace=true"),
	})
	w.create(t, application(app, "app", "    retry: {limit: 0}\n"), vars{"REPO": r.url, "NS": ns})
	w.awaitApp(t, app, func(app *v1alpha1.Application) error { return inSync(app, "") })
	web, api := get(t, w.alpha, ns, "web", &appsv1.Deployment{}).UID, get(t, w.alpha, ns, "api", &appsv1.Deployment{}).UID
	once, ownUID := get(t, w.alpha, ns, "once", &batchv1.Job{}).UID, get(t, w.alpha, "", own, &corev1.Namespace{}).UID

	selects := func(name string) string {
		return strings.ReplaceAll(deployment(name, 0), "app: "+name, "app: other-"+name)
	}
	commit := r.push(t, tree{
		"app/web.yaml": annotated(selects("web"), "sync-options", "Force=true"), "app/job.yaml": annotated(suspendedJob("once", "b"), "sync-options", "Force=true,Replace=true"),
		"app/ns.yaml": annotated(strings.Replace(namespace, "metadata:\n", "metadata:\n  labels: {team: shop}\n", 1), "sync-options", "Force=true,Replace=true"),
	})
	w.awaitApp(t, app, func(app *v1alpha1.Application) error { return inSync(app, commit) })
	if got := get(t, w.alpha, ns, "web", &appsv1.Deployment{}); got.UID == web || got.Spec.Selector.MatchLabels["app"] != "other-web" {
		t.Errorf("the Deployment was not made anew: %v", got.Spec.Selector)
	}
	if got := get(t, w.alpha, ns, "once", &batchv1.Job{}); got.UID == once || got.Spec.Template.Spec.Containers[0].Args[0] != "b" {
		t.Error("the Job was not made anew")
	}
	if got := get(t, w.alpha, "", own, &corev1.Namespace{}); got.UID != ownUID || got.Labels["team"] != "shop" {
		t.Errorf("the Namespace was made anew, or not replaced: %v", got.Labels)
	}

	r.push(t, tree{"app/api.yaml": selects("api")})
	w.awaitCondition(t, app, "SyncError", "immutable")
	if got := get(t, w.alpha, ns, "api", &appsv1.Deployment{}).UID; got != api {
		t.Error("an object was made anew that nobody asked to")
	}
	w.editApp(t, app, `{"operation":{"sync":{"syncStrategy":{"hook":{"force":true}}}}}`)
	w.awaitApp(t, app, func(app *v1alpha1.Application) error { return inSync(app, "") })
	if got := get(t, w.alpha, ns, "api", &appsv1.Deployment{}); got.UID == api || got.Spec.Selector.MatchLabels["app"] != "other-api" {
		t.Errorf("the forced sync did not make it anew: %v", got.Spec.Selector)
	}
}

func inSync(app *v1alpha1.Application, commit string) error {
	if app.Status.Sync.Status != "Synced" || commit != "" && app.Status.Sync.Revision != commit || app.Operation != nil {
		return fmt.Errorf("is %s at %s", app.Status.Sync.Status, app.Status.Sync.Revision)
	}
	return nil
}

func suspendedJob(name, arg string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: %s
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: once
          image: registry.example/once:1
          args: [%q]
`, name, arg)
}

// TestValidateOption: a field that the kind does not have is an error that names it,
// unless the object or the application asks for no validation.
func TestValidateOption(t *testing.T) {
	t.Parallel()
	w := start(t)
	app, all := unique("validate"), unique("validate-all")
	ns, nsAll := w.alpha.namespace(t, "validate"), w.alpha.namespace(t, "validate-all")
	bad := strings.Replace(deployment("web", 0), "spec:\n  replicas", "spec:\n  nonsense: true\n  replicas", 1)
	bad = strings.Replace(bad, "        - name: web\n", "        - name: web\n          more: {nonsense: 1}\n", 1)
	r := w.repo(t, "validate", tree{"app/web.yaml": bad, "all/web.yaml": bad})
	w.create(t, application(app, "app", "    retry: {limit: 0}\n"), vars{"REPO": r.url, "NS": ns})
	w.create(t, application(all, "all", "    syncOptions: [Validate=false]\n"), vars{"REPO": r.url, "NS": nsAll})
	w.awaitCondition(t, app, "SyncError", "nonsense")
	w.awaitApp(t, all, func(app *v1alpha1.Application) error { return inSync(app, "") })
	commit := r.push(t, tree{"app/web.yaml": annotated(bad, "sync-options", "Validate=false")})
	w.awaitApp(t, app, func(app *v1alpha1.Application) error { return inSync(app, commit) })
	get(t, w.alpha, ns, "web", &appsv1.Deployment{})
}

// TestUnknownOption names, in a condition, the option that has no effect.
func TestUnknownOption(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("option")
	ns := w.alpha.namespace(t, "option")
	r := w.repo(t, "option", tree{"app/c.yaml": annotated(configMap("c", "1"), "sync-options", "CreateNamespace=true")})
	w.create(t, application(app, "app", "    syncOptions: [createNamespace=true]\n"), vars{"REPO": r.url, "NS": ns})
	w.awaitCondition(t, app, "UnsupportedFieldWarning", `spec.syncPolicy.syncOptions[0]: "createNamespace=true"`, "write CreateNamespace")
	w.awaitCondition(t, app, "UnsupportedFieldWarning", "ConfigMap/"+ns+"/c", `"CreateNamespace=true" has no effect on a single object`)
}

// TestPruneConfirm: what asks for a confirmation is removed after a person gave it,
// since the sync began, and nothing else waits for it.
func TestPruneConfirm(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("confirm")
	ns := w.alpha.namespace(t, "confirm")
	precious := annotated(configMap("precious", "1"), "sync-options", "Prune=confirm")
	r := w.repo(t, "confirm", tree{"app/c.yaml": configMap("c", "1"), "app/d.yaml": configMap("d", "1"), "app/precious.yaml": precious})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	asks := map[string]bool{}
	for _, res := range w.awaitSynced(t, app, "").Status.Resources {
		asks[res.Name] = res.RequiresDeletionConfirmation
	}
	if !asks["precious"] || asks["c"] {
		t.Errorf("requiresDeletionConfirmation: %v", asks)
	}
	w.editApp(t, app, `{"metadata":{"annotations":{"argocd.argoproj.io/deletion-approved":"2020-01-01T00:00:00Z"}}}`)
	commit := r.push(t, tree{"app/precious.yaml": "", "app/d.yaml": "", "app/c.yaml": configMap("c", "2")})
	w.awaitApp(t, app, func(app *v1alpha1.Application) error {
		op := app.Status.OperationState
		if op == nil || op.Phase != "Running" || !strings.Contains(op.Message, "waiting for pruning confirmation of ConfigMap/"+ns+"/precious") {
			return errors.New("no operation waits for the confirmation")
		}
		return nil
	})
	if err := holds("2")(get(t, w.alpha, ns, "c", &corev1.ConfigMap{})); err != nil {
		t.Errorf("what needs no confirmation has waited: %v", err)
	}
	gone(t, w.alpha, ns, "d", &corev1.ConfigMap{})
	get(t, w.alpha, ns, "precious", &corev1.ConfigMap{})
	w.editApp(t, app, fmt.Sprintf(`{"metadata":{"annotations":{"argocd.argoproj.io/deletion-approved":%q}}}`, time.Now().UTC().Format(time.RFC3339)))
	gone(t, w.alpha, ns, "precious", &corev1.ConfigMap{})
	w.awaitSynced(t, app, commit)
}

// TestOneOffSync: a sync of a person may be of another source, or of objects that it
// brings, with or without hooks.
func TestOneOffSync(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := unique("oneoff")
	ns := w.alpha.namespace(t, "oneoff")
	hook := annotated(strings.Replace(suspendedJob("hook", "a"), "  suspend: true\n", "", 1), "hook", "PreSync")
	r := w.repo(t, "oneoff", tree{"app/c.yaml": configMap("c", "1"), "app/hook.yaml": hook, "other/c.yaml": configMap("c", "other")})
	w.create(t, manualApp, vars{"REPO": r.url, "NS": ns, "NAME": name})
	w.awaitState(t, name, "OutOfSync", "Missing")
	ended := func(app *v1alpha1.Application) error {
		if op := app.Status.OperationState; app.Operation != nil || op == nil || op.Phase != "Succeeded" {
			return errors.New("the operation has not succeeded")
		}
		return nil
	}
	w.editApp(t, name, `{"operation":{"sync":{"syncStrategy":{"apply":{}}}}}`)
	app := w.awaitApp(t, name, ended)
	gone(t, w.alpha, ns, "hook", &batchv1.Job{})
	if op := app.Status.OperationState.Operation; op.Sync.SyncStrategy == nil || op.Sync.SyncStrategy.Apply == nil {
		t.Errorf("the strategy is not recorded: %+v", op.Sync)
	}
	w.awaitState(t, name, "Synced", "Healthy")

	w.editApp(t, name, `{"operation":{"sync":{"syncStrategy":{"apply":{}},"source":{"repoURL":"`+r.url+`","path":"other","targetRevision":"main"}}}}`)
	app = w.awaitApp(t, name, func(app *v1alpha1.Application) error {
		return errors.Join(ended(app), inState(app, "OutOfSync", "Healthy"))
	})
	if err := holds("other")(get(t, w.alpha, ns, "c", &corev1.ConfigMap{})); err != nil {
		t.Error(err)
	}
	if h := app.Status.History; len(h) != 2 || h[1].Source.Path != "other" || app.Status.OperationState.SyncResult.Source.Path != "other" {
		t.Errorf("the source is not recorded: %+v", h)
	}
	w.editApp(t, name, `{"operation":{"sync":{"syncStrategy":{"apply":{}},"manifests":["{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"},\"data\":{\"value\":\"local\"}}"]}}}`)
	w.awaitApp(t, name, func(app *v1alpha1.Application) error {
		return errors.Join(ended(app), holds("local")(get(t, w.alpha, ns, "c", &corev1.ConfigMap{})))
	})
}
