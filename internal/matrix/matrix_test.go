package matrix_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/matrix"
)

func object(t testing.TB, text string) rutter.Object {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return rutter.Object{Unstructured: u, Origin: rutter.Origin{File: "base/deployment.yaml", Line: 1}}
}

func deployment(t testing.TB, ns, tag string, replicas int) rutter.Object {
	t.Helper()
	return object(t, fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: %s, labels: {rutter.dev/unit: %s}, annotations: {argocd.argoproj.io/tracking-id: 'x-%s'}}
spec:
  replicas: %d
  template: {spec: {containers: [{name: side, image: s}, {name: web, image: 'r/api:%s'}]}}
`, ns, ns, ns, replicas, tag))
}

func column(name string, objects ...rutter.Object) matrix.Column {
	return matrix.Column{Name: name, Cluster: name, Application: "api-" + name, Namespace: "ns-" + name, Objects: objects}
}

// lines are the rows in short.
func lines(m matrix.Matrix) []string {
	var out []string
	for _, r := range m.Rows {
		text := fmt.Sprintf("%s %s%s", r.Verdict, r.Kind, r.Field)
		for _, c := range r.Cells {
			text += fmt.Sprintf(" | %s: %s", strings.Join(c.Columns, ","), c.Declared)
			if c.Drifted {
				text += " live " + c.Live
			}
			if c.Because != "" {
				text += " (" + c.Because + ")"
			}
		}
		out = append(out, text)
	}
	return out
}

func TestIntendedAndAccidental(t *testing.T) {
	eu, us, prod := column("eu", deployment(t, "ns-eu", "1", 2)), column("us", deployment(t, "ns-us", "1", 2)), column("prod", deployment(t, "ns-prod", "2", 5))
	base := matrix.File{Path: "base/deployment.yaml", Data: []byte("spec: {replicas: 2}\n")}
	eu.Files, us.Files = []matrix.File{base}, []matrix.File{base}
	prod.Files = []matrix.File{base, {Path: "overlays/prod/replicas.yaml", Data: []byte("kind: Deployment\nspec:\n  replicas: 5\n")}}
	prod.Settings = []matrix.Setting{{Field: "spec.source.helm.parameters.image.tag", Value: "2"}}
	since := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	const image = `.spec.template.spec.containers[name="web"].image`
	us.Report.Resources = []rutter.ResourceReport{{Ref: rutter.Ref{Group: "apps", Kind: "Deployment", Namespace: "ns-us", Name: "api"}, State: rutter.OutOfSync,
		Diffs: []rutter.FieldDiff{{Path: image, Desired: `"r/api:1"`, Live: `"r/api:debug"`, Manager: "kubectl-edit"}},
		Drift: &rutter.Drift{Since: since, Fields: []rutter.FieldDrift{{Path: image, Since: since}}}}}
	got := matrix.Of([]matrix.Column{eu, prod, us})
	want := []string{
		`intended Deployment.spec.replicas | eu,us: 2 | prod: 5 (overlays/prod/replicas.yaml:3)`,
		`both Deployment` + image + ` | eu: "r/api:1" | prod: "r/api:2" (spec.source.helm.parameters.image.tag of Application api-prod)` +
			` | us: "r/api:1" live "r/api:debug" (written by kubectl-edit since 2026-08-01T12:00:00Z)`,
	}
	if diff := cmp.Diff(want, lines(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(got.Keep(matrix.Accidental).Rows); n != 1 {
		t.Errorf("%d accidental rows, wanted 1", n)
	}
}

func TestObjectsThatAreNotEverywhere(t *testing.T) {
	cm := object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: ns-eu}\ndata: {a: b}\n")
	eu, us := column("eu", deployment(t, "ns-eu", "1", 2), cm), column("us", deployment(t, "ns-us", "1", 2))
	us.Report.Resources = []rutter.ResourceReport{
		{Ref: rutter.Ref{Group: "apps", Kind: "Deployment", Namespace: "ns-us", Name: "api"}, State: rutter.OutOfSync, Health: rutter.Health{Status: rutter.Missing}},
		{Ref: rutter.Ref{Kind: "Service", Namespace: "ns-us", Name: "old"}, State: rutter.OutOfSync, RequiresPruning: true},
	}
	away := matrix.Column{Name: "away", Problem: "the cluster does not answer"}
	got := matrix.Of([]matrix.Column{eu, us, away})
	want := []string{
		`intended ConfigMap | eu: "declared" | us: `,
		`accidental Service | eu:  | us:  live "there" (Git declares it no more, and it has not been pruned)`,
		`accidental Deployment | eu: "declared" | us: "declared" live  (it is missing)`,
	}
	if diff := cmp.Diff(want, lines(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSecrets: that values differ is said, what they are is not.
func TestSecrets(t *testing.T) {
	secret := func(ns, value string) rutter.Object {
		return object(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: "+ns+"}\ndata: {password: "+value+"}\n")
	}
	m := matrix.Of([]matrix.Column{column("a", secret("ns-a", "Y2FuYXJ5MQ==")), column("b", secret("ns-b", "Y2FuYXJ5Mg==")), column("c", secret("ns-c", "Y2FuYXJ5MQ=="))})
	text := strings.Join(lines(m), "\n")
	if strings.Contains(text, "Y2FuYXJ5") || !strings.Contains(text, `a,c: "hidden value 1" | b: "hidden value 2"`) {
		t.Error(text)
	}
}

// TestFoldingLosesNothing, whatever the order of columns: equal objects have no row, and
// every column is in exactly one cell of each row.
func TestFoldingLosesNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var columns []matrix.Column
		for i := range 2 + rnd.IntN(8) {
			name := fmt.Sprintf("c%d", i)
			columns = append(columns, column(name, deployment(t, "ns-"+name, fmt.Sprint(rnd.IntN(2)), 1+rnd.IntN(3))))
		}
		m := matrix.Of(columns)
		for _, r := range m.Rows {
			var all []string
			values := map[string]bool{}
			for _, c := range r.Cells {
				all = append(all, c.Columns...)
				if values[c.Declared] {
					t.Fatalf("%s: two cells with %s", r.Field, c.Declared)
				}
				values[c.Declared] = true
			}
			slices.Sort(all)
			if len(all) != len(columns) || len(slices.Compact(all)) != len(columns) || len(values) < 2 {
				t.Fatalf("%s of %d columns: %v", r.Field, len(columns), all)
			}
		}
		slices.Reverse(columns)
		if n := len(matrix.Of(columns).Rows); n != len(m.Rows) {
			t.Fatalf("%d rows in one order, %d in the other", len(m.Rows), n)
		}
	}
}
