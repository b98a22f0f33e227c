package plugin_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/plugin"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	os.Exit(m.Run())
}

// commit is a snapshot with modes and symbolic links, counting what is read.

type commit struct {
	fstest.MapFS

	revision string
	mu       *sync.Mutex
	reads    map[string]int
}

func newCommit(files map[string]string) commit {
	c := commit{MapFS: fstest.MapFS{}, mu: &sync.Mutex{}, reads: map[string]int{}}
	var all []string
	for name, text := range files {
		f := &fstest.MapFile{Data: []byte(text), Mode: 0o444}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			f = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
		}
		if strings.HasPrefix(text, "#!") {
			f.Mode = 0o555
		}
		c.MapFS[name] = f
		all = append(all, name+"\x00"+text)
	}
	slices.Sort(all)
	c.revision = sum(strings.Join(all, "\n"))
	return c
}

func sum(s string) string {
	h := sha1.Sum([]byte(s))
	return hex.EncodeToString(h[:])
}

func (c commit) Revision() string { return c.revision }

func (c commit) ReadFile(name string) ([]byte, error) {
	c.mu.Lock()
	c.reads[name]++
	c.mu.Unlock()
	return c.MapFS.ReadFile(name)
}

func (c commit) Hash(kind rutter.InputKind, name string) (string, error) {
	info, err := c.Stat(name)
	if err != nil {
		return "", nil
	}
	return sum(fmt.Sprint(kind, name, info.IsDir())), nil
}

func newBox(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.New(sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Check(t.Context()); err != nil {
		t.Skipf("no sandbox on this machine: %v", err)
	}
	return s
}

// define makes a definition of the lines of spec.

func define(t *testing.T, name, spec string, annotations ...string) plugin.Definition {
	t.Helper()
	text := "apiVersion: argoproj.io/v1alpha1\nkind: ConfigManagementPlugin\nmetadata:\n  name: " + name + "\n"
	if len(annotations) > 0 {
		text += "  annotations:\n    " + strings.Join(annotations, "\n    ") + "\n"
	}
	d, err := plugin.Parse(name+".yaml", []byte(text+"spec:\n"+spec))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func generate(script string) string {
	return "  generate:\n    command: [bash, -ec]\n    args:\n    - |\n      " + strings.ReplaceAll(script, "\n", "\n      ") + "\n"
}

func initial(script string) string {
	return strings.Replace(generate(script), "generate:", "init:", 1)
}

// configMap is a script that prints a ConfigMap; the shell expands its data.

func configMap(data string) string {
	return "cat <<E\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\ndata:\n" + data + "\nE"
}

func input(t *testing.T, c commit, dir string, opts *rutter.PluginOptions) plugin.Input {
	t.Helper()
	req := rutter.RenderRequest{
		Source:   rutter.Source{RepoURL: "https://git.example.com/fleet.git", Path: dir, TargetRevision: "main", Plugin: opts},
		Snapshot: c, AppName: "shop", Instance: "team_shop", Project: "retail", Namespace: "shop-eu", KubeVersion: "1.37.2",
		APIVersions: []string{"apps/v1", "apps/v1/Deployment", "v1", "v1/Pod"},
	}
	return plugin.Input{
		Repo: record.New(t.Context(), c, record.Options{Decrypt: opens}), Links: c, Path: dir, Options: opts, Env: buildenv.New(req),
		KubeVersion: req.KubeVersion, APIVersions: req.APIVersions,
	}
}

// opens would show if a plugin was given plaintext.

func opens(context.Context, string, []byte) ([]byte, bool, error) {
	return []byte("plaintext"), true, nil
}

func data(t *testing.T, objs []rutter.Object) map[string]any {
	t.Helper()
	if len(objs) != 1 {
		t.Fatalf("got %d objects", len(objs))
	}
	m, _ := objs[0].Object["data"].(map[string]any)
	return m
}

// TestDiscoverOnce: the same question is not asked of a program again, but of

// another commit it is.

func TestRender(t *testing.T) {
	files := map[string]string{
		"apps/shop/values.yaml": "v: 1\n", "apps/shop/run.sh": "#!/bin/sh\necho ran\n", "base/b.txt": "base", "README.md": "docs",
		"apps/shop/link": "-> ../../base/b.txt", "apps/shop/dir": "-> ../../base", "apps/shop/out": "-> ../../../etc/hostname", "apps/shop/abs": "-> /etc/hostname", "apps/shop/gone": "-> nothing",
		"apps/shop/sealed.yaml": "sops:\n  mac: x\n",
	}
	for name, tc := range map[string]struct {
		spec        string
		annotations []string
		want        map[string]any
		warnings    []string
		absent      []string // inputs that must not be
	}{
		"init, then generate, in the folder": {
			spec: initial("echo made > made.txt; echo noise; echo noise >&2") + generate(configMap("  made: $(cat made.txt)\n  pwd: $PWD")),
			want: map[string]any{"made": "made", "pwd": "/rutter/repo/apps/shop"},
		},
		"the whole repository": {
			spec: generate(configMap("  base: $(cat ../../base/b.txt)\n  all: $(ls ../.. | tr '\\n' ' ')")),
			want: map[string]any{"base": "base", "all": "README.md apps base"},
		},
		"the folder only": {
			spec: generate(configMap("  here: $(cat values.yaml | tr -d ':')\n  all: $(ls ../.. | tr '\\n' ' ')")), annotations: []string{"rutter.dev/inputs: path"},
			want: map[string]any{"here": "v 1", "all": "apps"}, absent: []string{"README.md", "base/b.txt", "."},
		},
		"modes are dropped": {
			spec: generate(configMap("  modes: $(stat -c %a run.sh values.yaml . | tr '\\n' ' ')")), want: map[string]any{"modes": "644 644 755"},
		},
		"modes are kept": {
			spec: "  preserveFileMode: true\n" + generate(configMap("  modes: $(stat -c %a run.sh values.yaml | tr '\\n' ' ')\n  out: $(./run.sh)")),
			want: map[string]any{"modes": "755 644", "out": "ran"},
		},
		"links": {
			spec: generate(configMap("  link: $(readlink link) $(cat link)\n  dir: $(cat dir/b.txt)\n  others: '$(ls out abs gone 2>&1 | grep -c No)'")),
			want: map[string]any{"link": "../../base/b.txt base", "dir": "base", "others": "3"},
		},
		"sealed files stay sealed": {
			spec: generate(configMap("  mac: $(grep mac sealed.yaml | tr -d ' ' | tr ':' '=')")), want: map[string]any{"mac": "mac=x"},
		},
		"standard error is no output": {
			spec: generate("echo 'not: yaml: at all' >&2\n" + configMap("  a: b")), want: map[string]any{"a": "b"},
		},
		"a key twice": {
			spec: generate(configMap("  a: b\n  a: c")), want: map[string]any{"a": "c"}, warnings: []string{"output of plugin p: the rendered object repeats a key"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCommit(files)
			d := define(t, "p", tc.spec, tc.annotations...)
			r := plugin.New(plugin.Options{Sandbox: newBox(t), Definitions: []plugin.Definition{d}})
			in := input(t, c, "apps/shop", &rutter.PluginOptions{Name: "p"})
			objs, warnings, err := r.Render(t.Context(), d, in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, data(t, objs)); diff != "" {
				t.Error(diff)
			}
			text := strings.Join(warnings, "\n")
			for _, w := range append(tc.warnings, "apps/shop/out: the symbolic link leads to nothing inside", "apps/shop/abs: the symbolic link", "apps/shop/gone: the symbolic link") {
				if !strings.Contains(text, w) {
					t.Errorf("%q is not in the warnings: %s", w, text)
				}
			}
			inputs := map[string]bool{}
			for _, i := range in.Repo.Inputs() {
				inputs[i.Path] = true
			}
			for _, must := range []string{"apps/shop", "apps/shop/values.yaml", "apps/shop/run.sh", "apps/shop/link", "apps/shop/out"} {
				if !inputs[must] {
					t.Errorf("%s is not among the inputs", must)
				}
			}
			if whole := len(tc.absent) == 0; whole != inputs["README.md"] {
				t.Errorf("README.md is among the inputs: %t", !whole)
			}
			for _, not := range tc.absent {
				if inputs[not] {
					t.Errorf("%s is among the inputs", not)
				}
			}
		})
	}
}

func TestOutput(t *testing.T) {
	for name, tc := range map[string]struct {
		out  string
		want []string
	}{
		"nothing":         {"", nil},
		"only a comment":  {"# nothing\n---\n", nil},
		"YAML and a list": {"apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\nkind: List\napiVersion: v1\nitems: [{apiVersion: v1, kind: B, metadata: {name: b}}]\n", []string{"A a", "B b"}},
		"JSON":            {`{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`, []string{"A a"}},
		"a null list":     {"{kind: List, apiVersion: v1, items: null}", nil},
	} {
		c := newCommit(map[string]string{"out": tc.out})
		d := define(t, "p", generate("cat out"))
		objs, _, err := plugin.New(plugin.Options{Sandbox: newBox(t)}).Render(t.Context(), d, input(t, c, ".", nil))
		var got []string
		for _, o := range objs {
			got = append(got, o.GetKind()+" "+o.GetName())
			if o.Origin != (rutter.Origin{}) {
				t.Errorf("%s: the object has the origin %+v", name, o.Origin)
			}
		}
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		code rutter.Code
		want []string
		not  string
	}{
		"generate fails":      {generate("echo first >&2; echo 'boom: no values' >&2; exit 4"), rutter.CodeInvalid, []string{"plugin p: generate (bash): exit code 4: first; boom: no values"}, ""},
		"init fails":          {initial("exit 9") + generate("echo reached"), rutter.CodeInvalid, []string{"plugin p: init (bash): exit code 9"}, "reached"},
		"a signal":            {generate("kill -SEGV $$"), rutter.CodeInvalid, []string{"ended by SIGSEGV"}, ""},
		"no program":          {"  generate: {command: [rutter-none]}\n", rutter.CodeUnavailable, []string{"generate (rutter-none)", "there is no such program"}, ""},
		"time":                {generate("sleep 100"), rutter.CodeInvalid, []string{"generate (bash): it was stopped after 500ms"}, ""},
		"output":              {generate("yes"), rutter.CodeInvalid, []string{"it printed more than 1 MiB"}, ""},
		"memory":              {generate("x=$(head -c 200m /dev/zero | tr '\\0' a)"), rutter.CodeInvalid, []string{"more memory than 64 MiB"}, ""},
		"no network":          {generate("exec 3<>/dev/tcp/127.0.0.1/1"), rutter.CodeInvalid, []string{"exit code 1"}, ""},
		"not YAML":            {generate("printf 'apiVersion: v1\\nkind: A\\nmetadata:\\n  name: a\\n---\\na: [\\n'"), rutter.CodeInvalid, []string{"output of plugin p"}, ""},
		"no object":           {generate("echo hello"), rutter.CodeInvalid, []string{"output of plugin p:1: a Kubernetes object must be a mapping"}, ""},
		"an object of nobody": {generate("printf '# x\\n---\\nkind: A\\nmetadata: {name: a}\\n'"), rutter.CodeInvalid, []string{"output of plugin p:3: A \"a\" has no apiVersion"}, ""},
		"long messages":       {generate("seq 1 1000 >&2; exit 1"), rutter.CodeInvalid, []string{": 996; 997; 998; 999; 1000"}, "995"},
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			limits := sandbox.Limits{Time: time.Minute, Grace: 200 * time.Millisecond, Output: 1 << 20, Memory: 64 << 20}
			if name == "time" {
				limits.Time = 500 * time.Millisecond
			}
			d := define(t, "p", tc.spec)
			r := plugin.New(plugin.Options{
				Sandbox: newBox(t), Limits: limits,
				Logger: slog.New(slog.NewTextHandler(&logged, nil)),
			})
			_, _, err := r.Render(t.Context(), d, input(t, newCommit(map[string]string{"f": ""}), ".", nil))
			if rutter.CodeOf(err) != tc.code {
				t.Fatalf("got %v", err)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
			if tc.not != "" && (strings.Contains(err.Error(), tc.not) || strings.Contains(logged.String(), tc.not)) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, log %s", err, logged.String())
			}
		})
	}
}

// TestPlanted: what init leaves behind that points outside is of no use.

func TestPlanted(t *testing.T) {
	dir, err := os.MkdirTemp("", "plugin-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	sentinel := filepath.Join(dir, "sentinel")
	if err := os.WriteFile(sentinel, []byte("apiVersion: v1\nkind: Stolen\nmetadata: {name: x}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := define(t, "p", initial("ln -s "+sentinel+" manifests.yaml; ln -s "+dir+" d; ln -sfn "+dir+" ../apps")+generate("cat manifests.yaml d/sentinel 2>/dev/null || true"))
	objs, _, err := plugin.New(plugin.Options{Sandbox: newBox(t)}).Render(t.Context(), d, input(t, newCommit(map[string]string{"apps/f": ""}), "apps", nil))
	if err != nil || len(objs) > 0 {
		t.Errorf("got %v, %v", objs, err)
	}
	if _, err := os.Stat(sentinel); err != nil {
		t.Errorf("the sentinel is gone: %v", err)
	}
}

func TestParallel(t *testing.T) {
	d := define(t, "p", initial("echo $ARGOCD_ENV_N > mine; echo x > $HOME/$ARGOCD_ENV_N; sleep 0.1")+generate(configMap("  mine: \"$(cat mine)\"\n  home: \"$(ls $HOME)\"\n  tmp: \"$(ls $TMPDIR)\"")))
	r := plugin.New(plugin.Options{Sandbox: newBox(t)})
	var wg sync.WaitGroup
	for i := range 6 {
		n := fmt.Sprint(i)
		in := input(t, newCommit(map[string]string{"f": ""}), ".", &rutter.PluginOptions{Env: []rutter.PluginEnv{{Name: "N", Value: n}}})
		wg.Go(func() {
			objs, _, err := r.Render(t.Context(), d, in)
			if err != nil || len(objs) != 1 {
				t.Errorf("got %v, %v", objs, err)
				return
			}
			if diff := cmp.Diff(map[string]any{"mine": n, "home": n, "tmp": ""}, objs[0].Object["data"]); diff != "" {
				t.Error(diff)
			}
		})
	}
	wg.Wait()
}

// TestFingerprint changes with all that a result depends on beside the repository.

func TestFingerprint(t *testing.T) {
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "tool"), []byte("one"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := sandbox.New(sandbox.Options{Tools: []string{tools}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := define(t, "p", generate("tool"))
	seen := map[string]string{}
	add := func(what string, d plugin.Definition) {
		f := plugin.New(plugin.Options{Sandbox: s}).Fingerprint(d)
		if other, ok := seen[f]; ok {
			t.Errorf("%s is taken for %s", what, other)
		}
		seen[f] = what
	}
	add("the first", d)
	add("another definition", define(t, "p", generate("tool2")))
	if err := os.WriteFile(filepath.Join(tools, "tool"), []byte("three"), 0o755); err != nil {
		t.Fatal(err)
	}
	add("another tool", d)
}
