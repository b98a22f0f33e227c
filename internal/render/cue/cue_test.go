package cue_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/cue"
	"github.com/rutterhq/rutter/internal/render/isolate"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == isolate.Command {
		isolate.Serve(map[string]isolate.Task{cue.TaskName: cue.Task})
	}
	os.Exit(m.Run())
}

// pool evaluates in children, as the product does.
func pool(t *testing.T, memory int64) *isolate.Pool {
	t.Helper()
	p := isolate.New(isolate.Options{Command: []string{os.Args[0], isolate.Command}, MaxMemory: memory})
	t.Cleanup(p.Close)
	return p
}

const cm = `{apiVersion: "v1", kind: "ConfigMap", metadata: name: %q}`

func object(name string) string { return fmt.Sprintf(cm, name) }

func input(t *testing.T, files map[string]string, opts rutter.PluginOptions) cue.Input {
	t.Helper()
	snap := rendertest.Snapshot(files)
	return cue.Input{Repo: record.New(t.Context(), snap, record.Options{}), Path: "app", Options: opts,
		Env: buildenv.New(rutter.RenderRequest{Snapshot: snap, Instance: "shop"})}
}

func names(objs []rutter.Object) []string {
	var out []string
	for _, o := range objs {
		out = append(out, fmt.Sprintf("%s %s:%d", o.GetName(), o.Origin.File, o.Origin.Line))
	}
	return out
}

const module = "module: \"example.com/shop\"\nlanguage: version: \"v0.9.0\"\n"

func TestRender(t *testing.T) {
	prod, web := "prod", "web"
	tests := map[string]struct {
		files map[string]string
		opts  rutter.PluginOptions
		want  []string
	}{
		"one object at the top": {files: map[string]string{"app/a.cue": "apiVersion: \"v1\"\nkind: \"ConfigMap\"\nmetadata: name: \"a\"\n"}, want: []string{"a app/a.cue:1"}},
		"in structs and lists, in order": {files: map[string]string{"app/a.cue": "package a\n\nx: y: " + object("xy") + "\nl: [" + object("l0") + ", [" + object("l1") + "]]\n"},
			want: []string{"xy app/a.cue:3", "l0 app/a.cue:4", "l1 app/a.cue:4"}},
		"definitions, hidden and optional fields are none": {files: map[string]string{"app/a.cue": "#d: " + object("d") + "\n_h: " + object("h") + "\no?: " + object("o") + "\nx: _h\n"}, want: []string{"h app/a.cue:2"}},
		"each once, though it is listed again":             {files: map[string]string{"app/a.cue": "d: a: " + object("a") + "\nall: [for x in d {x}]\n"}, want: []string{"a app/a.cue:1"}},
		"a list is expanded":                               {files: map[string]string{"app/a.cue": "l: {apiVersion: \"v1\", kind: \"List\", items: [" + object("i") + "]}\n"}, want: []string{"i app/a.cue:1"}},
		"schema and data from two files": {files: map[string]string{
			"app/schema.cue": "package a\n\n#CM: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: string, ...}\ncm: [Name=_]: #CM & {metadata: name: Name}\n",
			"app/data.cue":   "package a\n\ncm: one: {}\ncm: two: data: k: \"v\"\n"}, want: []string{"one app/data.cue:3", "two app/data.cue:4"}},
		"parents' files of the same package": {files: map[string]string{
			"cue.mod/module.cue": module, "all.cue": "package a\n\n_team: \"web\"\n", "app/a.cue": "package a\n\nx: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: _team}\n"},
			want: []string{"web app/a.cue:3"}},
		"a package of the module": {files: map[string]string{
			"cue.mod/module.cue": module, "lib/lib.cue": "package lib\n\n#CM: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: string}\n",
			"app/a.cue": "package a\n\nimport \"example.com/shop/lib\"\n\nx: lib.#CM & {metadata: name: \"x\"}\n"}, want: []string{"x app/a.cue:5"}},
		"vendored modules": {files: map[string]string{
			"cue.mod/module.cue": module, "cue.mod/pkg/k8s.io/api/core/v1/t.cue": "package v1\n\n#CM: {apiVersion: \"v1\", kind: \"ConfigMap\", ...}\n",
			"cue.mod/gen/k8s.io/api/core/v1/g.cue": "package v1\n\n#CM: metadata: name: string\n", "cue.mod/usr/k8s.io/api/core/v1/u.cue": "package v1\n\n#CM: data: vendored: \"yes\"\n",
			"app/a.cue": "package a\n\nimport core \"k8s.io/api/core/v1\"\n\nx: core.#CM & {metadata: name: \"x\"}\n"}, want: []string{"x app/a.cue:5"}},
		"tags": {files: map[string]string{"app/a.cue": "env: string @tag(env)\nn: int @tag(n,type=int)\napp: string @tag(name)\nx: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"\\(app)-\\(env)-\\(n+1)\"}\n"},
			opts: rutter.PluginOptions{Env: []rutter.PluginEnv{{Name: "name", Value: "$ARGOCD_APP_NAME"}, {Name: "env", Value: "dev"}, {Name: "n", Value: "2"}}, Parameters: []rutter.PluginParameter{{Name: "env", String: &prod}}},
			want: []string{"shop-prod-3 app/a.cue:4"}},
		"tags of files and short values": {files: map[string]string{"app/a.cue": "package a\n\nenv: \"dev\" | \"prod\" @tag(env,short=dev|prod)\nx: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: env}\n",
			"app/b.cue": "@if(extra)\n\npackage a\n\ny: " + object("extra")},
			opts: rutter.PluginOptions{Parameters: []rutter.PluginParameter{{Name: "tags", Array: []string{"prod", "extra"}}}}, want: []string{"prod app/a.cue:4", "extra app/b.cue:5"}},
		"files that are embedded": {files: map[string]string{"cue.mod/module.cue": "module: \"example.com/shop\"\nlanguage: version: \"v0.12.0\"\n", "app/name.txt": "web", "app/cm.yaml": "data: {k: v}\n",
			"app/a.cue": "@extern(embed)\npackage a\n\nx: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: _name, _f}\n_f: _ @embed(file=cm.yaml)\n_name: string @embed(file=name.txt, type=text)\n"},
			opts: rutter.PluginOptions{Parameters: nil}, want: []string{web + " app/a.cue:4"}},
		"tool and test files are left out": {files: map[string]string{"app/a.cue": "package a\nx: " + object("x"), "app/a_tool.cue": "package a\ny: " + object("y"), "app/a_test.cue": "package a\nz: " + object("z"), "app/_b.cue": "package b"}, want: []string{"x app/a.cue:2"}},
		"defaults":                         {files: map[string]string{"app/a.cue": "x: *" + object("a") + " | " + object("b") + "\nr: *1 | int\n"}, want: []string{"a app/a.cue:1"}},
		"nothing":                          {files: map[string]string{"app/a.cue": "x: 1\n"}},
	}
	shared := pool(t, 0)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var inputs [][]rutter.Input
			for _, p := range []*isolate.Pool{nil, shared} {
				in := input(t, tt.files, tt.opts)
				in.Pool = p
				objs, warnings, err := cue.Render(in)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, names(objs)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if (len(objs) == 0) != (len(warnings) == 1) {
					t.Errorf("warnings: %q", warnings)
				}
				inputs = append(inputs, in.Repo.Inputs())
			}
			if diff := cmp.Diff(inputs[0], inputs[1]); diff != "" {
				t.Errorf("a child records other inputs (-here +child):\n%s", diff)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	text := "x"
	tests := map[string]struct {
		files map[string]string
		opts  rutter.PluginOptions
		want  string
	}{
		"syntax":                       {files: map[string]string{"app/a.cue": "package a\n\nx: {\n"}, want: "app/a.cue:"},
		"incomplete, with its path":    {files: map[string]string{"app/a.cue": "x: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"x\",\n data: k: string}\n"}, want: "app/a.cue:2: x.data.k: incomplete value string"},
		"incomplete beside the object": {files: map[string]string{"app/a.cue": "env: string\nif env == \"prod\" {x: " + object("x") + "}\n"}, want: "app/a.cue:"},
		"conflict":                     {files: map[string]string{"app/a.cue": "package a\na: 1\n", "app/b.cue": "package a\na: 2\n"}, want: "a: conflicting values 2 and 1"},
		"a required field":             {files: map[string]string{"app/a.cue": "#D: {n!: string}\nx: #D\n"}, want: "x.n: field is required but not present"},
		"kind is open":                 {files: map[string]string{"app/a.cue": "x: {apiVersion: \"v1\", kind: string}\n"}, want: "app/a.cue:1: x.kind: incomplete value string"},
		"no name":                      {files: map[string]string{"app/a.cue": "\nx: {apiVersion: \"v1\", kind: \"ConfigMap\"}\n"}, want: "app/a.cue:2: x: ConfigMap has no metadata.name"},
		"a module elsewhere":           {files: map[string]string{"cue.mod/module.cue": module + "deps: \"other.com/lib@v0\": v: \"v0.1.0\"\n", "app/a.cue": "package a\n\nimport \"other.com/lib\"\n\nx: lib.x\n"}, want: `app/a.cue:3: import failed: import "other.com/lib": it is not in the repository, and modules are not fetched: copy the package to cue.mod/pkg/other.com/lib`},
		"a module nobody names":        {files: map[string]string{"cue.mod/module.cue": module, "app/a.cue": "package a\n\nimport \"other.com/lib\"\n\nx: lib.x\n"}, want: "app/a.cue:3:"},
		"two packages":                 {files: map[string]string{"app/a.cue": "package a\n", "app/b.cue": "package b\n"}, want: "app holds several CUE packages: a, b"},
		"no package":                   {files: map[string]string{"app/README": "x"}, want: "app holds no CUE files"},
		"no such tag":                  {files: map[string]string{"app/a.cue": "x: 1\n"}, opts: rutter.PluginOptions{Parameters: []rutter.PluginParameter{{Name: "env", String: &text}}}, want: `no tag for "env"`},
		"a tag that is no word":        {files: map[string]string{"app/a.cue": "x: 1\n"}, opts: rutter.PluginOptions{Env: []rutter.PluginEnv{{Name: "a=b", Value: "c"}}}, want: `"a=b" cannot be the name of a tag`},
		"a parameter that is a map":    {files: map[string]string{"app/a.cue": "x: 1\n"}, opts: rutter.PluginOptions{Parameters: []rutter.PluginParameter{{Name: "m", Map: map[string]string{"a": "b"}}}}, want: `"m" must be a string`},
		"the clock is no tag":          {files: map[string]string{"app/a.cue": "t: string @tag(now,var=now)\n"}, want: "t: incomplete value string"},
		"a path out of the repository": {files: map[string]string{"cue.mod/module.cue": module, "app/a.cue": "package a\n\nimport \"../../etc:etc\"\n\nx: etc.x\n"}, want: "app/a.cue:3:"},
		"an absolute import":           {files: map[string]string{"cue.mod/module.cue": module, "app/a.cue": "package a\n\nimport \"/etc\"\n\nx: etc.x\n"}, want: "/etc"},
		"a replacement outside":        {files: map[string]string{"cue.mod/module.cue": "module: \"example.com/shop\"\nlanguage: version: \"v0.17.0\"\n" + "deps: \"other.com/lib@v0\": v: \"v0.1.0\"\n", "cue.mod/local-module.cue": "deps: \"other.com/lib@v0\": replaceWith: \"/etc\"\n", "app/a.cue": "package a\n\nimport \"other.com/lib\"\n\nx: lib.x\n"}, want: "other.com/lib"},
		"embedding a parent":           {files: map[string]string{"cue.mod/module.cue": "module: \"example.com/shop\"\nlanguage: version: \"v0.12.0\"\n", "app/a.cue": "@extern(embed)\npackage a\n\nx: _ @embed(file=\"../../etc/passwd\",type=text)\n"}, want: "app/a.cue:4: @embed: cannot refer to parent directory"},
		"embedding from the disk":      {files: map[string]string{"cue.mod/module.cue": "module: \"example.com/shop\"\nlanguage: version: \"v0.12.0\"\n", "app/a.cue": "@extern(embed)\npackage a\n\nx: _ @embed(file=\"/etc/passwd\",type=text)\n"}, want: "app/a.cue:4: @embed: only relative files are allowed"},
		"deep parentheses":             {files: map[string]string{"app/a.cue": "x: " + strings.Repeat("(", 100000)}, want: "app/a.cue:1:"},
		"a cycle":                      {files: map[string]string{"app/a.cue": "x: {y: x}\n"}, want: "structural cycle"},
	}
	shared := pool(t, 0)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(t, tt.files, tt.opts)
			in.Pool = shared
			objs, _, err := cue.Render(in)
			if err == nil || !strings.Contains(err.Error(), tt.want) || rutter.CodeOf(err) != rutter.CodeInvalid {
				t.Errorf("want %q, got %s: %v, %v", tt.want, rutter.CodeOf(err), err, names(objs))
			}
		})
	}
}

func TestRootOfTheRepository(t *testing.T) {
	for _, path := range []string{".", "", "./"} {
		in := input(t, map[string]string{"cue.mod/module.cue": module, "lib/l.cue": "package lib\n\nname: \"x\"\n",
			"a.cue": "package a\n\nimport \"example.com/shop/lib\"\n\nx: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: lib.name}\n"}, rutter.PluginOptions{})
		in.Path = path
		objs, _, err := cue.Render(in)
		if diff := cmp.Diff([]string{"x a.cue:5"}, names(objs)); err != nil || diff != "" {
			t.Errorf("%q: %v %s", path, err, diff)
		}
	}
}

func TestDetect(t *testing.T) {
	tests := []struct {
		files  string
		want   bool
		reason string
	}{
		{"a.cue", true, "a package"},
		{"a.cue b.cue README.md", true, "other files do not matter"},
		{"a.cue sub/x.yaml", true, "only the folder itself decides"},
		{"a.cue .argocd-source.yaml", true, "overrides are no manifest"},
		{"a_tool.cue", false, "commands alone are no package"},
		{"a.cue x.yaml", false, "manifests"},
		{"a.cue kustomization.yml", false, "kustomize"},
		{"a.cue Kustomization", false, "kustomize"},
		{"a.cue Chart.yaml", false, "Helm"},
		{"a.cue x.json", false, "manifests"},
		{"README.md", false, "nothing"},
		{"sub/a.cue", false, "only the folder itself decides"},
	}
	for _, tt := range tests {
		files := map[string]string{}
		for f := range strings.FieldsSeq(tt.files) {
			files["app/"+f] = "x: 1\n"
		}
		if got := cue.Detect(input(t, files, rutter.PluginOptions{}).Repo, "app"); got != tt.want {
			t.Errorf("%s: %v, want %v: %s", tt.files, got, tt.want, tt.reason)
		}
	}
}
