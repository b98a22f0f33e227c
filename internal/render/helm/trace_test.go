package helm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// trace returns the layers as text: path, layer, place and value.
func trace(t *testing.T, in helm.Input) []string {
	t.Helper()
	layers, err := helm.New(helm.Limits{}).Trace(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range layers {
		place := l.File
		if l.Line > 0 {
			place = fmt.Sprintf("%s:%d", place, l.Line)
		}
		if l.Source > 0 {
			place = fmt.Sprintf("(%d)%s", l.Source, place)
		}
		value := fmt.Sprint(l.Value)
		if l.Removed {
			value = "removed"
		}
		out = append(out, strings.Join([]string{l.Path, l.Layer, place, value}, " "))
	}
	return out
}

func options(t *testing.T, text string) (o rutter.HelmOptions) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestB15SixLayers is scenario B15: each layer sets the same key. The parameter
// wins, all layers are listed in order, and another order of the files gives
// another result where nothing above hides it.
func TestB15SixLayers(t *testing.T) {
	files := chart(map[string]string{
		"values.yaml":       "# defaults\nimage:\n  tag: chart\n",
		"one.yaml":          "image: {tag: one}\n",
		"two.yaml":          "\n\nimage:\n  tag: two\n",
		"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {tag: '{{ .Values.image.tag }}'}\n",
	})
	const above = `
values: |
  image:
    tag: text
valuesObject: {image: {tag: object}}
parameters: [{name: image.tag, value: parameter}]
`
	opts := options(t, "valueFiles: [one.yaml, two.yaml]\n"+above)
	want := []string{
		"image.tag chart chart/values.yaml:3 chart",
		"image.tag valueFile chart/one.yaml:1 one",
		"image.tag valueFile chart/two.yaml:4 two",
		"image.tag values :2 text",
		"image.tag valuesObject  object",
		"image.tag parameter  parameter", //nolint:dupword // a layer, a place that is empty, a value
	}
	if diff := cmp.Diff(want, trace(t, input(t, files, opts))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	results := map[string]string{
		"valueFiles: [one.yaml, two.yaml]\n" + above: "parameter",
		"valueFiles: [one.yaml, two.yaml]\n":         "two",
		"valueFiles: [two.yaml, one.yaml]\n":         "one",
		"{}":                                         "chart",
		"valueFiles: [one.yaml]\nvalues: 'image: {tag: text}'\n":                                                                "text",
		strings.ReplaceAll("valueFiles: [two.yaml, one.yaml]\n"+above, "parameters: [{name: image.tag, value: parameter}]", ""): "object",
	}
	for o, tag := range results {
		objs, _, err := render(t, input(t, files, options(t, o)))
		if err != nil {
			t.Fatal(err)
		}
		if data, _ := objs[0].Object["data"].(map[string]any); data["tag"] != tag {
			t.Errorf("%q gives %v, want %s", o, data["tag"], tag)
		}
		lines := trace(t, input(t, files, options(t, o)))
		if last := lines[len(lines)-1]; !strings.HasSuffix(last, " "+tag) {
			t.Errorf("%q: the last layer is %q, want %s", o, last, tag)
		}
	}
	swapped := trace(t, input(t, files, options(t, "valueFiles: [two.yaml, one.yaml]\n"+above)))
	want[1], want[2] = want[2], want[1]
	if diff := cmp.Diff(want, swapped); diff != "" {
		t.Errorf("swapped (-want +got):\n%s", diff)
	}
}

func TestTrace(t *testing.T) {
	sub := map[string]string{
		"Chart.yaml":                 "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {name: db, version: 1.x, alias: store, import-values: [{child: give, parent: got}]}\n- {name: nope, version: 1.x, condition: nope.enabled}\n",
		"values.yaml":                "store:\n  size: 2Gi\nnope: {enabled: false}\n",
		"charts/db/Chart.yaml":       "apiVersion: v2\nname: db\nversion: 1.0.0\n",
		"charts/db/values.yaml":      "size: 1Gi\nlimits:\n  cpu: 1\n  memory: 1Gi\ngive:\n  a: 1\n",
		"charts/nope/Chart.yaml":     "apiVersion: v2\nname: nope\nversion: 1.0.0\n",
		"charts/nope/values.yaml":    "x: 1\n",
		"charts/db/templates/x.yaml": "",
	}
	tests := map[string]struct {
		files map[string]string
		opts  string
		want  []string
	}{
		"a value of a dependency under its alias": {files: sub, opts: "valuesObject: {store: {limits: {cpu: null}}}", want: []string{
			"got.a dependency chart/charts/db/values.yaml:6 1",
			"nope.enabled chart chart/values.yaml:3 false",
			"store.give.a dependency chart/charts/db/values.yaml:6 1",
			"store.limits.cpu dependency chart/charts/db/values.yaml:3 1",
			"store.limits.cpu valuesObject  removed",
			"store.limits.memory dependency chart/charts/db/values.yaml:4 1Gi",
			"store.size dependency chart/charts/db/values.yaml:1 1Gi",
			"store.size chart chart/values.yaml:2 2Gi",
		}},
		"a null takes a whole mapping away": {files: map[string]string{"values.yaml": "a:\n  b: 1\n  c: {d: 2}\n", "one.yaml": "x: 1\na: ~\n"}, opts: "valueFiles: [one.yaml]", want: []string{
			"a valueFile chart/one.yaml:2 removed",
			"a.b chart chart/values.yaml:2 1",
			"a.b valueFile chart/one.yaml:2 removed",
			"a.c.d chart chart/values.yaml:3 2",
			"a.c.d valueFile chart/one.yaml:2 removed",
			"x valueFile chart/one.yaml:1 1",
		}},
		"a list is replaced as a whole": {files: map[string]string{"values.yaml": "l:\n- {name: a, port: 1}\n- {name: b}\n", "one.yaml": "l:\n- name: c\n"}, opts: "valueFiles: [one.yaml]", want: []string{
			"l[0].name chart chart/values.yaml:2 a",
			"l[0].name valueFile chart/one.yaml:2 c",
			"l[0].port chart chart/values.yaml:2 1",
			"l[0].port valueFile chart/one.yaml:2 removed",
			"l[1].name chart chart/values.yaml:3 b",
			"l[1].name valueFile chart/one.yaml:1 removed",
		}},
		"a mapping over a single value, and the reverse": {files: map[string]string{"values.yaml": "a: 1\nb: {c: 2}\n"}, opts: "values: |\n  a: {x: 1}\n  b: text\n", want: []string{
			"a chart chart/values.yaml:1 1",
			"a values :1 removed",
			"a.x values :1 1",
			"b values :2 text",
			"b.c chart chart/values.yaml:2 2",
			"b.c values :2 removed",
		}},
		"parameters": {files: map[string]string{"values.yaml": "l: [{p: 1, q: 2}, {p: 2}]\nm: {a.b: 1}\n", "f.txt": "text"}, opts: `
parameters: [{name: 'l[1].p', value: "9"}, {name: 'm.a\.b', value: "null"}, {name: both, value: "1", forceString: true}, {name: both, value: "2"}]
fileParameters: [{name: file, path: f.txt}]`, want: []string{
			"both parameter  2",
			"file fileParameter chart/f.txt text",
			"l[0].p chart chart/values.yaml:1 1",
			"l[0].p parameter  removed",
			"l[0].q chart chart/values.yaml:1 2",
			"l[0].q parameter  removed",
			"l[1].p chart chart/values.yaml:1 2",
			"l[1].p parameter  9",
			`m.a\.b chart chart/values.yaml:2 1`,
			`m.a\.b parameter  removed`,
		}},
		"values beside valuesObject has no effect": {files: map[string]string{}, opts: "values: 'a: 1'\nvaluesObject: {b: 2}", want: []string{"b valuesObject  2"}},
		"an empty mapping that is filled":          {files: map[string]string{"values.yaml": "r: {}\n"}, opts: "valuesObject: {r: {cpu: 1}}", want: []string{"r chart chart/values.yaml:1 map[]", "r.cpu valuesObject  1"}},
		"several documents and a merge key":        {files: map[string]string{"one.yaml": "base: &b {x: 1}\n---\nuse:\n  z: 2\n", "values.yaml": "k: &k {z: 1}\nj:\n  <<: *k\n"}, opts: "valueFiles: [one.yaml]", want: []string{"base.x valueFile chart/one.yaml:1 1", "j.z chart chart/values.yaml:1 1", "k.z chart chart/values.yaml:1 1", "use.z valueFile chart/one.yaml:4 2"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, trace(t, input(t, chart(tt.files), options(t, tt.opts)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTraceNamesTheSource: a file of another source carries that source's number.
func TestTraceNamesTheSource(t *testing.T) {
	in := input(t, chart(nil), rutter.HelmOptions{ValueFiles: []string{"$zeta/v.yaml", "$alpha/v.yaml"}})
	in.Refs = map[string]*record.FS{
		"zeta":  in.Repo.Beside(rendertest.Snapshot(map[string]string{"v.yaml": "a: zeta\n"}), 2),
		"alpha": in.Repo.Beside(rendertest.Snapshot(map[string]string{"v.yaml": "\na: alpha\n"}), 1),
	}
	want := []string{"a valueFile (2)v.yaml:1 zeta", "a valueFile (1)v.yaml:2 alpha"}
	if diff := cmp.Diff(want, trace(t, in)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTraceEndsWithWhatTheChartSees: for every value the last layer's is the
// one that templates get, over all charts of these tests.
func TestTraceEndsWithWhatTheChartSees(t *testing.T) {
	for _, name := range []string{"functions", "nulls", "layers"} {
		own, values, opts := repository(t, name)
		own["chart/templates/zz-all.yaml"] = "apiVersion: v1\nkind: Custom\nmetadata: {name: zz-all}\nspec: {{ omit .Values \"global\" | toJson }}\n"
		in := input(t, own, opts)
		in.Refs = map[string]*record.FS{"values": in.Repo.Beside(rendertest.Snapshot(values), 1)}
		objs, _, err := render(t, in)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(objs, func(o rutter.Object) bool { return o.GetName() == "zz-all" })
		seen := map[string]string{}
		flatten(objs[i].Object["spec"], "", seen)
		layers, err := helm.New(helm.Limits{}).Trace(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		last := map[string]rutter.ValueLayer{}
		for _, l := range layers {
			last[l.Path] = l
		}
		for p, v := range seen {
			if l, ok := last[p]; strings.Contains(p, "global") {
				continue
			} else if !ok || fmt.Sprint(l.Value) != v {
				t.Errorf("%s: templates see %s = %s, the last layer is %+v", name, p, v, l)
			}
		}
	}
}

func flatten(v any, at string, out map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for k, each := range v {
			flatten(each, strings.TrimPrefix(at+"."+strings.ReplaceAll(k, ".", `\.`), "."), out)
		}
	case []any:
		for i, each := range v {
			flatten(each, fmt.Sprintf("%s[%d]", at, i), out)
		}
	case nil:
	default:
		out[at] = fmt.Sprint(v)
	}
}
