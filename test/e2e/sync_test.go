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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

const manualApp = `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: "${NAME}"}
spec:
  project: default
  source: {repoURL: "${REPO}", path: app, targetRevision: main}
  destination: {name: alpha, namespace: "${NS}"}
`

// TestManual syncs through the operation field and refreshes through the
// annotation; without either, nothing is written.
func TestManual(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := unique("manual")
	ns := w.alpha.namespace(t, "manual")
	r := w.repo(t, "manual", tree{"app/c.yaml": configMap("c", "1"), "app/d.yaml": configMap("d", "1")})
	v := vars{"REPO": r.url, "NS": ns, "NAME": name}
	w.create(t, manualApp, v)
	w.awaitState(t, name, "OutOfSync", "Missing")
	gone(t, w.alpha, ns, "c", &corev1.ConfigMap{})

	w.editApp(t, name, `{"operation":{"initiatedBy":{"username":"ann"},"sync":{}}}`)
	app := w.awaitApp(t, name, func(app *v1alpha1.Application) error {
		if app.Operation != nil {
			return errors.New("the operation field is still there")
		}
		return syncedAt(app, "")
	})
	if op := app.Status.OperationState; op == nil || op.Phase != "Succeeded" || op.Operation.InitiatedBy.Username != "ann" {
		t.Errorf("operationState is %+v", op)
	}
	if h := app.Status.History; len(h) != 1 || h[0].InitiatedBy.Username != "ann" {
		t.Errorf("history is %+v", h)
	}

	commit := r.commit(t, tree{"app/c.yaml": configMap("c", "2"), "app/d.yaml": ""}) // no webhook
	w.editApp(t, name, `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}}`)
	app = w.awaitApp(t, name, func(app *v1alpha1.Application) error {
		if app.Annotations["argocd.argoproj.io/refresh"] != "" {
			return errors.New("the refresh annotation is still there")
		}
		return inState(app, "OutOfSync", "Healthy")
	})
	if app.Status.Sync.Revision != commit {
		t.Errorf("refreshed to %s, wanted %s", app.Status.Sync.Revision, commit)
	}
	if err := holds("1")(get(t, w.alpha, ns, "c", &corev1.ConfigMap{})); err != nil {
		t.Errorf("a refresh has written: %v", err)
	}

	w.editApp(t, name, `{"operation":{"sync":{"prune":true,"revision":"`+commit+`"}}}`)
	w.awaitSynced(t, name, commit)
	gone(t, w.alpha, ns, "d", &corev1.ConfigMap{})
	if err := holds("2")(get(t, w.alpha, ns, "c", &corev1.ConfigMap{})); err != nil {
		t.Error(err)
	}
}

// TestIgnoreDifferences leaves a field to somebody else: not compared, and not
// undone when another field is repaired.
func TestIgnoreDifferences(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("ignore")
	ns := w.alpha.namespace(t, "ignore")
	r := w.repo(t, "ignore", tree{"app/web.yaml": deployment("web", 2)})
	w.create(t, application(app, "app", "  ignoreDifferences:\n    - {group: apps, kind: Deployment, jsonPointers: [/spec/replicas]}\n"), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, app, "")
	w.alpha.patch(t, &appsv1.Deployment{}, ns, "web", `{"spec":{"replicas":5}}`)
	w.alpha.patch(t, &appsv1.Deployment{}, ns, "web", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"registry.example/web:by-hand"}]}}}}`)
	d := await(t, w.alpha.client, &appsv1.DeploymentList{}, ns, "web", func(d *appsv1.Deployment) error {
		if d == nil || d.Spec.Template.Spec.Containers[0].Image != "registry.example/web:1.0.0" {
			return errors.New("the image is not put back")
		}
		return nil
	})
	if *d.Spec.Replicas != 5 {
		t.Errorf("the ignored field was undone: %d replicas", *d.Spec.Replicas)
	}
	w.awaitSynced(t, app, "")
}

// TestCreateNamespace makes the target namespace, with its metadata, and not
// without being asked to.
func TestCreateNamespace(t *testing.T) {
	t.Parallel()
	w := start(t)
	r := w.repo(t, "namespace", tree{"app/c.yaml": configMap("c", "1")})
	with, without := unique("ns-with"), unique("ns-without")
	w.create(t, application(with, "app", `    syncOptions: [CreateNamespace=true]
    managedNamespaceMetadata: {labels: {team: shop}, annotations: {note: kept}}
`), vars{"REPO": r.url, "NS": with})
	w.create(t, application(without, "app", "    retry: {limit: 0}\n"), vars{"REPO": r.url, "NS": without})
	w.awaitSynced(t, with, "")
	ns := get(t, w.alpha, "", with, &corev1.Namespace{})
	if ns.Labels["team"] != "shop" || ns.Annotations["note"] != "kept" {
		t.Errorf("the namespace has labels %v and annotations %v", ns.Labels, ns.Annotations)
	}
	w.awaitCondition(t, without, "SyncError", without)
	gone(t, w.alpha, "", without, &corev1.Namespace{})
}

// annotated adds annotations to a manifest of this package's making.
func annotated(manifest string, annotations ...string) string {
	var b strings.Builder
	b.WriteString("metadata:\n  annotations:\n")
	for i := 0; i+1 < len(annotations); i += 2 {
		fmt.Fprintf(&b, "    argocd.argoproj.io/%s: %q\n", annotations[i], annotations[i+1])
	}
	return strings.Replace(manifest, "metadata:\n", b.String(), 1)
}

// TestWaves holds a wave back until the one before it is healthy.
func TestWaves(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("waves")
	ns := w.alpha.namespace(t, "waves")
	// Nothing schedules onto a node that does not exist: it progresses for ever.
	stuck := strings.Replace(deployment("first", 1), "    spec:\n", "    spec:\n      nodeSelector: {nowhere: \"true\"}\n", 1)
	r := w.repo(t, "waves", tree{
		"app/zero.yaml":  annotated(configMap("zero", "1"), "sync-wave", "-1"),
		"app/first.yaml": stuck,
		"app/last.yaml":  annotated(configMap("last", "1"), "sync-wave", "5"),
	})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitApp(t, app, func(app *v1alpha1.Application) error {
		op := app.Status.OperationState
		if op == nil || op.Phase != "Running" || !strings.Contains(op.Message, "waiting for") {
			return errors.New("no operation waits")
		}
		return nil
	})
	get(t, w.alpha, ns, "zero", &corev1.ConfigMap{})
	get(t, w.alpha, ns, "first", &appsv1.Deployment{})
	if appears(t, w.alpha, ns, "last", time.Second) {
		t.Error("the last wave did not wait")
	}

	w.awaitSynced(t, app, r.push(t, tree{"app/first.yaml": deployment("first", 1)})) // a newer commit replaces the one that waits
	first, last := get(t, w.alpha, ns, "first", &appsv1.Deployment{}), get(t, w.alpha, ns, "last", &corev1.ConfigMap{})
	if first.Status.AvailableReplicas != 1 || last.CreationTimestamp.Before(&first.CreationTimestamp) {
		t.Errorf("the waves are not in order: %d available", first.Status.AvailableReplicas)
	}
}

// appears reports whether a ConfigMap comes to exist within a time.
func appears(t *testing.T, c *cluster, ns, name string, within time.Duration) bool {
	t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		found, _, err := listOne[*corev1.ConfigMap](t.Context(), c.client, &corev1.ConfigMapList{}, ns, name)
		if err != nil {
			t.Fatal(err)
		}
		if found != nil {
			return true
		}
	}
	return false
}

func job(name, restart string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: %s
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: %s
      containers:
        - name: job
          image: registry.example/job:1.0.0
`, name, restart)
}

// TestHooks runs a Job before and one after a sync, once for each sync.
func TestHooks(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := unique("hooks")
	ns := w.alpha.namespace(t, "hooks")
	r := w.repo(t, "hooks", tree{
		"app/c.yaml":      configMap("c", "1"),
		"app/before.yaml": annotated(job("before", "Never"), "hook", "PreSync"),
		"app/after.yaml":  annotated(job("after", "Never"), "hook", "PostSync", "hook-delete-policy", "HookSucceeded"),
	})
	w.create(t, application(name, "app", ""), vars{"REPO": r.url, "NS": ns})
	app := w.awaitSynced(t, name, "")
	checkHooks(t, app)
	before := get(t, w.alpha, ns, "before", &batchv1.Job{})
	if before.Status.Succeeded != 1 {
		t.Errorf("the PreSync Job is %+v", before.Status)
	}
	gone(t, w.alpha, ns, "after", &batchv1.Job{}) // deleted when it had succeeded
	for _, res := range app.Status.Resources {
		if res.Kind == "Job" && res.Status != "" {
			t.Errorf("a hook has a sync status: %+v", res)
		}
	}

	w.awaitSynced(t, name, r.push(t, tree{"app/c.yaml": configMap("c", "2")}))
	again := get(t, w.alpha, ns, "before", &batchv1.Job{})
	if again.UID == before.UID {
		t.Error("the PreSync Job was not run again")
	}
}

func checkHooks(t *testing.T, app *v1alpha1.Application) {
	t.Helper()
	want := map[string]string{"before": "PreSync", "after": "PostSync"}
	for _, res := range app.Status.OperationState.SyncResult.Resources {
		if phase, ok := want[res.Name]; ok {
			if res.HookType != phase || res.HookPhase != "Succeeded" {
				t.Errorf("hook %s: type %s, phase %s: %s", res.Name, res.HookType, res.HookPhase, res.Message)
			}
			delete(want, res.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("no result for the hooks %v", want)
	}
}

// TestDefinition has a CRD and an object of its kind in one Application.
func TestDefinition(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := unique("crd")
	ns := w.alpha.namespace(t, "crd")
	group := name + ".example.com"
	r := w.repo(t, "crd", tree{
		"app/a-instance.yaml": "apiVersion: " + group + "/v1\nkind: Boat\nmetadata: {name: ketch}\nspec: {masts: 2}\n",
		"app/z-crd.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.` + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {kind: Boat, plural: boats, singular: boat, listKind: BoatList}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {masts: {type: integer}}}}}
`})
	w.create(t, application(name, "app", ""), vars{"REPO": r.url, "NS": ns})
	app := w.awaitSynced(t, name, "")
	if op := app.Status.OperationState; op.RetryCount != 0 {
		t.Errorf("it took %d retries", op.RetryCount)
	}
	boat := &unstructured.Unstructured{}
	boat.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Boat"})
	get(t, w.alpha, ns, "ketch", boat)
	w.alpha.patch(t, boat, ns, "ketch", `{"spec":{"masts":3}}`)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "BoatList"})
	await(t, w.alpha.client, list, ns, "ketch", func(b *unstructured.Unstructured) error {
		if n, _, _ := unstructured.NestedInt64(b.Object, "spec", "masts"); n != 2 {
			return fmt.Errorf("it has %d masts", n)
		}
		return nil
	})
}
