package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

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
	// The folders are no kustomizations yet, which the Applications say; they
	// exist nevertheless.
	for _, name := range []string{"api-dev", "api-prod", "web-dev", "web-prod"} {
		app := w.awaitCondition(t, matrix+"-"+name, "ComparisonError", "holds no kustomization.yaml")
		if want := "apps/" + strings.Split(name, "-")[0]; app.Spec.Source.Path != want {
			t.Errorf("%s has the path %q, wanted %q", app.Name, app.Spec.Source.Path, want)
		}
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
