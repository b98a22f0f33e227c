package e2e

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

const chart = `apiVersion: v2
name: shop
version: 1.2.3
`

const chartTemplate = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels:
    chart: {{ .Chart.Name }}-{{ .Chart.Version }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels:
      app: {{ .Release.Name }}
  template:
    metadata:
      labels:
        app: {{ .Release.Name }}
    spec:
      containers:
        - name: web
          image: {{ .Values.image.name }}:{{ .Values.image.tag }}
          env:
            - name: REGION
              value: {{ .Values.region | quote }}
            - name: LEVEL
              value: {{ .Values.level | quote }}
`

// TestJourney takes one commit with a folder, an overlay and a chart to a
// cluster, and looks at what the cluster and the Applications then show.
func TestJourney(t *testing.T) {
	t.Parallel()
	w := start(t)
	plain, overlaid, charted := unique("journey-plain"), unique("journey-overlay"), unique("journey-chart")
	ns := w.alpha.namespace(t, "journey")
	r := w.repo(t, "journey", tree{
		"plain/web.yaml":                         deployment("plain", 2) + "---\n" + service("plain"),
		"plain/config.yaml":                      configMap("plain", "one"),
		"web/base/web.yaml":                      deployment("web", 1),
		"web/base/kustomization.yaml":            "resources: [web.yaml]\n",
		"web/overlays/prod/kustomization.yaml":   "resources: [../../base]\nnamePrefix: prod-\nreplicas: [{name: web, count: 3}]\nimages: [{name: registry.example/web, newTag: 2.0.0}]\n",
		"charts/shop/Chart.yaml":                 chart,
		"charts/shop/values.yaml":                "replicas: 1\nregion: none\nlevel: base\nimage: {name: registry.example/shop, tag: 0.0.1}\n",
		"charts/shop/templates/web.yaml":         chartTemplate,
		"charts/shop/values/prod.yaml":           "replicas: 2\nlevel: prod\nimage: {tag: 3.1.4}\n",
		"charts/shop/values/alpha.yaml":          "region: north\n",
		"charts/shop/templates/tests/check.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: check, annotations: {helm.sh/hook: test}}\nspec: {containers: [{name: c, image: x}]}\n",
	})
	v := vars{"REPO": r.url, "NS": ns}
	w.create(t, application(plain, "plain", ""), v)
	w.create(t, application(overlaid, "web/overlays/prod", ""), v)
	w.create(t, `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: "${NAME}"}
spec:
  project: default
  source:
    repoURL: ${REPO}
    path: charts/shop
    helm:
      releaseName: shop
      valueFiles: [values/prod.yaml, values/alpha.yaml]
      parameters: [{name: replicas, value: "4"}]
  destination: {name: alpha, namespace: ${NS}}
  syncPolicy: {automated: {}}
`, vars{"REPO": r.url, "NS": ns, "NAME": charted})
	head := r.git(t, "rev-parse", "HEAD")
	for _, name := range []string{plain, overlaid, charted} {
		app := w.awaitSynced(t, name, head)
		if len(app.Status.Conditions) > 0 {
			t.Errorf("%s shows conditions: %+v", name, app.Status.Conditions)
		}
	}
	overlay := get(t, w.alpha, ns, "prod-web", &appsv1.Deployment{})
	if n, image := *overlay.Spec.Replicas, overlay.Spec.Template.Spec.Containers[0].Image; n != 3 || image != "registry.example/web:2.0.0" {
		t.Errorf("the overlay has %d replicas of %s", n, image)
	}
	checkShop(t, get(t, w.alpha, ns, "shop", &appsv1.Deployment{}))
	if got := get(t, w.alpha, ns, "plain", &corev1.ConfigMap{}).Data["value"]; got != "one" {
		t.Errorf("the ConfigMap holds %q", got)
	}
	checkStatus(t, w, plain, vars{"REPO": r.url, "NS": ns, "COMMIT": head})
}

// checkShop looks for a value of each layer: chart, environment, cluster, parameter.
func checkShop(t *testing.T, shop *appsv1.Deployment) {
	t.Helper()
	c := shop.Spec.Template.Spec.Containers[0]
	got := map[string]any{"replicas": *shop.Spec.Replicas, "image": c.Image, "chart": shop.Labels["chart"]}
	for _, e := range c.Env {
		got[e.Name] = e.Value
	}
	want := map[string]any{"replicas": int32(4), "image": "registry.example/shop:3.1.4", "chart": "shop-1.2.3", "REGION": "north", "LEVEL": "prod"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the chart's Deployment (-want +got):\n%s", diff)
	}
}

// checkStatus compares the whole status, as it is stored, with the golden file;
// times are only looked at for being there.
func checkStatus(t *testing.T, w *world, name string, v vars) {
	t.Helper()
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(schema.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "Application"})
	get(t, w.hub, controlNamespace, name, raw)
	got, err := json.MarshalIndent(withoutTimes(raw.Object["status"]), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"COMMIT", "REPO", "NS"} {
		got = bytes.ReplaceAll(got, []byte(v[name]), []byte("${"+name+"}"))
	}
	compareGolden(t, "journey_status.json", append(got, '\n'))
}

// withoutTimes replaces every time by the word TIME.
func withoutTimes(x any) any {
	switch x := x.(type) {
	case map[string]any:
		for k, v := range x {
			switch s, ok := v.(string); {
			case ok && s != "" && (k == "startedAt" || k == "finishedAt" || k == "deployedAt" || k == "deployStartedAt" || k == "reconciledAt" || k == "lastTransitionTime" || k == "observedAt"):
				x[k] = "TIME"
			default:
				x[k] = withoutTimes(v)
			}
		}
	case []any:
		for i := range x {
			x[i] = withoutTimes(x[i])
		}
	}
	return x
}
