package cue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/cue"
	"github.com/rutterhq/rutter/internal/render/isolate"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// TestBombs: what would eat the machine ends as an error on this one package, soon, and the next render works.
func TestBombs(t *testing.T) {
	disjunctions := "x: " + strings.TrimSuffix(strings.Repeat("({a?: 1, b: 2}|{b: 2, c?: 3}|{d?: 4, b: 2}) & ", 24), " & ") + "\n"
	tests := map[string]struct{ program, want string }{
		"repeat":                {"import \"strings\"\nx: strings.Repeat(strings.Repeat(\"x\", 1_000_000), 1_000_000)\n", "128 MiB"},
		"multiply":              {"x: 1_000_000 * (1_000_000 * \"x\")\n", "128 MiB"},
		"a list of a billion":   {"import \"list\"\nx: list.Range(0, 1_000_000_000, 1)\n", ""},
		"loops in loops":        {"import \"list\"\n_n: list.Range(0, 3000, 1)\nx: [for a in _n for b in _n for c in _n {a+b+c}]\n", ""},
		"a billion laughs":      {laughs(9), ""},
		"disjunctions":          {disjunctions, "app/x.cue:1: x: incomplete value"},
		"a power":               {"import \"math\"\nx: math.Pow(10, 1_000_000_000)\n", ""},
		"deep structs":          {"x: " + strings.Repeat("{a: ", 100_000) + "1" + strings.Repeat("}", 100_000) + "\n", ""},
		"deep lists":            {"x: " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "\n", ""},
		"a function of a field": {"#f: {n: int, r: {if n < 2 {n}, if n >= 2 {(#f & {n: n - 1}).r + (#f & {n: n - 2}).r}}}\nx: (#f & {n: 90}).r\n", ""},
	}
	shared := pool(t, 128<<20)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			allowed := 500 * time.Millisecond
			if tt.want != "" {
				allowed = 30 * time.Second // it ends by itself long before
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), allowed, errors.New("it took too long"))
			defer cancel()
			in := input(t, nil, rutter.PluginOptions{})
			in.Repo, in.Pool = record.New(ctx, rendertest.Snapshot(map[string]string{"app/x.cue": tt.program}), record.Options{}), shared
			began := time.Now()
			_, _, err := cue.Render(in)
			if err == nil || !strings.Contains(err.Error(), tt.want) || rutter.CodeOf(err) != rutter.CodeInvalid {
				t.Errorf("want %q, got %s: %v", tt.want, rutter.CodeOf(err), err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
			in = input(t, map[string]string{"app/x.cue": "x: " + object("next")}, rutter.PluginOptions{})
			in.Pool = shared
			if objs, _, err := cue.Render(in); err != nil || len(objs) != 1 {
				t.Errorf("the next render: %v", err)
			}
		})
	}
}

func laughs(n int) string {
	b := strings.Builder{}
	b.WriteString("_l0: \"lol\"\n")
	for i := range n {
		fmt.Fprintf(&b, "_l%d: {for n in [0,1,2,3,4,5,6,7,8,9] {\"k\\(n)\": _l%d}}\n", i+1, i)
	}
	fmt.Fprintf(&b, "x: _l%d\n", n)
	return b.String()
}

// TestNothingOutsideIsRead: a sentinel on the disk stays unread, whatever names it.
func TestNothingOutsideIsRead(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"pkg/sentinel.cue", "home/.cache/cue/mod/extract/other.com/lib@v0.1.0/lib.cue", "home/.cache/cue/mod/extract/other.com/lib@v0.1.0/cue.mod/module.cue", "cue.mod/module.cue", "app/more.cue"} {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		text := "package lib\n\nx: \"SENTINEL\"\n"
		if strings.HasSuffix(name, "module.cue") {
			text = "module: \"other.com/lib@v0\"\nlanguage: version: \"v0.9.0\"\n"
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("CUE_CACHE_DIR", filepath.Join(dir, "home", ".cache", "cue"))
	t.Setenv("CUE_REGISTRY", "127.0.0.1:1+insecure")
	const withDeps = module + "deps: \"other.com/lib@v0\": v: \"v0.1.0\"\n"
	programs := map[string]string{
		"an import by path":         "package lib\n\nimport \"" + dir + "/pkg\"\n\ny: pkg.x\n",
		"a relative import":         "package lib\n\nimport \"../pkg\"\n\ny: pkg.x\n",
		"a module in the cache":     "package lib\n\nimport \"other.com/lib\"\n\ny: lib.x\n",
		"an old module":             "package lib\n\nimport \"other.com/lib@v0\"\n\ny: lib.x\n",
		"embedding":                 "@extern(embed)\npackage lib\n\ny: _ @embed(file=\"" + dir + "/pkg/sentinel.cue\",type=text)\n",
		"embedding what is not":     "@extern(embed)\npackage lib\n\ny: _ @embed(file=more.cue,type=text)\n",
		"embedding all there is":    "@extern(embed)\npackage lib\n\ny: _ @embed(glob=*.cue,type=text)\n",
		"files of the same package": "package lib\n\ny: x\n",
	}
	for _, p := range []*isolate.Pool{nil, pool(t, 0)} {
		for name, program := range programs {
			in := input(t, map[string]string{"cue.mod/module.cue": withDeps, "app/x.cue": program}, rutter.PluginOptions{})
			in.Pool = p
			objs, _, err := cue.Render(in)
			if len(objs) > 0 || strings.Contains(fmt.Sprint(err), "SENTINEL") || err == nil && name != "embedding all there is" {
				t.Errorf("%s: %v, %v", name, objs, err)
			}
		}
	}
}

// TestDecryptedValuesStayUnsaid: an error does not repeat what a sealed file holds.
func TestDecryptedValuesStayUnsaid(t *testing.T) {
	open := func(_ context.Context, name string, _ []byte) ([]byte, bool, error) {
		return []byte(`{"k": "PLAINTEXT"}`), name == "app/sealed.json", nil
	}
	files := map[string]string{"cue.mod/module.cue": "module: \"example.com/shop\"\nlanguage: version: \"v0.12.0\"\n", "app/sealed.json": `{"sops": 1}`,
		"app/a.cue": "@extern(embed)\npackage a\n\nx: k: \"other\"\nx: _ @embed(file=sealed.json)\n"}
	for _, p := range []*isolate.Pool{nil, pool(t, 0)} {
		in := cue.Input{Repo: record.New(t.Context(), rendertest.Snapshot(files), record.Options{Decrypt: open}), Path: "app", Pool: p}
		_, _, err := cue.Render(in)
		if err == nil || strings.Contains(err.Error(), "PLAINTEXT") || !strings.HasPrefix(err.Error(), "app/a.cue:") {
			t.Errorf("%v", err)
		}
	}
}
