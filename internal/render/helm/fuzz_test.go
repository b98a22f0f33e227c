package helm

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// dumpChart shows all values that a template sees.
func dumpChart(t *testing.T, more map[string]string, opts rutter.HelmOptions) Input {
	t.Helper()
	files := map[string]string{
		"chart/Chart.yaml":       "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"chart/values.yaml":      "keep: {it: here}\nlist: [{a: 1}, {b: 2}]\n",
		"chart/templates/x.yaml": "apiVersion: v1\nkind: Custom\nmetadata: {name: x}\nspec: {{ toJson .Values }}\n",
	}
	maps.Copy(files, more)
	snap := rendertest.Snapshot(files)
	return Input{Repo: record.New(t.Context(), snap, record.Options{}), Path: "chart", Options: opts, AppName: "web", Namespace: "default",
		KubeVersion: "v1.37.2", Env: buildenv.New(rutter.RenderRequest{Snapshot: snap})}
}

// agree renders and traces the same input. Whatever it is: nothing panics, both
// fail or neither does, the same comes out twice, and the last layer of each
// value is what the template saw.
func agree(t *testing.T, r *Renderer, in Input, secret string) {
	t.Helper()
	objs, _, err := r.Render(t.Context(), in)
	layers, traceErr := r.Trace(t.Context(), in)
	if err != nil {
		if strings.Contains(err.Error(), "\n") || len(secret) > 8 && strings.Contains(err.Error(), secret) {
			t.Errorf("the error has lines, or repeats a value: %q", err)
		}
		if strings.Contains(err.Error(), "cannot be rendered:") {
			t.Errorf("a panic: %v", err)
		}
		return
	}
	if traceErr != nil {
		t.Fatalf("rendered, but not traced: %v", traceErr)
	}
	again, _, err := r.Render(t.Context(), in)
	if err != nil || len(objs) != 1 || !cmp.Equal(objs[0].Object, again[0].Object) {
		t.Fatalf("the second render is another one: %v", err)
	}
	spec, _ := objs[0].Object["spec"].(map[string]any)
	seen := map[string]any{}
	leaves(spec, nil, seen)
	last := map[string]rutter.ValueLayer{}
	for _, l := range layers {
		last[l.Path] = l
	}
	for p, v := range seen {
		if l, ok := last[p]; !ok || canonical(l.Value) != canonical(v) {
			t.Errorf("templates see %q = %s, the last layer is %+v", p, canonical(v), l)
		}
	}
}

// canonical is a value as comparable text, whatever the type of its number.
func canonical(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	var n any
	if json.Unmarshal(out, &n) != nil {
		return string(out)
	}
	if out, err = json.Marshal(n); err != nil {
		return err.Error()
	}
	return string(out)
}

func leaves(v any, at tokens, out map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		for k, each := range v {
			leaves(each, at.key(k), out)
		}
	case []any:
		for i, each := range v {
			leaves(each, at.index(i), out)
		}
	case nil:
	default:
		out[at.String()] = v
	}
}

func FuzzParameters(f *testing.F) {
	for _, seed := range [][2]string{
		{"a", "b"}, {"a.b.c", "1"}, {"list[1].b", "9"}, {"list[0]", "null"}, {"keep", "null"}, {"keep.it", "x"}, {"a", "{1,2,x}"}, {"a", "{}"}, {"a", "a,b\\,c"},
		{`a\.b`, "true"}, {"a[0][1]", "x"}, {"a=b,c", "d"}, {"a[", "x"}, {"", ""}, {"a", "{{ .Release.Name }}"}, {"a", "0123"}, {"a", "$ARGOCD_APP_NAME$$"}, {"list[5]", ""}, {"keep[0]", "x"}, {"a[65536]", "x"},
	} {
		f.Add(seed[0], seed[1], "second", "w", false)
		f.Add(seed[0], seed[1], seed[0], "{x}", true)
	}
	r := New(Limits{})
	f.Fuzz(func(t *testing.T, name, value, name2, value2 string, text bool) {
		if !utf8.ValidString(name + "\n" + value + "\n" + name2 + "\n" + value2) {
			t.Skip("no JSON holds it")
		}
		in := dumpChart(t, nil, rutter.HelmOptions{Parameters: []rutter.HelmParameter{{Name: name, Value: value, ForceString: text}, {Name: name2, Value: value2}}})
		agree(t, r, in, value)
	})
}

func FuzzValuesFile(f *testing.F) {
	for _, seed := range []string{
		"a: 1\n", "list: null\nkeep: {it: null}\n", "a: &x {b: 1}\nc: {<<: *x}\n", "a: 1\n---\na: 2\n", "- a\n", "\xEF\xBB\xBFa: 1\n", "\xFF\xFEa\x00", "a: !!binary aGk=\n", "yes: no\n1: 2\n2.5: x\n",
		"a: 123456789012345678901234567890\n", "a: .inf\n", "list: [1]\n", "list: {a: b}\n", "keep: text\n", "\ta: 1\n", "a: |\n  x\n ---\n", "? [a]\n: b\n", "a: 2001-01-01\n", "global: {x: 1}\n", "a.b: 1\n", "a: {}\nb: []\n", "--- {a: 1}\n...\n", aliases(),
	} {
		f.Add([]byte(seed), []byte("a: {b: 1}\n"))
	}
	r := New(Limits{})
	f.Fuzz(func(t *testing.T, one, two []byte) {
		in := dumpChart(t, map[string]string{"chart/one.yaml": string(one), "two.yaml": string(two)}, rutter.HelmOptions{ValueFiles: []string{"one.yaml", "/two.yaml"}, Values: string(two)})
		agree(t, r, in, "")
	})
}

func aliases() string {
	s := "a0: &a0 x\n"
	for _, n := range []string{"1", "2", "3", "4"} {
		s += "a" + n + ": &a" + n + " [*a0, *a0]\n"
	}
	return s
}
