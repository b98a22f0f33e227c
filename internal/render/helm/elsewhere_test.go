package helm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// elsewhere are repositories by URL, and what was asked of them.
type elsewhere struct {
	mu    sync.Mutex
	asked []rutter.Repo
	have  map[string]map[string]string
}

func (e *elsewhere) fetch(_ context.Context, repo rutter.Repo) (rutter.Snapshot, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, repo)
	if strings.Contains(repo.URL, "private") {
		return nil, rutter.Errorf(rutter.CodeForbidden, "repository %s: the credential registry-team was refused", repo.URL)
	}
	files, ok := e.have[strings.TrimSuffix(repo.URL+"/"+repo.Chart, "/")]
	if !ok {
		return nil, rutter.Errorf(rutter.CodeNotFound, "%s has no chart %s", repo.URL, repo.Chart)
	}
	return rendertest.Snapshot(files), nil
}

// inputFrom is input with repositories elsewhere.
func inputFrom(t *testing.T, files map[string]string, opts rutter.HelmOptions, e *elsewhere) helm.Input {
	t.Helper()
	in := input(t, files, opts)
	snap := rendertest.Snapshot(files)
	in.Repo = record.New(t.Context(), snap, record.Options{Fetch: e.fetch})
	in.Env = buildenv.New(rutter.RenderRequest{Snapshot: snap})
	in.Project = "team"
	return in
}

func subchart(name, version string) map[string]string {
	return map[string]string{
		"Chart.yaml":        "apiVersion: v2\nname: " + name + "\nversion: " + version + "\n",
		"values.yaml":       "x: 0\n",
		"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\ndata: {v: '{{ .Chart.Version }} {{ .Values.x }}'}\n",
	}
}

func contents(objs []rutter.Object) map[string]string {
	out := map[string]string{}
	for _, o := range objs {
		data, _ := o.Object["data"].(map[string]any)
		out[o.GetName()] = fmt.Sprint(data["v"])
	}
	return out
}

const head = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n"

func TestDependenciesFromElsewhere(t *testing.T) {
	nested := subchart("mid", "1.0.0")
	nested["Chart.yaml"] += "dependencies: [{name: leaf, version: 1.x, repository: 'https://charts.example.com'}]\n"
	for f, data := range subchart("leaf", "1.5.0") {
		nested["charts/leaf/"+f] = data
	}
	have := map[string]map[string]string{
		"https://charts.example.com/db":      subchart("db", "1.2.0"),
		"oci://registry.example.com/team/db": subchart("db", "1.3.0"),
		"@stable/db":                         subchart("db", "1.4.0"),
		"https://charts.example.com/mid":     nested,
		"https://charts.example.com/other":   subchart("impostor", "1.0.0"),
	}
	tests := map[string]struct {
		deps  string
		files map[string]string
		want  map[string]string
		asked []rutter.Repo
	}{
		"the range, when nothing is locked": {deps: "- {name: db, version: 1.x, repository: 'https://charts.example.com'}\n", want: map[string]string{"db": "1.2.0 0"},
			asked: []rutter.Repo{{URL: "https://charts.example.com", Chart: "db", Revision: "1.x", Project: "team"}}},
		"a registry": {deps: "- {name: db, version: 1.3.0, repository: 'oci://registry.example.com/team'}\n", want: map[string]string{"db": "1.3.0 0"},
			asked: []rutter.Repo{{URL: "oci://registry.example.com/team", Chart: "db", Revision: "1.3.0", Project: "team"}}},
		"a registered name": {deps: "- {name: db, version: 1.x, repository: 'alias:stable'}\n", want: map[string]string{"db": "1.4.0 0"},
			asked: []rutter.Repo{{URL: "@stable", Chart: "db", Revision: "1.x", Project: "team"}}},
		"two names for one chart": {deps: "- {name: db, version: 1.x, repository: 'https://charts.example.com', alias: a}\n- {name: db, version: 1.x, repository: 'https://charts.example.com', alias: b}\n",
			files: map[string]string{"values.yaml": "a: {x: 1}\nb: {x: 2}\n"}, want: map[string]string{"a": "1.2.0 1", "b": "1.2.0 2"},
			asked: []rutter.Repo{{URL: "https://charts.example.com", Chart: "db", Revision: "1.x", Project: "team"}}},
		"with its own dependencies inside": {deps: "- {name: mid, version: 1.x, repository: 'https://charts.example.com'}\n", want: map[string]string{"mid": "1.0.0 0", "leaf": "1.5.0 0"},
			asked: []rutter.Repo{{URL: "https://charts.example.com", Chart: "mid", Revision: "1.x", Project: "team"}}},
		"one that is off is fetched and left out": {deps: "- {name: db, version: 1.x, repository: 'https://charts.example.com', condition: db.enabled}\n", files: map[string]string{"values.yaml": "db: {enabled: false}\n"}, want: map[string]string{},
			asked: []rutter.Repo{{URL: "https://charts.example.com", Chart: "db", Revision: "1.x", Project: "team"}}},
		"one that is there is not fetched": {deps: "- {name: db, version: 1.x, repository: 'https://charts.example.com'}\n", files: map[string]string{"charts/db-1.0.0.tgz": packed(t, "db", subchart("db", "1.0.0"))}, want: map[string]string{"db": "1.0.0 0"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			files := chart(tt.files)
			files["chart/Chart.yaml"] = head + tt.deps
			e := &elsewhere{have: have}
			objs, _, err := render(t, inputFrom(t, files, rutter.HelmOptions{}, e))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, contents(objs)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.asked, e.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLock: what is locked is what is fetched, and a lock that belongs to other
// dependencies is refused. test/parity/helm has locks that helm itself made.
func TestLock(t *testing.T) {
	e := &elsewhere{have: map[string]map[string]string{"@stable/db": subchart("db", "1.2.0")}}
	files := map[string]string{
		"chart/Chart.yaml": head + "- {name: db, version: 1.x, repository: '@stable'}\n",
		"chart/Chart.lock": "dependencies:\n- {name: db, version: 1.2.0, repository: 'https://charts.example.com'}\ndigest: sha256:any\ngenerated: '2026-01-01T00:00:00Z'\n",
	}
	if _, _, err := render(t, inputFrom(t, files, rutter.HelmOptions{}, e)); err != nil {
		t.Fatal(err)
	}
	if e.asked[0].Revision != "1.2.0" {
		t.Errorf("asked for %s, want the locked version", e.asked[0].Revision)
	}
	for name, change := range map[string]map[string]string{
		"a digest of others":             {"chart/Chart.yaml": head + "- {name: db, version: 1.x, repository: 'https://charts.example.com'}\n"},
		"a version that does not fit":    {"chart/Chart.yaml": head + "- {name: db, version: 2.x, repository: '@stable'}\n"},
		"a dependency that is not in it": {"chart/Chart.yaml": files["chart/Chart.yaml"] + "- {name: more, version: 1.x, repository: '@stable'}\n"},
	} {
		_, _, err := render(t, inputFrom(t, rendertest.With(files, change), rutter.HelmOptions{}, e))
		if err == nil || !strings.Contains(err.Error(), "Chart.lock is out of sync") || !strings.Contains(err.Error(), "chart/Chart.yaml:5") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestB20CredentialsAreNamed is scenario B20's error: it comes from the source
// and must reach the user whole, with the place of the dependency.
func TestB20CredentialsAreNamed(t *testing.T) {
	files := map[string]string{"chart/Chart.yaml": head + "- name: db\n  version: 1.x\n  repository: oci://private.example.com/team\n"}
	_, _, err := render(t, inputFrom(t, files, rutter.HelmOptions{}, &elsewhere{}))
	if rutter.CodeOf(err) != rutter.CodeForbidden {
		t.Fatalf("code %q: %v", rutter.CodeOf(err), err)
	}
	for _, s := range []string{"chart/Chart.yaml:5", "dependency db 1.x (oci://private.example.com/team)", "registry-team"} {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("the error does not say %q: %v", s, err)
		}
	}
}

func TestDependencyErrors(t *testing.T) {
	e := &elsewhere{have: map[string]map[string]string{"https://charts.example.com/db": subchart("impostor", "1.0.0"), "https://charts.example.com/old": subchart("old", "0.1.0")}}
	tests := map[string]struct {
		dep  string
		code rutter.Code
		says string
	}{
		"another chart":          {"{name: db, version: 1.x, repository: 'https://charts.example.com'}", rutter.CodeInvalid, "what was found is chart impostor 1.0.0"},
		"another version":        {"{name: old, version: 1.x, repository: 'https://charts.example.com'}", rutter.CodeInvalid, "what was found is chart old 0.1.0"},
		"unknown there":          {"{name: nope, version: 1.x, repository: 'https://charts.example.com'}", rutter.CodeNotFound, "has no chart nope"},
		"no repository":          {"{name: db, version: 1.x}", rutter.CodeNotFound, "no repository is named"},
		"out of the tree":        {"{name: db, version: 1.x, repository: 'file://../../../etc'}", rutter.CodeInvalid, "leaves the repository"},
		"on this machine":        {"{name: db, version: 1.x, repository: 'file:///etc'}", rutter.CodeInvalid, "absolute path"},
		"itself":                 {"{name: web, version: 1.x, repository: 'file://.'}", rutter.CodeInvalid, "nested too deeply"},
		"a password in the URL":  {"{name: nope, version: 1.x, repository: 'https://user:hunter2@charts.example.com?token=hunter2'}", rutter.CodeNotFound, "(https://charts.example.com)"},
		"a folder without chart": {"{name: db, version: 1.x, repository: 'file://nothing'}", rutter.CodeNotFound, "holds no Chart.yaml"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := render(t, inputFrom(t, map[string]string{"chart/Chart.yaml": head + "- " + tt.dep + "\n"}, rutter.HelmOptions{}, e))
			if err == nil || rutter.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "chart/Chart.yaml:5") {
				t.Errorf("code %q, want %q, says %q: %v", rutter.CodeOf(err), tt.code, tt.says, err)
			}
		})
	}
}

func TestRemoteValueFiles(t *testing.T) {
	e := &elsewhere{have: map[string]map[string]string{
		"https://example.com/envs/prod.yaml":    {"prod.yaml": "x: remote\n"},
		"http://example.com/bad.yaml":           {"bad.yaml": "- no\n"},
		"https://example.com/envs/*.yaml":       {"*.yaml": "x: star\n"},
		"https://example.com/prod.yaml?token=s": {"prod.yaml": "x: query\n"},
	}}
	tests := map[string]struct {
		opts    rutter.HelmOptions
		schemes []string
		want    string
		code    rutter.Code
		says    string
	}{
		"over HTTPS":            {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/envs/prod.yaml"}}, want: "1.0.0 remote"},
		"with the environment":  {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/envs/$UNKNOWN/prod.yaml"}}, code: rutter.CodeNotFound, says: "fetch https://example.com/envs//prod.yaml"},
		"a later file wins":     {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/envs/prod.yaml", "local.yaml"}}, want: "1.0.0 local"},
		"never a pattern":       {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/envs/*.yaml"}}, want: "1.0.0 star"},
		"with a query":          {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/prod.yaml?token=s"}}, want: "1.0.0 query"},
		"a file parameter":      {opts: rutter.HelmOptions{FileParameters: []rutter.HelmFile{{Name: "x", Path: "https://example.com/envs/prod.yaml"}}}, want: "1.0.0 x: remote\n"},
		"missing is an error":   {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/gone.yaml"}, IgnoreMissingValueFiles: true}, code: rutter.CodeNotFound, says: "https://example.com/gone.yaml"},
		"no values":             {opts: rutter.HelmOptions{ValueFiles: []string{"http://example.com/bad.yaml"}}, code: rutter.CodeInvalid, says: "http://example.com/bad.yaml:1: cannot be read: it is no mapping, but of the kind array"},
		"another protocol":      {opts: rutter.HelmOptions{ValueFiles: []string{"ftp://u:hunter2@example.com/v.yaml"}}, code: rutter.CodeInvalid, says: "ftp://example.com/v.yaml: files are not read over ftp here (allowed: http, https)"},
		"a protocol allowed":    {opts: rutter.HelmOptions{ValueFiles: []string{"http://example.com/bad.yaml"}}, schemes: []string{"https"}, code: rutter.CodeInvalid, says: "not read over http here (allowed: https)"},
		"none allowed":          {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/envs/prod.yaml"}}, schemes: []string{}, code: rutter.CodeInvalid, says: "not read over https here"},
		"this machine's files":  {opts: rutter.HelmOptions{ValueFiles: []string{"file:///etc/passwd"}}, code: rutter.CodeInvalid, says: "not read over file here"},
		"nothing but a machine": {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/"}}, code: rutter.CodeInvalid, says: "names no file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"chart/local.yaml": "x: local\n"}
			for f, data := range subchart("web", "1.0.0") {
				files["chart/"+f] = strings.ReplaceAll(data, "'{{ .Chart.Version }} {{ .Values.x }}'", "{{ printf \"%s %s\" .Chart.Version (toString .Values.x) | quote }}")
			}
			in := inputFrom(t, files, tt.opts, e)
			in.ValuesFileSchemes = tt.schemes
			objs, _, err := render(t, in)
			if tt.code != "" {
				if rutter.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("code %q, want %q, says %q: %v", rutter.CodeOf(err), tt.code, tt.says, err)
				}
				return
			}
			if err != nil || contents(objs)["web"] != tt.want {
				t.Errorf("got %q, want %q: %v", contents(objs)["web"], tt.want, err)
			}
			for _, repo := range e.asked {
				if repo.Project != "team" || !repo.File {
					t.Errorf("asked for %+v: the project is missing, or it is no file", repo)
				}
			}
		})
	}
}

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

// TestSharedChartIsNotChanged renders one chart at the same time with many
// different values: none sees another's, and the shared chart stays as it was.
func TestSharedChartIsNotChanged(t *testing.T) {
	files := chart(map[string]string{
		"values.yaml": "db: {enabled: false, x: 1}\nlist: [a]\nm: {k: v}\n",
		"templates/x.yaml": `{{- $_ := set .Values "seen" "yes" }}{{ $_ := set .Values.m .Release.Name "own" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data: {v: {{ omit .Values "db" | toJson | quote }}, n: '{{ tpl .Values.t . }}'}
`,
	})
	files["chart/Chart.yaml"] = head + "- {name: db, version: 1.x, condition: db.enabled, alias: store}\n"
	for f, data := range subchart("db", "1.0.0") {
		files["chart/charts/db/"+f] = data
	}
	r := helm.New(helm.Limits{})
	one := func(i int) (string, error) {
		in := input(t, files, rutter.HelmOptions{ReleaseName: fmt.Sprintf("r%d", i%7), Parameters: []rutter.HelmParameter{
			{Name: "db.enabled", Value: fmt.Sprint(i%2 == 0)}, {Name: "store.x", Value: fmt.Sprint(i % 7)}, {Name: "t", Value: `is {{ .Release.Name }}`}}})
		objs, _, err := r.Render(t.Context(), in)
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(contentsOf(objs))
		return string(text), err
	}
	want := map[int]string{}
	for i := range 14 {
		var err error
		if want[i], err = one(i); err != nil {
			t.Fatal(err)
		}
	}
	if len(uniq(maps.Values(want))) < 7 {
		t.Fatalf("the renders are not different: %v", want)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 70 {
				n := (i + w) % 14
				if got, err := one(n); err != nil || got != want[n] {
					t.Errorf("render %d: got %s, want %s, %v", n, got, want[n], err)
					return
				}
			}
		})
	}
	wg.Wait()
}
