package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cli"
)

// terminate asks for the end of an operation as the reference's API does.
func (w *world) terminate(t *testing.T, name string) {
	t.Helper()
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: controlNamespace, Name: name}}
	patch := `[{"op":"test","path":"/status/operationState/phase","value":"Running"},{"op":"replace","path":"/status/operationState/phase","value":"Terminating"}]`
	if err := w.hub.client.Status().Patch(t.Context(), app, client.RawPatch("application/json-patch+json", []byte(patch))); err != nil {
		t.Fatalf("terminate: %v", err)
	}
}

func running(message string) func(*v1alpha1.Application) error {
	return func(app *v1alpha1.Application) error {
		if op := app.Status.OperationState; op == nil || op.Phase != "Running" || !strings.Contains(op.Message, message) {
			return fmt.Errorf("no operation runs with %q", message)
		}
		return nil
	}
}

func ended(phase, message string) func(*v1alpha1.Application) error {
	return func(app *v1alpha1.Application) error {
		op := app.Status.OperationState
		if op == nil || op.Phase != phase || !strings.Contains(op.Message, message) || op.FinishedAt == nil || app.Operation != nil {
			return fmt.Errorf("no operation has ended as %s with %q", phase, message)
		}
		return nil
	}
}

// TestTerminate ends an operation that waits for a hook, for a retry or for a
// confirmation. It is not begun again by itself, and its running hook is deleted.
func TestTerminate(t *testing.T) {
	t.Parallel()
	w := start(t)
	stuck := annotated(strings.Replace(suspendedJob("stuck", "a"), "      restartPolicy", "      nodeSelector: {nowhere: \"true\"}\n      restartPolicy", 1), "hook", "PreSync")
	stuck = strings.Replace(stuck, "  suspend: true\n", "", 1)
	precious := annotated(configMap("precious", "1"), "sync-options", "Prune=confirm")
	bad := strings.Replace(configMap("bad", "1"), "\ndata:", "\ndota:", 1)
	for name, tc := range map[string]struct {
		first, then, mended tree
		waits               string
	}{
		"hook":         {tree{"app/c.yaml": configMap("c", "1")}, tree{"app/c.yaml": configMap("c", "2"), "app/stuck.yaml": stuck}, tree{"app/stuck.yaml": ""}, "waiting for"},
		"retry":        {tree{"app/c.yaml": configMap("c", "1")}, tree{"app/bad.yaml": bad}, tree{"app/bad.yaml": ""}, "Retrying attempt #1"},
		"confirmation": {tree{"app/c.yaml": configMap("c", "1"), "app/precious.yaml": precious}, tree{"app/precious.yaml": ""}, tree{"app/precious.yaml": precious}, "waiting for pruning confirmation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := unique("terminate-" + name)
			ns := w.alpha.namespace(t, "terminate")
			r := w.repo(t, app, tc.first)
			w.create(t, application(app, "app", "    retry: {limit: 3, backoff: {duration: 1h, maxDuration: 1h}}\n"), vars{"REPO": r.url, "NS": ns})
			w.awaitSynced(t, app, "")
			r.push(t, tc.then)
			w.awaitApp(t, app, running(tc.waits))
			begun := time.Now()
			w.terminate(t, app)
			done := w.awaitApp(t, app, ended("Failed", "Operation terminated"))
			t.Logf("ended after %s", time.Since(begun).Round(time.Millisecond))
			gone(t, w.alpha, ns, "stuck", &batchv1.Job{})
			time.Sleep(time.Second) // nothing is to happen, which has no event to wait for
			var now v1alpha1.Application
			if now = *get(t, w.hub, controlNamespace, app, &v1alpha1.Application{}); !now.Status.OperationState.StartedAt.Equal(&done.Status.OperationState.StartedAt) {
				t.Errorf("the operation was begun again: %+v", now.Status.OperationState)
			}
			commit := r.push(t, tc.mended)
			w.awaitApp(t, app, func(app *v1alpha1.Application) error { return inSync(app, commit) })
		})
	}
}

// TestOperationField: taking the field away ends the operation, and another one in
// its place is carried out after it.
func TestOperationField(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := unique("field")
	ns := w.alpha.namespace(t, "field")
	stuck := strings.Replace(deployment("stuck", 1), "    spec:\n", "    spec:\n      nodeSelector: {nowhere: \"true\"}\n", 1)
	r := w.repo(t, "field", tree{"app/stuck.yaml": stuck, "app/last.yaml": annotated(configMap("last", "1"), "sync-wave", "1")})
	w.create(t, manualApp, vars{"REPO": r.url, "NS": ns, "NAME": name})
	w.awaitState(t, name, "OutOfSync", "Missing")
	w.editApp(t, name, `{"operation":{"initiatedBy":{"username":"ann"},"sync":{}}}`)
	w.awaitApp(t, name, running("waiting for healthy state"))
	w.editApp(t, name, `{"operation":null}`)
	w.awaitApp(t, name, ended("Failed", "Operation terminated"))

	w.editApp(t, name, `{"operation":{"initiatedBy":{"username":"bob"},"sync":{}}}`)
	w.awaitApp(t, name, running("waiting for healthy state"))
	w.editApp(t, name, `{"operation":{"initiatedBy":{"username":"eve"},"sync":{"resources":[{"kind":"ConfigMap","name":"last"}]}}}`)
	w.terminate(t, name)
	app := w.awaitApp(t, name, ended("Succeeded", ""))
	if by := app.Status.OperationState.Operation.InitiatedBy.Username; by != "eve" {
		t.Errorf("the operation that took the place of another one was not carried out, but that of %s", by)
	}
	get(t, w.alpha, ns, "last", &corev1.ConfigMap{})
}

// TestRetryState is how a retry is shown, and what it ends with (reference 2.1).
func TestRetryState(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("retry")
	ns := w.alpha.namespace(t, "retry")
	r := w.repo(t, "retry", tree{"app/bad.yaml": strings.Replace(configMap("bad", "1"), "\ndata:", "\ndota:", 1)})
	w.create(t, application(app, "app", "    retry: {limit: 1, backoff: {duration: 2s, factor: 1}}\n"), vars{"REPO": r.url, "NS": ns})
	op := w.awaitApp(t, app, running("Retrying attempt #1 at ")).Status.OperationState
	if op.RetryCount != 1 || op.FinishedAt == nil {
		t.Errorf("while it waits: retryCount %d, finishedAt %v", op.RetryCount, op.FinishedAt)
	}
	done := w.awaitApp(t, app, ended("Failed", "(retried 1 times).")).Status.OperationState
	if done.RetryCount != 1 || !done.StartedAt.Equal(&op.StartedAt) || done.Operation.Retry.Limit != 1 {
		t.Errorf("at the end: %+v", done)
	}
	w.awaitCondition(t, app, "SyncError", "Failed last sync attempt to "+done.SyncResult.Revision)
}

// TestNamespaceMetadata: what is managed of the target namespace is one part of it;
// a change makes the application OutOfSync, and what others put there stays.
func TestNamespaceMetadata(t *testing.T) {
	t.Parallel()
	w := start(t)
	name, ns := unique("nsmeta"), unique("nsmeta-target")
	owner := unique("nsmeta-owner")
	r := w.repo(t, "nsmeta", tree{"app/c.yaml": configMap("c", "1"),
		"own/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + ns + "\n  labels: {owner: git}\n"})
	w.create(t, application(owner, "own", ""), vars{"REPO": r.url, "NS": "default"})
	w.awaitSynced(t, owner, "")
	manual := strings.Replace(manualApp, "namespace: \"${NS}\"}\n", `namespace: "${NS}"}
  syncPolicy: {syncOptions: [CreateNamespace=true], managedNamespaceMetadata: {labels: {team: a, gone: soon}}}
`, 1)
	w.create(t, manual, vars{"REPO": r.url, "NS": ns, "NAME": name})
	w.awaitState(t, name, "OutOfSync", "Missing")
	w.editApp(t, name, `{"operation":{"sync":{"syncOptions":["CreateNamespace=true"]}}}`)
	w.awaitApp(t, name, func(app *v1alpha1.Application) error { return inSync(app, "") })
	w.editApp(t, name, `{"spec":{"syncPolicy":{"managedNamespaceMetadata":{"labels":{"team":"b","gone":null}}}}}`)
	app := w.awaitApp(t, name, func(app *v1alpha1.Application) error { return inState(app, "OutOfSync", "Healthy") })
	if m := app.Status.OperationState.SyncResult.ManagedNamespaceMetadata; m == nil || m.Labels["team"] != "a" {
		t.Errorf("the result does not hold the metadata that was synced: %v", m)
	}
	w.editApp(t, name, `{"operation":{"sync":{}}}`)
	w.awaitApp(t, name, func(app *v1alpha1.Application) error { return inSync(app, "") })
	labels := get(t, w.alpha, "", ns, &corev1.Namespace{}).Labels
	if _, kept := labels["gone"]; labels["team"] != "b" || kept || labels["owner"] != "git" || labels["rutter.dev/unit"] == "" {
		t.Errorf("the namespace has labels %v", labels)
	}
	w.awaitSynced(t, owner, "")
}

// TestSyncSettings: a time limit for syncs and pauses between repairs are set in
// argocd-cmd-params-cm.
func TestSyncSettings(t *testing.T) {
	p := borrow(t)
	p.declare(t)
	p.configure(t, "argocd-cmd-params-cm", map[string]string{"controller.sync.timeout.seconds": "4", "controller.self.heal.backoff.timeout.seconds": "3"})
	p.start(t)
	app, slow := unique("settings"), unique("settings-slow")
	ns := p.alpha.namespace(t, "settings")
	stuck := strings.Replace(deployment("stuck", 1), "    spec:\n", "    spec:\n      nodeSelector: {nowhere: \"true\"}\n", 1)
	r := p.repo(t, app, tree{"app/c.yaml": configMap("c", "1"), "slow/stuck.yaml": stuck, "slow/last.yaml": annotated(configMap("last", "1"), "sync-wave", "1")})
	p.create(t, application(slow, "slow", ""), vars{"REPO": r.url, "NS": ns})
	p.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	done := p.awaitApp(t, slow, ended("Failed", "Operation terminated: it took longer than controller.sync.timeout.seconds")).Status.OperationState
	if d := done.FinishedAt.Sub(done.StartedAt.Time); d < 3*time.Second || d > 20*time.Second {
		t.Errorf("it ended after %s", d)
	}
	p.awaitSynced(t, app, "")
	heal := func() time.Duration {
		begun := time.Now()
		p.alpha.patch(t, &corev1.ConfigMap{}, ns, "c", `{"data":{"value":"by hand"}}`)
		await(t, p.alpha.client, &corev1.ConfigMapList{}, ns, "c", holds("1"))
		return time.Since(begun)
	}
	first := heal()
	p.awaitSynced(t, app, "")
	second := heal()
	if first > second || second < 1500*time.Millisecond {
		t.Errorf("repaired after %s and %s: the second one waits three seconds since the first", first, second)
	}
	count := p.awaitSynced(t, app, "").Status.OperationState.Operation.Sync.AutoHealAttemptsCount
	if count != 1 {
		t.Errorf("autoHealAttemptsCount is %d", count)
	}
}

// declare registers the member with a plane.
func (p *plane) declare(t *testing.T) {
	t.Helper()
	secret, err := cli.ClusterSecret(controlNamespace, "alpha", p.alpha.rest)
	if err == nil {
		err = p.hub.client.Create(t.Context(), secret)
	}
	if err != nil {
		t.Fatalf("register the member: %v", err)
	}
}

// configure sets a ConfigMap of the control plane until the test ends.
func (p *plane) configure(t *testing.T, name string, data map[string]string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: controlNamespace, Name: name}}
	if err := p.hub.client.Delete(t.Context(), cm); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: controlNamespace, Name: name}, Data: data}
	if err := p.hub.client.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.hub.client.Delete(context.Background(), cm) })
}

// TestTrackingSchemes is scenario B48: the way in which objects are marked for others
// is switched, and an application that is deleted before its next sync takes all its
// objects with it.
func TestTrackingSchemes(t *testing.T) {
	p := borrow(t)
	p.declare(t)
	p.configure(t, "argocd-cm", map[string]string{"application.resourceTrackingMethod": "label", "application.instanceLabelKey": "example.com/app", "installationID": "one"})
	p.start(t)
	app, other := unique("tracking"), unique("tracking-other")
	ns := p.alpha.namespace(t, "tracking")
	r := p.repo(t, app, tree{"app/c.yaml": configMap("c", "1"), "app/d.yaml": configMap("d", "1"), "other/e.yaml": configMap("e", "1")})
	finalizer := func(name, path string) string {
		return strings.Replace(application(name, path, ""), "metadata:\n", "metadata:\n  finalizers: [resources-finalizer.argocd.argoproj.io]\n", 1)
	}
	p.create(t, finalizer(app, "app"), vars{"REPO": r.url, "NS": ns})
	p.create(t, finalizer(other, "other"), vars{"REPO": r.url, "NS": ns})
	p.awaitSynced(t, app, "")
	p.awaitSynced(t, other, "")
	c := get(t, p.alpha, ns, "c", &corev1.ConfigMap{})
	if c.Labels["example.com/app"] != app || c.Annotations["argocd.argoproj.io/installation-id"] != "one" {
		t.Errorf("labels %v, annotations %v", c.Labels, c.Annotations)
	}
	p.editApp(t, app, `{"spec":{"syncPolicy":{"automated":null}}}`) // nothing is sent by itself from here on
	p.awaitSynced(t, app, "")
	// What carries the mark of another installation is not ours to remove.
	p.alpha.patch(t, &corev1.ConfigMap{}, ns, "d", `{"metadata":{"annotations":{"argocd.argoproj.io/installation-id":"two"}}}`)
	commit := r.push(t, tree{"app/d.yaml": ""})
	p.editApp(t, app, `{"operation":{"sync":{"prune":true}}}`)
	p.awaitSynced(t, app, commit)
	get(t, p.alpha, ns, "d", &corev1.ConfigMap{})
	p.configure(t, "argocd-cm", map[string]string{"application.resourceTrackingMethod": "annotation"})
	await(t, p.alpha.client, &corev1.ConfigMapList{}, ns, "e", func(c *corev1.ConfigMap) error {
		if c == nil || c.Labels["example.com/app"] != "" || c.Annotations["argocd.argoproj.io/installation-id"] != "" {
			return errors.New("the marks of the old scheme are still there")
		}
		return nil
	})
	if err := p.hub.client.Delete(t.Context(), &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: controlNamespace, Name: app}}); err != nil {
		t.Fatal(err)
	}
	p.awaitGone(t, app)
	gone(t, p.alpha, ns, "c", &corev1.ConfigMap{})
	p.awaitSynced(t, other, "")
}

// TestSyncCommand is rutter app sync with the reference's flags, wait and terminate-op.
func TestSyncCommand(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := unique("command")
	ns := w.alpha.namespace(t, "command")
	hook := annotated(suspendedJob("hook", "a"), "hook", "PreSync")
	r := w.repo(t, "command", tree{"app/c.yaml": configMap("c", "1"), "app/d.yaml": configMap("d", "1"), "app/hook.yaml": hook})
	w.create(t, manualApp, vars{"REPO": r.url, "NS": ns, "NAME": name})
	w.awaitState(t, name, "OutOfSync", "Missing")
	run := func(want int, says string, args ...string) {
		t.Helper()
		if code, out := w.rutter(t, args...); code != want || !strings.Contains(out, says) {
			t.Fatalf("rutter %v: exit %d\n%s", args, code, out)
		}
	}
	run(0, "Succeeded", "app", "sync", name, "--resource", "!:ConfigMap:d", "--timeout", "60")
	get(t, w.alpha, ns, "c", &corev1.ConfigMap{})
	gone(t, w.alpha, ns, "d", &corev1.ConfigMap{})
	run(0, "Succeeded", "app", "sync", name, "--strategy", "apply", "--replace", "--apply-out-of-sync-only", "--retry-limit", "2", "--timeout", "60s")
	get(t, w.alpha, ns, "d", &corev1.ConfigMap{})
	gone(t, w.alpha, ns, "hook", &batchv1.Job{})
	run(0, "Synced, Healthy", "app", "wait", name, "--timeout", "60")
	run(2, "no operation is in progress", "app", "terminate-op", name)
	run(0, "sync requested", "app", "sync", name, "--async")
	w.awaitApp(t, name, running("waiting for"))
	run(0, "terminating", "app", "terminate-op", name)
	w.awaitApp(t, name, ended("Failed", "Operation terminated"))
	gone(t, w.alpha, ns, "hook", &batchv1.Job{})
}
