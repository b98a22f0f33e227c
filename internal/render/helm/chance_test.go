package helm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// TestLookup: what a template reads of the cluster is an input of the render,
// and the template cannot change what others see.
func TestLookup(t *testing.T) {
	live := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": "b2xk"}}
	var asked []string
	lookup := func(_ context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
		asked = append(asked, strings.Join([]string{apiVersion, kind, namespace, name}, "/"))
		if name == "denied" {
			return nil, rutter.Errorf(rutter.CodeForbidden, "the tenant may not read secrets")
		}
		if name == "s" {
			return live, nil
		}
		return nil, nil
	}
	text := `{{ $s := lookup "v1" "Secret" "ns" "s" }}{{ $_ := set $s.data "password" "Y2hhbmdlZA==" }}{{ $again := lookup "v1" "Secret" "ns" "s" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data: {v: '{{ $again.data.password }} {{ len (lookup "v1" "Secret" "ns" "none") }}'}
`
	with := func(text string, l rutter.Lookup) helm.Input {
		files := chart(map[string]string{"templates/x.yaml": text})
		in := input(t, files, rutter.HelmOptions{})
		in.Repo = record.New(t.Context(), rendertest.Snapshot(files), record.Options{Lookup: l})
		return in
	}
	in := with(text, lookup)
	objs, _, err := render(t, in)
	if err != nil {
		t.Fatal(err)
	}
	if got := contents(objs)["x"]; got != "b2xk 0" {
		t.Errorf("got %q", got)
	}
	if diff := cmp.Diff([]string{"v1/Secret/ns/s", "v1/Secret/ns/none"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	seen := 0
	for _, i := range in.Repo.Inputs() {
		if i.Kind == rutter.InputLive {
			seen++
		}
	}
	if seen != 2 || !in.Repo.IsSecret() {
		t.Errorf("%d look-ups are inputs, secret %v", seen, in.Repo.IsSecret())
	}
	if objs, _, err = render(t, with(`apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data: {v: '{{ len (lookup "v1" "Secret" "ns" "s") }}'}
`, nil)); err != nil || contents(objs)["x"] != "0" {
		t.Errorf("without permission: %v, %v", contents(objs), err)
	}
	if _, _, err = render(t, with(`{{ lookup "v1" "Secret" "ns" "denied" }}`, lookup)); err == nil || !strings.Contains(err.Error(), "may not read secrets") {
		t.Errorf("a look-up that is refused: %v", err)
	}
}

// TestB21GuardedRandomValue is scenario B21: a password that is made unless the
// cluster has one. It is found, frozen by the engine, and once it is in the
// cluster the render does not change any more.
func TestB21GuardedRandomValue(t *testing.T) {
	files := chart(map[string]string{"templates/s.yaml": `{{- $old := lookup "v1" "Secret" .Release.Namespace "s" }}
apiVersion: v1
kind: Secret
metadata: {name: s}
data:
  user: YWRtaW4=
  password: {{ if $old }}{{ $old.data.password }}{{ else }}{{ randAlphaNum 20 | b64enc }}{{ end }}
`})
	var live map[string]any
	renderOnce := func() (rutter.Object, []string, helm.Input) {
		in := input(t, files, rutter.HelmOptions{})
		in.Repo = record.New(t.Context(), rendertest.Snapshot(files), record.Options{Lookup: func(context.Context, string, string, string, string) (map[string]any, error) { return live, nil }})
		objs, warnings, err := render(t, in)
		if err != nil {
			t.Fatal(err)
		}
		return objs[0], warnings, in
	}
	first, warnings, in := renderOnce()
	if diff := cmp.Diff([]string{"/data/password"}, first.Random); diff != "" {
		t.Errorf("random fields (-want +got):\n%s", diff)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "Secret/s: /data/password") || !in.Repo.IsSecret() {
		t.Errorf("warnings %q, secret %v", warnings, in.Repo.IsSecret())
	}
	live = first.Object // it is applied
	for range 2 {
		again, warnings, _ := renderOnce()
		if !cmp.Equal(first.Object, again.Object) || len(again.Random) > 0 || len(warnings) > 0 {
			t.Errorf("the second render is another one: random %v, warnings %q", again.Random, warnings)
		}
	}
}

func TestRandom(t *testing.T) {
	const cm = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	tests := map[string]struct {
		text   string
		random []string
		err    string
	}{
		"a key with slash and tilde":         {text: cm + "data: {\"a/b~c\": '{{ randAlpha 5 }}', d: fixed}\n", random: []string{"/data/a~1b~0c"}},
		"the deepest field":                  {text: "apiVersion: v1\nkind: Custom\nmetadata: {name: x}\nspec: {l: [{a: 1}, {a: {{ randNumeric 12 | quote }}, b: 1}]}\n", random: []string{"/spec/l/1/a"}},
		"a list of another length":           {text: "apiVersion: v1\nkind: Custom\nmetadata: {name: x}\nspec: {l: {{ if eq (randInt 0 2) 0 }}[1]{{ else }}[1, 2]{{ end }}}\n", random: []string{"/spec/l"}},
		"a key by chance":                    {text: cm + "data: {same: x{{ if eq (randInt 0 2) 0 }}, more: y{{ end }}}\n", random: []string{"/data/more"}},
		"a coin is found out every time":     {text: cm + "data: {a: '{{ randInt 0 2 }}', b: '{{ randNumeric 1 }}', c: '{{ shuffle \"ab\" }}'}\n", random: []string{"/data/a", "/data/b", "/data/c"}},
		"the year":                           {text: cm + "data: {a: '{{ now | date \"2006\" }}', m: '{{ now | date \"01\" }}', d: '{{ now | date \"02\" }}', fixed: '{{ dateInZone \"2006\" (int64 0) \"UTC\" }}'}\n", random: []string{"/data/a", "/data/d", "/data/m"}},
		"a date of nothing is now":           {text: cm + "data: {a: '{{ date \"2006-01-02\" \"\" }}', b: '{{ htmlDate nil }}', c: '{{ ago (int64 0) }}'}\n", random: []string{"/data/a", "/data/b", "/data/c"}},
		"called for nothing":                 {text: "{{ $_ := randAlpha 5 }}" + cm},
		"the order of keys is no chance":     {text: cm + "data: {a: '{{ keys .Values.m | join \",\" }} {{ values .Values.m | join \",\" }}'}\n"},
		"in a template that is included":     {text: `{{ define "p" }}{{ randAlpha 9 }}{{ end }}` + cm + "data: {a: '{{ include \"p\" . | sha256sum }}', b: '{{ tpl \"{{ uuidv4 }}\" . }}'}\n", random: []string{"/data/a", "/data/b"}},
		"a random name":                      {text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'x-{{ randAlpha 5 | lower }}'}\n", err: "names its objects by chance"},
		"a random kind":                      {text: "apiVersion: v1\nkind: '{{ randAlpha 5 }}'\nmetadata: {name: x}\n", err: "names its objects by chance"},
		"more or fewer objects":              {text: cm + "{{ if eq (randInt 0 2) 0 }}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n{{ end }}", err: "objects the first time"},
		"a hook may have a new name":         {text: "apiVersion: v1\nkind: Pod\nmetadata: {name: 't-{{ randAlpha 5 | lower }}', annotations: {helm.sh/hook: test}}\n", random: []string{"/metadata/name"}},
		"the second time the template fails": {text: `{{ if eq (now | date "2006") "` + fmt.Sprint(year()) + `" }}` + cm + `{{ else }}{{ fail "too late" }}{{ end }}`, err: "too late"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				objs, _, err := render(t, input(t, chart(map[string]string{"templates/x.yaml": tt.text, "values.yaml": "m: {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6}\n"}), rutter.HelmOptions{}))
				if tt.err != "" {
					if err == nil || !strings.Contains(err.Error(), tt.err) {
						t.Fatalf("no error that says %q: %v", tt.err, err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.random, objs[0].Random); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
