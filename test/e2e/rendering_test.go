package e2e

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// The scenarios of the section "Rendering" that need a control plane; B15 and
// B18 are tests of internal/render/helm and internal/source/git.

const limitedChart = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: registry.example/web:1.0.0
          resources: {{- toYaml .Values.resources | nindent 12 }}
`

// TestRenderingB14 sets a nested default to null: the null goes through the API
// server, and the rendered object lacks the field. Also in a sub-chart that is
// there by default, and in one that a condition switches on.
func TestRenderingB14(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := unique("null")
	ns := w.alpha.namespace(t, "null")
	sub := func(name string) tree {
		dir := "chart/charts/" + name
		return tree{dir + "/Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n", dir + "/values.yaml": "opts: {keep: a, drop: b}\n",
			dir + "/templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {{- toYaml .Values.opts | nindent 2 }}\n"}
	}
	files := tree{"chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {name: always, version: 1.0.0}\n- {name: maybe, version: 1.0.0, condition: maybe.enabled}\n",
		"chart/values.yaml":           "resources: {limits: {cpu: 200m, memory: 64Mi}}\nmaybe: {enabled: false}\n",
		"chart/templates/deploy.yaml": limitedChart}
	for _, s := range []string{"always", "maybe"} {
		maps.Copy(files, sub(s))
	}
	r := w.repo(t, "null", files)
	values := "    helm:\n      valuesObject:\n        resources: {limits: {cpu: null}}\n        always: {opts: {drop: null}}\n        maybe: {enabled: true, opts: {drop: null}}\n"
	w.create(t, strings.Replace(application(name, "chart", ""), "  destination:\n", values+"  destination:\n", 1), vars{"REPO": r.url, "NS": ns})
	app := w.awaitSynced(t, name, "")
	if raw := string(app.Spec.Source.Helm.ValuesObject.Raw); !strings.Contains(raw, `"cpu":null`) {
		t.Errorf("the API server stored %s", raw)
	}
	limits := get(t, w.alpha, ns, "web", &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Resources.Limits
	if _, there := limits[corev1.ResourceCPU]; there || limits.Memory().String() != "64Mi" {
		t.Errorf("the limits are %v, wanted memory alone", limits)
	}
	for _, s := range []string{"always", "maybe"} {
		if got := get(t, w.alpha, ns, s, &corev1.ConfigMap{}).Data; fmt.Sprint(got) != "map[keep:a]" {
			t.Errorf("sub-chart %s has %v, wanted keep alone", s, got)
		}
	}
}

// TestRenderingB16 has two sources of one repository and branch, spelled
// differently, while commits land all the time: both are always of one commit.
func TestRenderingB16(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := unique("pair")
	ns := w.alpha.namespace(t, "pair")
	at := func(i int) tree {
		return tree{"a/c.yaml": configMap("a", fmt.Sprint(i)), "b/c.yaml": configMap("b", fmt.Sprint(i))}
	}
	r := w.repo(t, "pair", at(0))
	w.create(t, `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: "${NAME}"}
spec:
  project: default
  sources:
    - {repoURL: "${REPO}", path: a, targetRevision: main}
    - {repoURL: "${BARE}", path: b, targetRevision: main}
  destination: {name: alpha, namespace: "${NS}"}
  syncPolicy: {automated: {prune: true, selfHeal: true}}
`, vars{"REPO": r.url, "BARE": strings.TrimSuffix(r.url, ".git"), "NS": ns, "NAME": name})
	w.awaitSynced(t, name, "")
	const commits = 15
	head := ""
	for i := 1; i <= commits; i++ {
		head = r.push(t, at(i))
		app := get(t, w.hub, controlNamespace, name, &v1alpha1.Application{})
		if err := oneCommit(app); err != nil {
			t.Fatal(err)
		}
	}
	app := w.awaitApp(t, name, func(app *v1alpha1.Application) error {
		if err := oneCommit(app); err != nil {
			t.Error(err)
		}
		if app.Status.Sync.Status != "Synced" || app.Status.Sync.Revisions[0] != head {
			return errors.New("not there yet")
		}
		return nil
	})
	for _, h := range app.Status.History {
		if h.Revisions[0] != h.Revisions[1] {
			t.Errorf("the history has %v", h.Revisions)
		}
	}
	for _, m := range []string{"a", "b"} {
		await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, m, holds(fmt.Sprint(commits)))
	}
}

func oneCommit(app *v1alpha1.Application) error {
	if r := app.Status.Sync.Revisions; len(r) != 2 || r[0] != r[1] {
		return fmt.Errorf("the sources are at %v", r)
	}
	if op := app.Status.OperationState; op != nil && op.SyncResult != nil {
		if r := op.SyncResult.Revisions; len(r) == 2 && r[0] != r[1] {
			return fmt.Errorf("a sync mixed %v", r)
		}
	}
	return nil
}

const randomChart = `{{- $old := lookup "v1" "Secret" .Release.Namespace "login" }}
apiVersion: v1
kind: Secret
metadata: {name: login}
data:
  user: {{ .Values.user | b64enc }}
  {{- if $old }}
  password: {{ index $old.data "password" }}
  {{- else }}
  password: {{ randAlphaNum 24 | b64enc }}
  {{- end }}
`

// TestRenderingB21 renders a password that is made by chance each time: it is
// said, the first applied one stays, also when something else changes, and
// nothing is written for its sake.
func TestRenderingB21(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := unique("chance")
	ns := w.alpha.namespace(t, "chance")
	r := w.repo(t, "chance", tree{"chart/Chart.yaml": chart, "chart/values.yaml": "user: one\n", "chart/templates/s.yaml": randomChart})
	w.create(t, application(name, "chart", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, name, "")
	w.awaitCondition(t, name, "RenderWarning", "Secret", "login", "/data/password")
	first := get(t, w.alpha, ns, "login", &corev1.Secret{})

	w.editApp(t, name, `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"hard"}}}`)
	head := r.push(t, tree{"README.md": "nothing\n"})
	w.awaitSynced(t, name, head)
	w.editApp(t, name, `{"operation":{"sync":{}}}`)
	w.awaitApp(t, name, func(app *v1alpha1.Application) error {
		if op := app.Status.OperationState; app.Operation != nil || op == nil || op.Phase != "Succeeded" || op.Operation.InitiatedBy.Automated {
			return errors.New("the second sync has not ended")
		}
		return nil
	})
	again := get(t, w.alpha, ns, "login", &corev1.Secret{})
	if again.ResourceVersion != first.ResourceVersion {
		t.Errorf("a sync without a change wrote the Secret")
	}

	head = r.push(t, tree{"chart/values.yaml": "user: two\n"})
	w.awaitSynced(t, name, head)
	last := get(t, w.alpha, ns, "login", &corev1.Secret{})
	if string(last.Data["user"]) != "two" || string(last.Data["password"]) != string(first.Data["password"]) || len(first.Data["password"]) != 24 {
		t.Errorf("user %q; the password stayed: %v", last.Data["user"], string(last.Data["password"]) == string(first.Data["password"]))
	}
	app := get(t, w.hub, controlNamespace, name, &v1alpha1.Application{})
	if text := describe(app); strings.Contains(text, base64.StdEncoding.EncodeToString(first.Data["password"])) {
		t.Error("the status shows the password")
	}
}
