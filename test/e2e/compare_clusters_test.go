package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/matrix"
)

const comparedSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: "${SET}"}
spec:
  generators: [{clusters: {selector: {matchLabels: {fleet: "${SET}"}}}}]
  template:
    metadata: {name: '${SET}-{{name}}', labels: {app: '${SET}'}}
    spec:
      project: default
      source: {repoURL: "${REPO}", targetRevision: main, path: 'overlays/{{metadata.labels.tier}}'}
      destination: {server: '{{server}}', namespace: '{{name}}'}
      syncPolicy: {automated: {prune: true}, syncOptions: [CreateNamespace=true]}
`

// TestCompareClusters: of three clusters one is meant to be larger, in one somebody
// edited and deleted by hand, and a fourth is away. Each difference is named for what
// it is, with where it was declared or who wrote it.
func TestCompareClusters(t *testing.T) {
	t.Parallel()
	w := start(t)
	set := unique("compared")
	kustomization := func(rest string) string { return "resources: [../../base]\n" + rest }
	r := w.repo(t, "compared", tree{
		"base/kustomization.yaml":           "resources: [d.yaml, c.yaml, s.yaml]\n",
		"base/d.yaml":                       deployment("api", 1),
		"base/c.yaml":                       configMap("conf", "base"),
		"base/s.yaml":                       "apiVersion: v1\nkind: Secret\nmetadata: {name: secret}\nstringData: {password: canary-one}\n",
		"overlays/small/kustomization.yaml": kustomization(""),
		"overlays/large/kustomization.yaml": kustomization("patches:\n- path: replicas.yaml\nimages:\n- name: registry.example/web\n  newTag: 2.0.0\n"),
		"overlays/large/replicas.yaml":      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: api}\nspec:\n  replicas: 3\n",
	})
	names := map[string]string{"a": "small", "b": "small", "c": "large"}
	for short, tier := range names {
		w.member(t, set+"-"+short, map[string]string{"fleet": set, "tier": tier})
	}
	away := w.member(t, set+"-z", map[string]string{"fleet": set, "tier": "small"})
	w.create(t, comparedSet, vars{"SET": set, "REPO": r.url})
	for _, short := range []string{"a", "b", "c", "z"} {
		w.awaitSynced(t, fmt.Sprintf("%s-%s-%s", set, set, short), "")
	}
	b := set + "-b"
	w.alpha.patch(t, &corev1.ConfigMap{}, b, "conf", `{"data":{"value":"by hand"}}`)
	w.alpha.patch(t, &corev1.Secret{}, b, "secret", `{"stringData":{"password":"canary-two"}}`)
	if err := w.alpha.client.Delete(t.Context(), get(t, w.alpha, set+"-a", "api", &appsv1.Deployment{})); err != nil {
		t.Fatal(err)
	}
	away.Cut()

	m, err := daemon.Compare(t.Context(), daemon.CompareConfig{REST: w.hub.rest, Namespace: controlNamespace, App: set})
	if err != nil {
		t.Fatal(err)
	}
	checkMatrix(t, m, set)
	again, err := daemon.Compare(t.Context(), daemon.CompareConfig{REST: w.hub.rest, Namespace: controlNamespace, Labels: "app=" + set, Clusters: []string{set + "-c", b}})
	if err != nil || len(again.Columns) != 2 {
		t.Errorf("by label and cluster: %d columns, %v", len(again.Columns), err)
	}
	for _, a := range []string{set + "-a", b, set + "-c"} { // it has only looked
		if app := get(t, w.hub, controlNamespace, set+"-"+a, &v1alpha1.Application{}); app.Operation != nil {
			t.Errorf("%s is being synced", a)
		}
	}
}

// layeredSet deploys a chart with a layer of values for each tier, and a parameter.
const layeredSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: "${SET}"}
spec:
  generators: [{clusters: {selector: {matchLabels: {fleet: "${SET}"}}}}]
  template:
    metadata: {name: 'chart-{{name}}'}
    spec:
      project: default
      source:
        repoURL: "${REPO}"
        targetRevision: main
        path: chart
        helm: {valueFiles: ['layers/{{metadata.labels.tier}}.yaml'], parameters: [{name: zone, value: 'zone-{{metadata.labels.tier}}'}, {name: same, value: big}]}
      destination: {server: '{{server}}', namespace: '{{name}}'}
      syncPolicy: {automated: {prune: true}, syncOptions: [CreateNamespace=true]}
`

// TestCompareHelmLayers: objects that a chart names after its release are the same one
// on all clusters, and a value is of the layer, or the parameter, that set it. What is
// not synced yet is not called an edit.
func TestCompareHelmLayers(t *testing.T) {
	t.Parallel()
	w := start(t)
	set := unique("layered")
	r := w.repo(t, "layered", tree{
		"chart/Chart.yaml":         "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"chart/values.yaml":        "level: low\nzone: none\nsame: small\n",
		"chart/layers/small.yaml":  "# nothing of its own\nother: big\n",
		"chart/layers/large.yaml":  "# larger\nlevel: big\n",
		"chart/templates/web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-web'}\ndata: {level: {{ .Values.level }}, zone: {{ .Values.zone }}, same: {{ .Values.same }}, release: '{{ .Release.Name }}'}\n",
	})
	for short, tier := range map[string]string{"a": "small", "b": "small", "c": "large"} {
		w.member(t, set+"-"+short, map[string]string{"fleet": set, "tier": tier})
	}
	w.create(t, layeredSet, vars{"SET": set, "REPO": r.url})
	for _, short := range []string{"a", "b", "c"} {
		w.awaitSynced(t, "chart-"+set+"-"+short, "")
	}
	compared := func(name string) matrix.Matrix {
		m, err := daemon.Compare(t.Context(), daemon.CompareConfig{REST: w.hub.rest, Namespace: controlNamespace, App: name})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := compared("chart-" + set + "-a") // one brings its family
	got := map[string]string{}
	for _, row := range m.Rows {
		data, err := json.Marshal(row.Cells)
		if err != nil {
			t.Fatal(err)
		}
		got[row.Name+row.Field] = string(row.Verdict) + string(data)
	}
	if len(m.Columns) != 3 || len(got) != 3 {
		t.Errorf("%d columns, rows: %v", len(m.Columns), got)
	}
	for name, want := range map[string][]string{
		"{app}-web.data.level":   {"intended", `["` + set + "-a\",\"" + set + `-b"],"declared":"\"low\""`, "chart/layers/large.yaml:2"},
		"{app}-web.data.zone":    {"intended", "zone-large", "spec.source.helm.parameters.zone of Application chart-" + set + "-c"},
		"{app}-web.data.release": {"intended"},
	} {
		if !containsAll(got[name], want) {
			t.Errorf("%s: wanted %q in %q", name, want, got[name])
		}
	}
}

func checkMatrix(t *testing.T, m matrix.Matrix, set string) {
	t.Helper()
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if strings.Contains(text, "canary") || strings.Contains(text, "Y2FuYXJ5") {
		t.Errorf("a value of a Secret is shown: %s", text)
	}
	find := func(kind, field string) string {
		for _, r := range m.Rows {
			if r.Kind == kind && r.Field == field {
				out, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			}
		}
		t.Errorf("no row for %s %s in %s", kind, field, text)
		return ""
	}
	for _, tc := range []struct {
		kind, field string
		want        []string
	}{
		{"Deployment", ".spec.replicas", []string{`"verdict":"intended"`, `"declared":"3"`, "overlays/large/replicas.yaml:5"}},
		{"Deployment", `.spec.template.spec.containers[name="web"].image`, []string{`"verdict":"intended"`, "web:2.0.0", "overlays/large/kustomization.yaml:6"}},
		{"Deployment", "", []string{`"verdict":"accidental"`, "it is missing", set + "-a"}},
		{"ConfigMap", ".data.value", []string{`"verdict":"accidental"`, `"live":"\"by hand\""`, "edited by hand: written by", set + "-b"}},
		{"Secret", ".data.password", []string{`"verdict":"accidental"`, "hidden value"}},
	} {
		row := find(tc.kind, tc.field)
		if !containsAll(row, tc.want) {
			t.Errorf("%s %s: wanted %q in %s", tc.kind, tc.field, tc.want, row)
		}
	}
	for _, c := range m.Columns {
		if (c.Problem != "") != strings.HasSuffix(c.Name, "-z") {
			t.Errorf("%s: %q", c.Name, c.Problem)
		}
	}
}
