package directory_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/directory"
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

func cm(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n", name)
}

func folder() map[string]string {
	return map[string]string{
		"app/b.yaml":           cm("b1") + "---\n# second\n" + cm("b2"),
		"app/a.json":           "{\n\t\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"}\n}",
		"app/c.yml":            cm("c"),
		"app/values.yaml":      "replicas: 3\n",
		"app/broken.yaml":      "a: b: c\n",
		"app/skipped.yaml":     "# +argocd:skip-file-rendering\n" + cm("skipped"),
		"app/README.md":        "no manifest",
		"app/empty.yaml":       "# nothing\n",
		"app/sub/d.yaml":       cm("d"),
		"app/sub/deep/e.yaml":  cm("e"),
		"elsewhere/other.yaml": cm("other"),
	}
}

// linked adds symbolic links and one device to a snapshot.
type linked struct {
	rutter.Snapshot

	links map[string]string // a name in app/, and where it leads; empty leads nowhere
}

func (l linked) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := l.Snapshot.ReadDir(name)
	if name == "app" {
		for link := range l.links {
			entries = append(entries, entry(link))
		}
		entries = append(entries, entry("device.yaml"))
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return entries, err
}

func (l linked) target(name string) string {
	link, ok := strings.CutPrefix(name, "app/")
	if to, is := l.links[link]; ok && is {
		return to
	}
	return name
}

func (l linked) ReadFile(name string) ([]byte, error)  { return l.Snapshot.ReadFile(l.target(name)) }
func (l linked) Stat(name string) (fs.FileInfo, error) { return l.Snapshot.Stat(l.target(name)) }
func (l linked) Hash(k rutter.InputKind, name string) (string, error) {
	return l.Snapshot.Hash(k, l.target(name))
}

type entry string

func (e entry) Name() string               { return string(e) }
func (e entry) IsDir() bool                { return false }
func (e entry) Info() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
func (e entry) Type() fs.FileMode {
	if e == "device.yaml" {
		return fs.ModeDevice
	}
	return fs.ModeSymlink
}

func render(t *testing.T, files map[string]string, in directory.Input) ([]string, []string, error) {
	t.Helper()
	if in.Repo == nil {
		in.Repo = record.New(t.Context(), rendertest.Snapshot(files), record.Options{})
	}
	in.Path = "app"
	objs, warnings, err := directory.Render(in)
	var got []string
	for _, o := range objs {
		got = append(got, fmt.Sprintf("%s %s:%d", o.GetName(), o.Origin.File, o.Origin.Line))
	}
	return got, warnings, err
}

func TestSelection(t *testing.T) {
	top := []string{"a app/a.json:1", "b1 app/b.yaml:1", "b2 app/b.yaml:7", "c app/c.yml:1"}
	below := []string{"d app/sub/d.yaml:1", "e app/sub/deep/e.yaml:1"}
	jsonnetFile := map[string]string{"app/x.jsonnet": `{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "x"}}`}
	tests := map[string]struct {
		files  map[string]string
		opts   rutter.DirectoryOptions
		off    bool // Jsonnet
		want   []string
		reason string
	}{
		"top only":                  {want: top},
		"recurse":                   {opts: rutter.DirectoryOptions{Recurse: true}, want: slices.Concat(top, below)},
		"include":                   {opts: rutter.DirectoryOptions{Include: "*.yml"}, want: top[3:]},
		"include, choices":          {opts: rutter.DirectoryOptions{Include: "{a.json,c.yml}"}, want: []string{top[0], top[3]}},
		"include, choices of stars": {opts: rutter.DirectoryOptions{Recurse: true, Include: "{*.json,sub/**}"}, want: slices.Concat(top[:1], below)},
		"star crosses":              {opts: rutter.DirectoryOptions{Recurse: true, Include: "sub/*.yaml"}, want: below},
		"one character":             {opts: rutter.DirectoryOptions{Include: "?.y[am]*"}, want: top[1:]},
		"none of a class":           {opts: rutter.DirectoryOptions{Include: "[!bc].*"}, want: top[:1]},
		"exclude":                   {opts: rutter.DirectoryOptions{Recurse: true, Exclude: "{b.*,sub/deep/*}"}, want: []string{top[0], top[3], below[0]}},
		"exclude before include":    {opts: rutter.DirectoryOptions{Include: "*.{yml,json}", Exclude: "c*"}, want: top[:1]},
		"exclude all":               {opts: rutter.DirectoryOptions{Exclude: "*"}},
		"the filter stays with include": {files: map[string]string{"app/d.txt": cm("d")}, opts: rutter.DirectoryOptions{Include: "{d.txt,c.yml}"}, want: top[3:],
			reason: "a pattern does not make a file of another kind a manifest"},
		"no filter": {files: map[string]string{"app/d.txt": cm("d"), "app/noext": cm("no1"), "app/pic.png": "\x89PNG\r\n\x1a\n\x00\xff"}, opts: rutter.DirectoryOptions{DisableExtensionFilter: true},
			want: slices.Concat(top, []string{"d app/d.txt:1", "no1 app/noext:1"}), reason: "what is no manifest is passed over"},
		"no filter, with a pattern":   {files: map[string]string{"app/d.txt": cm("d")}, opts: rutter.DirectoryOptions{DisableExtensionFilter: true, Include: "*.txt"}, want: []string{"d app/d.txt:1"}},
		"Jsonnet":                     {files: jsonnetFile, want: slices.Concat(top, []string{"x app/x.jsonnet:0"})},
		"Jsonnet disabled":            {files: jsonnetFile, off: true, want: top},
		"Jsonnet disabled, no filter": {files: jsonnetFile, off: true, opts: rutter.DirectoryOptions{DisableExtensionFilter: true}, want: top},
		"Jsonnet excluded":            {files: map[string]string{"app/x.jsonnet": "{"}, opts: rutter.DirectoryOptions{Exclude: "*.jsonnet"}, want: top},
		"Jsonnet skipped by its mark": {files: map[string]string{"app/x.jsonnet": "// +argocd:skip-file-rendering\n{"}, want: top},
		"libraries of Jsonnet":        {files: map[string]string{"app/x.libsonnet": "{"}, opts: rutter.DirectoryOptions{Recurse: true, Exclude: "sub/*"}, want: top},
		"a mark anywhere":             {files: map[string]string{"app/b.yaml": cm("b") + "data: {x: \"+argocd:skip-file-rendering\"}\n", "app/a.json": `{"+argocd:skip-file-rendering": 1}`}, want: top[3:]},
		"an OCI manifest":             {files: map[string]string{"app/m.json": `{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": {}}`}, want: top},
		"a JSON list":                 {files: map[string]string{"app/m.json": `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}]}`}, want: slices.Concat(top, []string{"p app/m.json:1"})},
		"an empty JSON":               {files: map[string]string{"app/m.json": "\n"}, want: top},
		"JSON in UTF-16":              {files: map[string]string{"app/a.json": "\xFF\xFE{\x00}\x00"[:0] + utf16(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "u"}}`)}, want: slices.Concat([]string{"u app/a.json:1"}, top[1:])},
		"JSON objects in YAML":        {files: map[string]string{"app/c.yml": `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}` + "\n" + `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"}}`}, want: slices.Concat(top[:3], []string{"p app/c.yml:1", "q app/c.yml:2"})},
		"null items":                  {files: map[string]string{"app/c.yml": "apiVersion: v1\nkind: List\nitems:\n"}, want: top[:3]},
		"foreign files":               {files: map[string]string{"app/list.yaml": "- a\n", "app/text.yaml": "text\n", "app/t.yaml": "{{ define }}\n", "app/bin.yaml": "\xff\xfe\xff", "app/half.yaml": "kind: of\nmetadata: yes\n"[8:], "app/sealed.yaml": "a: ENC\nsops: {mac: x}\n"}, want: top},
		"an empty folder":             {files: map[string]string{"app/a.json": "", "app/b.yaml": "", "app/c.yml": "", "app/values.yaml": "", "app/broken.yaml": ""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := render(t, rendertest.With(folder(), tt.files), directory.Input{Options: tt.opts, JsonnetDisabled: tt.off})
			if err != nil || len(warnings) > 0 {
				t.Fatal(err, warnings)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func utf16(s string) string {
	out := []byte{0xFF, 0xFE}
	for _, r := range s {
		out = append(out, byte(r), 0)
	}
	return string(out)
}

func TestErrors(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		in    directory.Input
		want  string
	}{
		"broken after a good document": {files: map[string]string{"app/z.yaml": cm("z") + "---\na: b: c\n"}, want: "app/z.yaml:6: is not valid YAML"},
		"names the document":           {files: map[string]string{"app/z.yaml": cm("z") + "---\nkind: X\n"}, want: `app/z.yaml:6: X has no apiVersion: every Kubernetes object needs apiVersion, kind and metadata.name (document 2)`},
		"no object after a good one":   {files: map[string]string{"app/z.yaml": cm("z") + "---\nreplicas: 3\n"}, want: "app/z.yaml:6: an object has no apiVersion"},
		"broken, but meant as one":     {files: map[string]string{"app/z.yaml": "apiVersion: v1\nkind: X\nmetadata: {name: a\n"}, want: "app/z.yaml:"},
		"repeated key":                 {files: map[string]string{"app/z.yaml": cm("z") + "data:\n  k: a\n  k: b\n"}, want: `app/z.yaml:7: the key "k" appears twice in one mapping`},
		"not UTF-8":                    {files: map[string]string{"app/z.yaml": cm("z") + "data: {k: \xE4}\n"}, want: "app/z.yaml:5: the text is not UTF-8"},
		"two values in JSON":           {files: map[string]string{"app/z.json": "{}\n{}"}, want: "app/z.json:2: is not one valid JSON value"},
		"no object in JSON":            {files: map[string]string{"app/z.json": `{"a": 1}`}, want: "app/z.json:1: an object has no apiVersion"},
		"a list in JSON":               {files: map[string]string{"app/z.json": `[]`}, want: "app/z.json:1: a Kubernetes object must be a mapping"},
		"broken JSON":                  {files: map[string]string{"app/z.json": "{\n\"a\": \n}"}, want: "app/z.json:3: is not one valid JSON value"},
		"repeated key in JSON":         {files: map[string]string{"app/z.json": `{"a": 1, "a": 2}`}, want: `app/z.json:1: the key "a" appears twice`},
		"broken Jsonnet":               {files: map[string]string{"app/z.jsonnet": "{\n a b"}, want: "app/z.jsonnet:2: is not valid Jsonnet"},
		"Jsonnet that is no object":    {files: map[string]string{"app/x.jsonnet": "{}"}, want: "app/x.jsonnet: an object has no apiVersion"},
		"too large":                    {in: directory.Input{MaxBytes: 100}, want: "app: the manifests are larger than 100 bytes together: narrow them with directory.include or split the application"},
		"bad pattern":                  {in: directory.Input{Options: rutter.DirectoryOptions{Include: "[a"}}, want: `directory.include: "[a" is not a pattern`},
		"bad exclude":                  {in: directory.Input{Options: rutter.DirectoryOptions{Exclude: "x[a"}}, want: `directory.exclude: "x[a" is not a pattern`},
		"a pattern without end":        {in: directory.Input{Options: rutter.DirectoryOptions{Include: strings.Repeat("{a,b}", 5000)}}, want: "directory.include is longer than 4096 characters"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := render(t, rendertest.With(folder(), tt.files), tt.in)
			if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("want %q, got %v", tt.want, err)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	snap := linked{rendertest.Snapshot(folder()), map[string]string{"l.yaml": "elsewhere/other.yaml", "dangling.yaml": "gone", "escaping.json": "", "dir.yaml": "elsewhere", "dangling.txt": "gone", "excluded.yaml": "gone"}}
	got, warnings, err := render(t, nil, directory.Input{Repo: record.New(t.Context(), snap, record.Options{}), Options: rutter.DirectoryOptions{Exclude: "excluded*"}})
	want := []string{"a app/a.json:1", "b1 app/b.yaml:1", "b2 app/b.yaml:7", "c app/c.yml:1", "other app/l.yaml:1"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	const skipped = ": the symbolic link leads to nothing inside the repository and was skipped"
	if diff := cmp.Diff([]string{"app/dangling.yaml" + skipped, "app/escaping.json" + skipped}, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestSizeOfJsonnetDoesNotCount(t *testing.T) {
	files := rendertest.With(folder(), map[string]string{"app/x.jsonnet": "//" + strings.Repeat(" ", 10_000) + "\n[]"})
	if _, _, err := render(t, files, directory.Input{MaxBytes: 1000}); err != nil {
		t.Error(err)
	}
}

// TestJsonnetOptions: variables are replaced, and what was used of them is known afterwards.
func TestJsonnetOptions(t *testing.T) {
	snap := rendertest.Snapshot(map[string]string{
		"app/x.jsonnet":   `local k = import "k.libsonnet"; function(who) std.trace("made for " + who, [k.cm(who + "-" + std.extVar("rev"))])`,
		"lib/k.libsonnet": `{cm(n): {apiVersion: "v1", kind: "ConfigMap", metadata: {name: n}}}`})
	env := buildenv.New(rutter.RenderRequest{Snapshot: snap, Instance: "shop"})
	opts := rutter.DirectoryOptions{Jsonnet: &rutter.JsonnetOptions{Libs: []string{"lib"}, TLAs: []rutter.JsonnetVar{{Name: "who", Value: "$ARGOCD_APP_NAME"}}, ExtVars: []rutter.JsonnetVar{{Name: "rev", Value: `"x" + 1`, Code: true}}}}
	pool := isolate.New(isolate.Options{Command: []string{os.Args[0], isolate.Command}})
	t.Cleanup(pool.Close)
	for _, p := range []*isolate.Pool{nil, pool} {
		repo := record.New(t.Context(), snap, record.Options{})
		got, warnings, err := render(t, nil, directory.Input{Repo: repo, Options: opts, Env: env, Pool: p})
		if diff := cmp.Diff([]string{"shop-x1 app/x.jsonnet:0"}, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "app/x.jsonnet: ") || !strings.Contains(warnings[0], "made for shop") {
			t.Errorf("warnings: %q", warnings)
		}
		var read []string
		for _, in := range repo.Inputs() {
			read = append(read, string(in.Kind)+" "+in.Path)
		}
		// That there is no k.libsonnet beside the file matters as well.
		if diff := cmp.Diff([]string{"list app", "file app/k.libsonnet", "file app/x.jsonnet", "file lib/k.libsonnet"}, read); diff != "" {
			t.Errorf("inputs (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(map[string]string{"ARGOCD_APP_NAME": "shop"}, env.Used()); diff != "" {
		t.Error(diff)
	}
}

// TestLimitsOfTheRecord: what stops a render stops Jsonnet's imports too, here and in a child.
func TestLimitsOfTheRecord(t *testing.T) {
	files := map[string]string{"app/x.jsonnet": `[import "a", import "b", import "c"]`, "app/a": "null", "app/b": "null", "app/c": "null"}
	pool := isolate.New(isolate.Options{Command: []string{os.Args[0], isolate.Command}})
	t.Cleanup(pool.Close)
	for _, p := range []*isolate.Pool{nil, pool} {
		repo := record.New(t.Context(), rendertest.Snapshot(files), record.Options{Limits: record.Limits{Reads: 4}})
		_, _, err := render(t, nil, directory.Input{Repo: repo, Pool: p})
		if err == nil || repo.Err() == nil || !strings.Contains(err.Error(), "looks at more than 4 files") {
			t.Errorf("%v, %v", err, repo.Err())
		}
	}
}

// TestEndlessJsonnet ends with the render's time, and the child with it.
func TestEndlessJsonnet(t *testing.T) {
	pool := isolate.New(isolate.Options{Command: []string{os.Args[0], isolate.Command}})
	t.Cleanup(pool.Close)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("no time left"))
	defer cancel()
	snap := rendertest.Snapshot(map[string]string{"app/x.jsonnet": `local f(n) = if n < 2 then n else f(n - 1) + f(n - 2); f(100)`})
	began := time.Now()
	_, _, err := render(t, nil, directory.Input{Repo: record.New(ctx, snap, record.Options{}), Pool: pool})
	if err == nil || !strings.Contains(err.Error(), "no time left") || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}
