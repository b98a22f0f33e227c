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

const cascadeFinalizer = "resources-finalizer.argocd.argoproj.io"

// TestAppOfApps has an Application whose source holds Applications, takes one
// of them away, and deletes the root with everything below it.
func TestAppOfApps(t *testing.T) {
	t.Parallel()
	w := start(t)
	ns := w.alpha.namespace(t, "apps")
	root, one, two := unique("root"), unique("child"), unique("child")
	r := w.repo(t, "apps", tree{"one/c.yaml": configMap("one", "1"), "two/c.yaml": configMap("two", "1")})
	v := vars{"REPO": r.url, "NS": ns}
	child := func(name, path string) string {
		return strings.Replace(v.expand(application(name, path, "")), "metadata:\n",
			"metadata:\n  namespace: "+controlNamespace+"\n  finalizers: ["+cascadeFinalizer+"]\n", 1)
	}
	r.push(t, tree{"root/one.yaml": child(one, "one"), "root/two.yaml": child(two, "two")})
	text := strings.Replace(application(root, "root", ""), "name: alpha", "server: https://kubernetes.default.svc", 1)
	w.create(t, strings.Replace(text, "metadata:\n", "metadata:\n  finalizers: ["+cascadeFinalizer+"]\n", 1), v)
	w.awaitSynced(t, one, "")
	w.awaitSynced(t, two, "")
	w.awaitSynced(t, root, "")
	get(t, w.alpha, ns, "one", &corev1.ConfigMap{})

	r.push(t, tree{"root/two.yaml": ""}) // pruned from the root: it goes with its objects
	w.awaitGone(t, two)
	gone(t, w.alpha, ns, "two", &corev1.ConfigMap{})
	get(t, w.alpha, ns, "one", &corev1.ConfigMap{})

	if err := w.hub.client.Delete(t.Context(), get(t, w.hub, controlNamespace, root, &v1alpha1.Application{})); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(t, root)
	w.awaitGone(t, one)
	gone(t, w.alpha, ns, "one", &corev1.ConfigMap{})
}

// TestDelete deletes one Application with the cascade finalizer and one without.
func TestDelete(t *testing.T) {
	t.Parallel()
	w := start(t)
	r := w.repo(t, "delete", tree{"app/c.yaml": configMap("c", "1") + "---\n" + deployment("web", 1)})
	for kind, cascade := range map[string]bool{"delete-with": true, "delete-without": false} {
		name := unique(kind)
		ns := w.alpha.namespace(t, name)
		text := application(name, "app", "")
		if cascade {
			text = strings.Replace(text, "metadata:\n", "metadata:\n  finalizers: ["+cascadeFinalizer+"]\n", 1)
		}
		w.create(t, text, vars{"REPO": r.url, "NS": ns})
		app := w.awaitSynced(t, name, "")
		if err := w.hub.client.Delete(t.Context(), app); err != nil {
			t.Fatal(err)
		}
		w.awaitGone(t, name)
		if cascade {
			gone(t, w.alpha, ns, "c", &corev1.ConfigMap{})
			gone(t, w.alpha, ns, "web", &appsv1.Deployment{})
			continue
		}
		get(t, w.alpha, ns, "c", &corev1.ConfigMap{})
		get(t, w.alpha, ns, "web", &appsv1.Deployment{})
	}
}

// TestMultiSource renders a chart of one repository with values of another.
func TestMultiSource(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := unique("multi")
	ns := w.alpha.namespace(t, "multi")
	charts := w.repo(t, "charts", tree{"shop/Chart.yaml": chart, "shop/values.yaml": "value: chart\n",
		"shop/templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {value: {{ .Values.value | quote }}}\n"})
	values := w.repo(t, "values", tree{"prod/values.yaml": "value: prod\n", "extra/d.yaml": configMap("d", "extra")})
	w.create(t, `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: "${NAME}"}
spec:
  project: default
  sources:
    - {repoURL: "${CHARTS}", path: shop, targetRevision: main, helm: {valueFiles: [$values/prod/values.yaml]}}
    - {repoURL: "${VALUES}", targetRevision: main, ref: values}
    - {repoURL: "${VALUES}", targetRevision: main, path: extra}
  destination: {name: alpha, namespace: "${NS}"}
  syncPolicy: {automated: {}}
`, vars{"CHARTS": charts.url, "VALUES": values.url, "NS": ns, "NAME": name})
	app := w.awaitSynced(t, name, "")
	heads := []string{charts.git(t, "rev-parse", "HEAD"), values.git(t, "rev-parse", "HEAD")}
	if got, want := fmt.Sprint(app.Status.Sync.Revisions), fmt.Sprint([]string{heads[0], heads[1], heads[1]}); got != want {
		t.Errorf("revisions are %s, wanted %s", got, want)
	}
	if n := len(app.Status.History); n != 1 || len(app.Status.History[0].Revisions) != 3 || len(app.Status.History[0].Sources) != 3 {
		t.Errorf("history is %+v", app.Status.History)
	}
	if got := get(t, w.alpha, ns, "c", &corev1.ConfigMap{}).Data["value"]; got != "prod" {
		t.Errorf("the chart has the value %q", got)
	}
	get(t, w.alpha, ns, "d", &corev1.ConfigMap{})

	values.push(t, tree{"prod/values.yaml": "value: new\n"})
	await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, "c", holds("new"))
}

// holds is for ConfigMaps: they hold a value.
func holds(value string) func(*corev1.ConfigMap) error {
	return func(c *corev1.ConfigMap) error {
		if c == nil {
			return errors.New("does not exist")
		}
		if got := c.Data["value"]; got != value {
			return fmt.Errorf("holds %q, wanted %q", got, value)
		}
		return nil
	}
}

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

// TestProject refuses a kind in one Application and the destination of another.
func TestProject(t *testing.T) {
	t.Parallel()
	w := start(t)
	good, kind, destination := unique("project-good"), unique("project-kind"), unique("project-destination")
	ns, other := w.alpha.namespace(t, "project"), w.alpha.namespace(t, "project-other")
	project := unique("team")
	r := w.repo(t, "project", tree{"app/c.yaml": configMap("c", "1"), "kind/c.yaml": configMap("k", "1"), "kind/s.yaml": service("s")})
	v := vars{"REPO": r.url, "NS": ns, "PROJECT": project, "SERVER": w.alpha.rest.Host}
	w.create(t, `apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: "${PROJECT}"}
spec:
  sourceRepos: ["${REPO}"]
  destinations: [{server: "${SERVER}", namespace: "${NS}"}]
  namespaceResourceBlacklist: [{group: "", kind: Service}]
`, v)
	in := func(name, path string) string {
		return strings.Replace(application(name, path, "    retry: {limit: 0}\n"), "project: default", "project: "+project, 1)
	}
	w.create(t, in(good, "app"), v)
	w.create(t, in(kind, "kind"), v)
	w.create(t, in(destination, "app"), vars{"REPO": r.url, "NS": other})
	w.awaitSynced(t, good, "")
	app := w.awaitApp(t, kind, func(app *v1alpha1.Application) error {
		for _, c := range app.Status.Conditions {
			if containsAll(c.Message, []string{"Service", project, "spec.namespaceResourceBlacklist[0]"}) {
				return nil
			}
		}
		return errors.New("no condition names the kind, the project and its rule")
	})
	if app.Status.Sync.Status == "Synced" {
		t.Error("an Application with a kind that is denied says Synced")
	}
	w.awaitCondition(t, destination, "InvalidSpecError", project)
	gone(t, w.alpha, ns, "s", &corev1.Service{})
	gone(t, w.alpha, other, "c", &corev1.ConfigMap{})

	w.hub.patch(t, &v1alpha1.AppProject{}, controlNamespace, project, `{"spec":{"namespaceResourceBlacklist":null}}`) // allowed now
	w.awaitState(t, kind, "Synced", "Healthy")
}

// TestGenerators makes Applications of a list and of a matrix of Git folders
// and a list, with both template languages.
func TestGenerators(t *testing.T) {
	t.Parallel()
	w := start(t)
	ns := w.alpha.namespace(t, "sets")
	r := w.repo(t, "sets", tree{"apps/api/c.yaml": configMap("api", "1"), "apps/web/c.yaml": configMap("web", "1"), "apps/old/c.yaml": configMap("old", "1")})
	list, matrix := unique("list"), unique("matrix")
	v := vars{"REPO": r.url, "NS": ns, "LIST": list, "MATRIX": matrix}
	w.create(t, `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: "${LIST}"}
spec:
  generators:
    - list: {elements: [{app: api, ns: "${NS}"}, {app: web, ns: "${NS}"}]}
  template:
    metadata: {name: '${LIST}-{{app}}', labels: {from: list}}
    spec:
      project: default
      source: {repoURL: "${REPO}", path: 'apps/{{app}}', targetRevision: main}
      destination: {name: alpha, namespace: '{{ns}}'}
      syncPolicy: {automated: {}}
---
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: "${MATRIX}"}
spec:
  goTemplate: true
  generators:
    - matrix:
        generators:
          - git: {repoURL: "${REPO}", revision: main, directories: [{path: apps/*}, {path: apps/old, exclude: true}]}
          - list: {elements: [{env: dev}, {env: prod}]}
  template:
    metadata: {name: '${MATRIX}-{{.path.basename}}-{{.env}}'}
    spec:
      project: default
      source: {repoURL: "${REPO}", path: '{{.path.path}}', targetRevision: main, kustomize: {namePrefix: '{{.env}}-m-'}}
      destination: {name: alpha, namespace: "${NS}"}
      syncPolicy: {automated: {}}
`, v)
	if app := w.awaitSynced(t, list+"-api", ""); app.Labels["from"] != "list" {
		t.Errorf("the generated Application has labels %v", app.Labels)
	}
	w.awaitSynced(t, list+"-web", "")
	// The folders are no kustomizations: the option is refused, by name, and the
	// Applications exist nevertheless.
	for _, name := range []string{"api-dev", "api-prod", "web-dev", "web-prod"} {
		w.awaitApp(t, matrix+"-"+name, func(app *v1alpha1.Application) error {
			if app.Spec.Source.Path != "apps/"+strings.Split(name, "-")[0] {
				return fmt.Errorf("has the path %q", app.Spec.Source.Path)
			}
			return nil
		})
	}
	if n := countApps(t, w, matrix); n != 4 {
		t.Errorf("the matrix generates %d Applications, wanted 4", n)
	}
	r.push(t, tree{"apps/api/kustomization.yaml": "resources: [c.yaml]\n", "apps/web/kustomization.yaml": "resources: [c.yaml]\n",
		"apps/new/kustomization.yaml": "resources: [c.yaml]\n", "apps/new/c.yaml": configMap("new", "1")})
	for _, name := range []string{"api-dev", "api-prod", "web-dev", "web-prod", "new-dev", "new-prod"} {
		w.awaitSynced(t, matrix+"-"+name, "")
	}
	get(t, w.alpha, ns, "prod-m-new", &corev1.ConfigMap{})
}

func countApps(t *testing.T, w *world, prefix string) int {
	t.Helper()
	var apps v1alpha1.ApplicationList
	if err := w.hub.client.List(t.Context(), &apps); err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range apps.Items {
		if strings.HasPrefix(apps.Items[i].Name, prefix+"-") {
			n++
		}
	}
	return n
}
