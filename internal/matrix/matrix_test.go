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

// column is of an Application that is in sync.
func column(name string, objects ...rutter.Object) matrix.Column {
	c := matrix.Column{Name: name, Cluster: name, Application: "api-" + name, Release: "api-" + name, Namespace: "ns-" + name, Objects: objects}
	for _, o := range objects {
		c.Report.Resources = append(c.Report.Resources, rutter.ResourceReport{Ref: o.Ref(), State: rutter.Synced})
	}
	return c
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
			if c.Unknown {
				text += " unknown"
			}
			for _, b := range c.Because {
				text += " (" + b.Text + ")"
			}
		}
		out = append(out, text)
	}
	return out
}

func TestIntendedAndAccidental(t *testing.T) {
	eu, us, prod := column("eu", deployment(t, "ns-eu", "1", 2)), column("us", deployment(t, "ns-us", "1", 2)), column("prod", deployment(t, "ns-prod", "2", 5))
	base := matrix.File{Path: "base/deployment.yaml", Hash: "1", Data: []byte("spec: {replicas: 2}\n")}
	eu.Files, us.Files = []matrix.File{base}, []matrix.File{base}
	prod.Files = []matrix.File{base, {Path: "overlays/prod/replicas.yaml", Data: []byte("kind: Deployment\nspec:\n  replicas: 5\n")}}
	shared := matrix.Setting{Field: "spec.source.helm.parameters.zone", Value: "5"} // all have it, so that it explains nothing
	eu.Settings, us.Settings = []matrix.Setting{shared}, []matrix.Setting{shared}
	prod.Settings = []matrix.Setting{shared, {Field: "spec.source.helm.parameters.image.tag", Value: "2"}}
	since := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	const image = `.spec.template.spec.containers[name="web"].image`
	us.Report.Resources = []rutter.ResourceReport{{Ref: rutter.Ref{Group: "apps", Kind: "Deployment", Namespace: "ns-us", Name: "api"}, State: rutter.OutOfSync,
		Diffs: []rutter.FieldDiff{{Path: image, Desired: `"r/api:1"`, Live: `"r/api:debug"`, Manager: "kubectl-edit"}},
		Drift: &rutter.Drift{Since: since, Fields: []rutter.FieldDrift{{Path: image, Since: since}}}}}
	got := matrix.Of([]matrix.Column{eu, prod, us})
	want := []string{
		`intended Deployment.spec.replicas | eu,us: 2 | prod: 5 (overlays/prod/replicas.yaml:3)`,
		`both Deployment` + image + ` | eu: "r/api:1" | prod: "r/api:2" (spec.source.helm.parameters.image.tag of Application api-prod)` +
			` | us: "r/api:1" live "r/api:debug" (edited by hand: written by kubectl-edit since 2026-08-01T12:00:00Z)`,
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
	secret := func(ns string) rutter.Object {
		return object(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: "+ns+"}\n")
	}
	eu, us := column("eu", deployment(t, "ns-eu", "1", 2), cm, secret("ns-eu")), column("us", deployment(t, "ns-us", "1", 2), secret("ns-us"))
	eu.Report.Resources[2].State, eu.Report.Resources[2].Reason = rutter.SyncUnknown, "KindTainted: no"
	us.Report.Resources = []rutter.ResourceReport{
		{Ref: secret("ns-us").Ref(), State: rutter.Synced},
		{Ref: rutter.Ref{Group: "apps", Kind: "Deployment", Namespace: "ns-us", Name: "api"}, State: rutter.OutOfSync, Health: rutter.Health{Status: rutter.Missing}},
		{Ref: rutter.Ref{Kind: "Service", Namespace: "ns-us", Name: "old"}, State: rutter.OutOfSync, RequiresPruning: true},
	}
	away := matrix.Column{Name: "away", Problem: "the cluster does not answer"}
	got := matrix.Of([]matrix.Column{eu, us, away})
	want := []string{
		`intended ConfigMap | eu: "declared" | us: `,
		`not compared Secret | eu: "declared" unknown (KindTainted: no) | us: "declared"`,
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

// TestRows: one column against two others that are the same, by what is left of it.
func TestRows(t *testing.T) {
	config := func(ns, data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: " + ns + "}\ndata: " + data + "\n"
	}
	long := strings.Repeat("x", 300)
	pod := func(containers string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: " + containers + "}\n"
	}
	drift := func(path, live, manager string) []rutter.FieldDiff {
		return []rutter.FieldDiff{{Path: path, Live: live, Manager: manager}}
	}
	for _, tc := range []struct {
		reason, usual, other string
		diffs                []rutter.FieldDiff
		want                 []string
	}{
		{"what is long differs at its end: it is not folded", config("ns", "{k: "+long+"a}"), config("ns", "{k: "+long+"b}"), nil,
			[]string{"intended ConfigMap.data.k", "xa\"", "xb\""}},
		{"a drift of a whole list that all declare", pod("[{name: a, args: [x]}]"), pod("[{name: a, args: [x]}]"), drift(`.spec.containers[name="a"].args`, `["y"]`, "kubectl-edit"),
			[]string{`a,b: ["x"] | z: ["x"] live ["y"] (edited by hand`}},
		{"a drift of a map that has more below it", config("ns", "{k: v}"), config("ns", "{k: v}"), drift(".data", `{"k":"w"}`, "m"),
			[]string{`accidental ConfigMap.data`, `a,b: {"k":"v"} | z: {"k":"v"} live`}},
		{"ports are known by number and protocol", pod("[{name: a, ports: [{containerPort: 80, name: n}]}]"), pod("[{name: a, ports: [{containerPort: 80, name: m}]}]"),
			drift(`.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"].name`, `"q"`, "m"), []string{`both Pod.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"].name`}},
		{"what a ConfigMap says is its own", config("ns", "{name: api-a}"), config("ns", "{name: api-z}"), nil, []string{`intended ConfigMap.data.name | a,b: "api-a" | z: "api-z"`}},
		{"the order of elements counts", pod("[{name: a}, {name: b}]"), pod("[{name: b}, {name: a}]"), nil, []string{"intended Pod.spec.containers (order)"}},
		{"what the last sync sent is not written by hand", config("ns", "{k: v}"), config("ns", "{k: v}"), drift(".data.k", `"u"`, rutter.FieldManager),
			[]string{"accidental", "not synced yet: the live value is what the last sync sent"}},
		{"an unusual field of a Secret is hidden", "apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {token: canary1}}\ndat: [{name: canary2}]\n",
			"apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {token: canary3}}\ndat: [{name: canary4}]\n", nil,
			[]string{`Secret.dat | a,b: "hidden value 1" | z: "hidden value 2"`, `.annotations.token | a,b: "hidden`}},
		{"stringData is data", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: a}\n", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: YQ==}\n", nil, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			z := column("z", object(t, tc.other))
			if tc.diffs != nil {
				z.Report.Resources[0].State, z.Report.Resources[0].Diffs = rutter.OutOfSync, tc.diffs
			}
			got := strings.Join(lines(matrix.Of([]matrix.Column{column("a", object(t, tc.usual)), column("b", object(t, tc.usual)), z})), "\n")
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q", want)
				}
			}
			if tc.want == nil && got != "" || strings.Contains(got, "canary") || t.Failed() {
				t.Errorf("got:\n%s", got)
			}
		})
	}
}

// TestNamesOfApplications: what charts name after the Application, and what is in its
// namespace, is the same object everywhere; that one says prod and the other dev is not
// hidden by that.
func TestNamesOfApplications(t *testing.T) {
	chart := func(app string) matrix.Column {
		c := column(app, object(t, fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s-web, namespace: ns-%[1]s, labels: {app.kubernetes.io/instance: %[1]s}}
roleRef: {kind: Role, name: %[1]s-web}
subjects: [{kind: ServiceAccount, name: x%[1]s, namespace: ns-%[1]s}]
environment: %[1]s
`, app)))
		c.Release = app
		return c
	}
	got := lines(matrix.Of([]matrix.Column{chart("dev"), chart("prod")}))
	want := []string{`intended RoleBinding.environment | dev: "dev" | prod: "prod"`, `intended RoleBinding.subjects[name="xdev"]`, `intended RoleBinding.subjects[name="xprod"]`}
	for i, w := range want {
		if len(got) < len(want) || !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, w) }) {
			t.Fatalf("no %q (%d) in %q", w, i, got)
		}
	}
	for _, line := range got {
		if strings.Contains(line, "roleRef") || strings.Contains(line, "instance") {
			t.Errorf("%s: it is the same", line)
		}
	}
}

// TestGeneratedNames: what kustomize names by its content is one object, and a former
// one beside it is another.
func TestGeneratedNames(t *testing.T) {
	config := func(ns, hash, value string) rutter.Object {
		return object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c-"+hash+", namespace: ns-"+ns+"}\ndata: {k: "+value+"}\n")
	}
	a, b := column("a", config("a", "bk2bcddbtc", "1")), column("b", config("b", "k5cfggdmgm", "2"))
	b.Report.Resources = append(b.Report.Resources, rutter.ResourceReport{Ref: config("b", "tttttttttt", "0").Ref(), State: rutter.OutOfSync, RequiresPruning: true})
	b.Settings = []matrix.Setting{{Field: "app.k", Value: "2", Where: "values/b.yaml:3"}}
	want := []string{
		`accidental ConfigMap | a:  | b:  live "there" (Git declares it no more, and it has not been pruned)`,
		`intended ConfigMap.data.k | a: 1 | b: 2 (values/b.yaml:3)`,
	}
	if diff := cmp.Diff(want, lines(matrix.Of([]matrix.Column{a, b}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFiveHundred clusters, each with an overlay of its own, are two lines, with where
// each value comes from.
func TestFiveHundred(t *testing.T) {
	var columns []matrix.Column
	for i := range 500 {
		name, replicas := fmt.Sprintf("c%03d", i), 2
		if i == 7 {
			replicas = 9
		}
		c := column(name, deployment(t, "ns-"+name, "1", replicas))
		c.Files = []matrix.File{{Path: "overlays/" + name + "/k.yaml", Hash: name, Data: fmt.Appendf(nil, "replicas: %d\n", replicas)}}
		columns = append(columns, c)
	}
	m := matrix.Of(columns)
	if len(m.Rows) != 1 || len(m.Rows[0].Cells) != 2 {
		t.Fatalf("%q", lines(m))
	}
	all, few := m.Rows[0].Cells[0], m.Rows[0].Cells[1]
	if len(all.Columns) != 499 || len(all.Because) != 499 || len(few.Because) != 1 || few.Because[0].Text != "overlays/c007/k.yaml:1" {
		t.Errorf("%d columns, %d causes; %+v", len(all.Columns), len(all.Because), few)
	}
}

// groups are who has which value, in an order of their own.
func groups(m matrix.Matrix) []string {
	var out []string
	for _, r := range m.Rows {
		for _, c := range r.Cells {
			out = append(out, fmt.Sprint(r.Verdict, r.Name, r.Field, c.Declared, c.Live, slices.Sorted(slices.Values(c.Columns))))
		}
	}
	slices.Sort(out)
	return out
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
		if diff := cmp.Diff(groups(m), groups(matrix.Of(columns))); diff != "" {
			t.Fatalf("the order of columns counts (-one +other):\n%s", diff)
		}
	}
}
