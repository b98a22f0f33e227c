package jsonnet_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/isolate"
	"github.com/rutterhq/rutter/internal/render/jsonnet"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == isolate.Command {
		isolate.Serve(map[string]isolate.Task{jsonnet.TaskName: jsonnet.Task})
	}
	os.Exit(m.Run())
}

// pool evaluates in children, as the product does.
func pool(t *testing.T, opts isolate.Options) *isolate.Pool {
	t.Helper()
	opts.Command = []string{os.Args[0], isolate.Command}
	p := isolate.New(opts)
	t.Cleanup(p.Close)
	return p
}

func input(ctx context.Context, files map[string]string, opts rutter.JsonnetOptions) jsonnet.Input {
	snap := rendertest.Snapshot(files)
	return jsonnet.Input{Repo: record.New(ctx, snap, record.Options{}), Files: []string{"app/x.jsonnet"}, Dir: "app", Options: opts,
		Env: buildenv.New(rutter.RenderRequest{Snapshot: snap, Instance: "shop"})}
}

// cm is a ConfigMap whose name is an expression.
func cm(name string) string {
	return `{apiVersion: "v1", kind: "ConfigMap", metadata: {name: ` + name + `}}`
}

// render renders the one file.
func render(in jsonnet.Input) ([]rutter.Object, []string, error) {
	res, err := jsonnet.Render(in)
	if err != nil {
		return nil, nil, err
	}
	return res[0].Objects, res[0].Warnings, nil
}

func names(objs []rutter.Object) []string {
	var out []string
	for _, o := range objs {
		out = append(out, o.GetName()+" "+o.Origin.File)
	}
	return out
}

func TestRender(t *testing.T) {
	lib := `{cm(n): ` + cm("n") + `}`
	tests := map[string]struct {
		files  map[string]string
		opts   rutter.JsonnetOptions
		want   []string
		reason string
	}{
		"an object":                  {files: map[string]string{"app/x.jsonnet": cm(`"a"`)}, want: []string{"a"}},
		"an array":                   {files: map[string]string{"app/x.jsonnet": "[" + cm(`"a"`) + "," + cm(`"b"`) + "]"}, want: []string{"a", "b"}},
		"null in an array":           {files: map[string]string{"app/x.jsonnet": `[if false then ` + cm(`"a"`) + `, ` + cm(`"b"`) + `]`}, want: []string{"b"}, reason: "a condition without else gives null"},
		"an empty array":             {files: map[string]string{"app/x.jsonnet": `[]`}},
		"a List":                     {files: map[string]string{"app/x.jsonnet": `{apiVersion: "v1", kind: "List", items: [` + cm(`"a"`) + `]}`}, want: []string{"a"}},
		"import beside the file":     {files: map[string]string{"app/x.jsonnet": `(import "lib.libsonnet").cm("a")`, "app/lib.libsonnet": lib}, want: []string{"a"}},
		"import from a parent":       {files: map[string]string{"app/x.jsonnet": `(import "../lib/k.libsonnet").cm("a")`, "lib/k.libsonnet": lib}, want: []string{"a"}},
		"import from an import":      {files: map[string]string{"app/x.jsonnet": `(import "../lib/k.libsonnet")`, "lib/k.libsonnet": `(import "l.libsonnet").cm("a")`, "lib/l.libsonnet": lib}, want: []string{"a"}},
		"a library from the root":    {files: map[string]string{"app/x.jsonnet": `(import "k.libsonnet").cm("a")`, "vendor/lib/k.libsonnet": lib}, opts: rutter.JsonnetOptions{Libs: []string{"vendor/lib"}}, want: []string{"a"}},
		"the last library wins":      {files: map[string]string{"app/x.jsonnet": `(import "k.libsonnet").cm(import "n")`, "a/k.libsonnet": lib, "a/n": `"a"`, "b/n": `"b"`}, opts: rutter.JsonnetOptions{Libs: []string{"a", "./b"}}, want: []string{"b"}},
		"beside before libraries":    {files: map[string]string{"app/x.jsonnet": cm(`import "n"`), "app/n": `"here"`, "a/n": `"a"`}, opts: rutter.JsonnetOptions{Libs: []string{"a"}}, want: []string{"here"}},
		"the path is the last place": {files: map[string]string{"app/x.jsonnet": `import "../lib/l"`, "lib/l": cm(`import "n"`), "app/n": `"app"`}, want: []string{"app"}},
		"importstr":                  {files: map[string]string{"app/x.jsonnet": cm(`std.stripChars(importstr "n.txt", "\n")`), "app/n.txt": "text\n"}, want: []string{"text"}},
		"importbin":                  {files: map[string]string{"app/x.jsonnet": cm(`"n%d" % std.foldl(function(a, b) a + b, importbin "n.bin", 0)`), "app/n.bin": "\x01\x02\xff"}, want: []string{"n258"}},
		"extVars, env and code": {files: map[string]string{"app/x.jsonnet": cm(`std.extVar("name") + "-" + (std.extVar("n") + 1)`)},
			opts: rutter.JsonnetOptions{ExtVars: []rutter.JsonnetVar{{Name: "name", Value: "${ARGOCD_APP_NAME}$$"}, {Name: "n", Value: "1 + 1", Code: true}}}, want: []string{"shop$-3"}},
		"top-level arguments": {files: map[string]string{"app/x.jsonnet": `function(name, n=5) ` + cm(`name + n`)},
			opts: rutter.JsonnetOptions{TLAs: []rutter.JsonnetVar{{Name: "name", Value: "$ARGOCD_APP_NAME"}, {Name: "n", Value: "[1][0]", Code: true}}}, want: []string{"shop1"}},
		"code that imports": {files: map[string]string{"app/x.jsonnet": `std.extVar("o")`, "lib/o.json": cm(`"o"`)},
			opts: rutter.JsonnetOptions{Libs: []string{"lib"}, ExtVars: []rutter.JsonnetVar{{Name: "o", Value: `import "o.json"`, Code: true}}}, want: []string{"o"}},
		"of a name given twice the last": {files: map[string]string{"app/x.jsonnet": cm(`std.extVar("n")`)}, opts: rutter.JsonnetOptions{ExtVars: []rutter.JsonnetVar{{Name: "n", Value: "1"}, {Name: "n", Value: "two"}}}, want: []string{"two"}},
		"an import nobody evaluates":     {files: map[string]string{"app/x.jsonnet": `local unused = import "absent"; ` + cm(`"a"`)}, want: []string{"a"}},
		"imports that need each other":   {files: map[string]string{"app/x.jsonnet": `local a = import "a"; ` + cm("a.n"), "app/a": `local b = import "b"; {n: b.m, k: "k"}`, "app/b": `local a = import "a"; {m: a.k}`}, want: []string{"k"}},
	}
	shared := pool(t, isolate.Options{})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var inputs [][]rutter.Input
			for _, p := range []*isolate.Pool{nil, shared} {
				in := input(t.Context(), tt.files, tt.opts)
				in.Pool = p
				objs, warnings, err := render(in)
				if err != nil {
					t.Fatal(err)
				}
				var want []string
				for _, n := range tt.want {
					want = append(want, n+" app/x.jsonnet")
				}
				if diff := cmp.Diff(want, names(objs)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
				}
				if len(warnings) != 0 {
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
	tests := map[string]struct {
		files map[string]string
		opts  rutter.JsonnetOptions
		want  string
	}{
		"syntax":                         {files: map[string]string{"app/x.jsonnet": "{\n  a: 1,\n  b c\n}"}, want: "app/x.jsonnet:3: is not valid Jsonnet: "},
		"syntax in an import":            {files: map[string]string{"app/x.jsonnet": `import "l"`, "app/l": "{\n\n  a: }"}, want: "app/x.jsonnet:1: Jsonnet: app/l:3:6"},
		"an unknown variable":            {files: map[string]string{"app/x.jsonnet": "\n{a: b}"}, want: "app/x.jsonnet:2: is not valid Jsonnet: Unknown variable: b"},
		"an error of the program":        {files: map[string]string{"app/x.jsonnet": "local l = import 'l';\n" + cm("l.n"), "app/l": "{\n  n: error 'no name'}"}, want: "app/l:2: Jsonnet: no name"},
		"a missing import":               {files: map[string]string{"app/x.jsonnet": "\n\nimport 'k.libsonnet'"}, want: `app/x.jsonnet:3: Jsonnet: import "k.libsonnet": there is no such file beside this one or in [app lib], inside the repository: add the folder to directory.jsonnet.libs`, opts: rutter.JsonnetOptions{Libs: []string{"lib"}}},
		"a missing external variable":    {files: map[string]string{"app/x.jsonnet": "{\n a: std.extVar('e')}"}, want: "app/x.jsonnet:2: Jsonnet: Undefined external variable: e"},
		"a missing argument":             {files: map[string]string{"app/x.jsonnet": "function(a) a"}, want: "app/x.jsonnet: Jsonnet: Missing argument: a"},
		"an argument too many":           {files: map[string]string{"app/x.jsonnet": "function() {}"}, opts: rutter.JsonnetOptions{TLAs: []rutter.JsonnetVar{{Name: "zz"}}}, want: "zz"},
		"code that is none":              {files: map[string]string{"app/x.jsonnet": "std.extVar('e')"}, opts: rutter.JsonnetOptions{ExtVars: []rutter.JsonnetVar{{Name: "e", Value: "{", Code: true}}}, want: "<extvar:e>"},
		"a variable without a name":      {files: map[string]string{"app/x.jsonnet": "{}"}, opts: rutter.JsonnetOptions{TLAs: []rutter.JsonnetVar{{Value: "x"}}}, want: "directory.jsonnet.tlas[0] has no name"},
		"a library outside":              {files: map[string]string{"app/x.jsonnet": "{}"}, opts: rutter.JsonnetOptions{Libs: []string{"ok", "../../lib"}}, want: `directory.jsonnet.libs[1]: path "../../lib" leaves the repository`},
		"an array in an array":           {files: map[string]string{"app/x.jsonnet": "[[" + cm(`"a"`) + "]]"}, want: "app/x.jsonnet: item [0] of the output is an array itself: flatten the output with std.flattenArrays"},
		"an object of objects":           {files: map[string]string{"app/x.jsonnet": "{a: " + cm(`"a"`) + "}"}, want: "app/x.jsonnet: an object has no apiVersion"},
		"an item without a name":         {files: map[string]string{"app/x.jsonnet": "[" + cm(`"a"`) + `, {apiVersion: "v1", kind: "Secret"}]`}, want: "app/x.jsonnet: item [1] of the output: Secret has no metadata.name"},
		"null":                           {files: map[string]string{"app/x.jsonnet": "null"}, want: "app/x.jsonnet: evaluates to null"},
		"a number":                       {files: map[string]string{"app/x.jsonnet": "1"}, want: "app/x.jsonnet: a Kubernetes object must be a mapping"},
		"a very long error":              {files: map[string]string{"app/x.jsonnet": `error std.repeat("x", 100000)`}, want: "app/x.jsonnet:1: Jsonnet: " + strings.Repeat("x", 500) + "…"},
		"a function":                     {files: map[string]string{"app/x.jsonnet": "{a: function(x) x}"}, want: "app/x.jsonnet"},
		"a native function":              {files: map[string]string{"app/x.jsonnet": `std.native("parseYaml")("a")`}, want: "app/x.jsonnet:1: Jsonnet:"},
		"an absolute import":             {files: map[string]string{"app/x.jsonnet": `importstr "/etc/passwd"`}, want: `app/x.jsonnet:1: Jsonnet: import "/etc/passwd": an absolute path leaves the repository`},
		"an import that climbs out":      {files: map[string]string{"app/x.jsonnet": `importstr "../../../../../../etc/passwd"`}, want: `app/x.jsonnet:1: Jsonnet: import "../../../../../../etc/passwd": there is no such file`},
		"a folder":                       {files: map[string]string{"app/x.jsonnet": `import "sub"`, "app/sub/f": "1"}, want: "app/x.jsonnet:1: Jsonnet: app/sub is a folder"},
		"recursion without end":          {files: map[string]string{"app/x.jsonnet": "local f(x) = 1 + f(x);\nf(1)"}, want: "app/x.jsonnet:1: Jsonnet: max stack frames exceeded"},
		"an object that is its own part": {files: map[string]string{"app/x.jsonnet": "{a: self}"}, want: "app/x.jsonnet"},
		"a file that imports itself":     {files: map[string]string{"app/x.jsonnet": "import 'x.jsonnet'"}, want: "app/x.jsonnet:1: Jsonnet:"},
	}
	shared := pool(t, isolate.Options{})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, p := range []*isolate.Pool{nil, shared} {
				in := input(t.Context(), tt.files, tt.opts)
				in.Pool = p
				objs, _, err := render(in)
				if err == nil || !strings.Contains(err.Error(), tt.want) || rutter.CodeOf(err) != rutter.CodeInvalid {
					t.Errorf("want %q, got %s: %v, %v", tt.want, rutter.CodeOf(err), err, names(objs))
				}
				if err != nil && (strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "goroutine")) {
					t.Errorf("not one line: %v", err)
				}
			}
		})
	}
}

// TestFilesShareImports: each has its own traces and objects, and a library is read once.
func TestFilesShareImports(t *testing.T) {
	files := map[string]string{"app/lib": "{cm(n): " + cm("n") + "}"}
	var all []string
	for i := range 30 {
		name := fmt.Sprintf("app/%02d.jsonnet", i)
		files[name] = fmt.Sprintf(`local l = import "lib"; std.trace("in %02d", [l.cm("n%d"), l.cm(std.thisFile)])`, i, i)
		all = append(all, name)
	}
	for _, p := range []*isolate.Pool{nil, pool(t, isolate.Options{})} {
		in := jsonnet.Input{Repo: record.New(t.Context(), rendertest.Snapshot(files), record.Options{Limits: record.Limits{Reads: 31}}), Files: all, Dir: "app", Pool: p}
		res, err := jsonnet.Render(in)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range res {
			if want := []string{fmt.Sprintf("n%d %s", i, all[i]), all[i] + " " + all[i]}; r.File != all[i] || !slices.Equal(names(r.Objects), want) {
				t.Errorf("%s: %v", r.File, names(r.Objects))
			}
			if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], fmt.Sprintf("in %02d", i)) {
				t.Errorf("%s: warnings %q", r.File, r.Warnings)
			}
		}
	}
}

// TestDecryptedValuesStayUnsaid: neither an error nor a warning repeats what a sealed file holds.
func TestDecryptedValuesStayUnsaid(t *testing.T) {
	open := func(_ context.Context, name string, _ []byte) ([]byte, bool, error) {
		return []byte(`{"k": "PLAINTEXT"}`), name == "app/sealed.json", nil
	}
	for program, fails := range map[string]bool{
		`local s = import "sealed.json"; std.trace(s.k, ` + cm(`"a"`) + `)`: false,
		`local s = import "sealed.json"; error s.k`:                         true,
		`(import "sealed.json") + {"a": {}[$.k]}`:                           true,
	} {
		for _, p := range []*isolate.Pool{nil, pool(t, isolate.Options{})} {
			snap := rendertest.Snapshot(map[string]string{"app/x.jsonnet": program, "app/sealed.json": `{"sops": 1}`})
			in := jsonnet.Input{Repo: record.New(t.Context(), snap, record.Options{Decrypt: open}), Files: []string{"app/x.jsonnet"}, Dir: "app", Pool: p}
			_, warnings, err := render(in)
			if (err != nil) != fails || strings.Contains(fmt.Sprint(warnings, err), "PLAINTEXT") {
				t.Errorf("%s: %q, %v", program, warnings, err)
			}
			if fails && !strings.HasPrefix(err.Error(), "app/x.jsonnet:1: ") {
				t.Errorf("the place is missing: %v", err)
			}
		}
	}
}

func TestTraces(t *testing.T) {
	files := map[string]string{"app/x.jsonnet": `std.trace("seen", ` + cm(`"a"`) + `)`}
	_, warnings, err := render(input(t.Context(), files, rutter.JsonnetOptions{}))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "seen") {
		t.Errorf("%q, %v", warnings, err)
	}
}

// TestBombs: what would eat the machine ends as an error on this one file, soon, and the next render works.
func TestBombs(t *testing.T) {
	tests := map[string]struct{ program, want string }{
		"a range of a billion":    {`std.length(std.range(1, 1e9))`, "more than 64 MiB"},
		"an array without end":    {`local f(a) = if std.length(a) < 0 then a else f(a + a) tailstrict; f([1])`, "64 MiB"},
		"a string without end":    {`local f(s, n) = if n == 0 then s else f(s + s, n - 1) tailstrict; std.length(std.asciiUpper(f("laugh", 40)))`, "64 MiB"},
		"a billion laughs":        {`local l0 = ["lol"]; ` + laughs(9) + `l9`, "app/x.jsonnet"},
		"repeat":                  {`std.repeat("x", 1e11)`, "app/x.jsonnet"},
		"make an array":           {`std.foldl(function(a, b) a + b, std.makeArray(1e9, function(i) i), 0)`, "64 MiB"},
		"an endless tail call":    {`local f(x) = if x == 0 then f(1) tailstrict else f(0) tailstrict; f(1)`, "64 MiB"},
		"fibonacci":               {`local f(n) = if n < 2 then n else f(n - 1) + f(n - 2); f(100)`, "stopped"},
		"output of many megabyte": {`local s = std.repeat("x", 1000); std.map(function(i) s, std.range(1, 8000))`, "more than 4 MiB"},
		"deep parentheses":        {strings.Repeat("(", 1_000_000), "app/x.jsonnet"},
		"deep arrays":             {strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000), "app/x.jsonnet"},
	}
	shared := pool(t, isolate.Options{MaxMemory: 64 << 20, MaxOutput: 4 << 20})
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		tt := tests[name]
		t.Run(name, func(t *testing.T) {
			allowed := 30 * time.Second // memory runs out long before
			if tt.want == "stopped" {
				allowed = 300 * time.Millisecond
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), allowed, errors.New("it took too long"))
			defer cancel()
			in := input(ctx, map[string]string{"app/x.jsonnet": tt.program}, rutter.JsonnetOptions{})
			in.Pool = shared
			began := time.Now()
			_, _, err := render(in)
			if err == nil || !strings.Contains(err.Error(), tt.want) || rutter.CodeOf(err) != rutter.CodeInvalid {
				t.Errorf("want %q, got %s: %v", tt.want, rutter.CodeOf(err), err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
			in = input(t.Context(), map[string]string{"app/x.jsonnet": cm(`"next"`)}, rutter.JsonnetOptions{})
			in.Pool = shared
			if objs, _, err := render(in); err != nil || len(objs) != 1 {
				t.Errorf("the next render: %v", err)
			}
		})
	}
}

func laughs(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "local l%d = std.flattenArrays([%s]); ", i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("l%d,", i), 10), ","))
	}
	return b.String()
}

// TestNothingOutsideIsRead: a sentinel on the disk stays unread, whatever names it.
func TestNothingOutsideIsRead(t *testing.T) {
	dir := t.TempDir()
	sentinel := filepath.Join(dir, "sentinel.json")
	if err := os.WriteFile(sentinel, []byte(cm(`"SENTINEL"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, p := range []*isolate.Pool{nil, pool(t, isolate.Options{})} {
		for _, name := range []string{sentinel, "sentinel.json", "./sentinel.json", "../sentinel.json", "../../../../../../../../.." + sentinel, "app/../../sentinel.json", "file://" + sentinel, "/proc/self/cwd/sentinel.json", "../app/../sentinel.json"} {
			for _, verb := range []string{"import", "importstr", "importbin"} {
				in := input(t.Context(), map[string]string{"app/x.jsonnet": fmt.Sprintf("%s %q", verb, name)}, rutter.JsonnetOptions{Libs: []string{"."}})
				in.Pool = p
				objs, _, err := render(in)
				if err == nil || strings.Contains(fmt.Sprint(objs, err), "SENTINEL") {
					t.Errorf("%s %s: %v, %v", verb, name, objs, err)
				}
			}
		}
	}
}
