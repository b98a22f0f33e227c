package archtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func root(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func packages(t *testing.T) []Package {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Doc,Name,Imports,GoFiles,Dir", "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []Package
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 20 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}

func TestRings(t *testing.T) {
	for _, p := range packages(t) {
		for _, bad := range append(Imports(p), Habits(p)...) {
			t.Error(bad)
		}
	}
}

// TestRulesCatch shows each rule a breach of it.
func TestRulesCatch(t *testing.T) {
	for name, p := range map[string]Package{
		"the vocabulary does I/O":     {ImportPath: module, Imports: []string{"os"}},
		"the vocabulary imports ours": {ImportPath: module, Imports: []string{module + "/internal/plan"}},
		"a decider logs":              {ImportPath: module + "/internal/plan", Imports: []string{"log/slog"}},
		"a decider has a client":      {ImportPath: module + "/internal/compare", Imports: []string{"k8s.io/client-go/rest"}},
		"a decider knows an adapter":  {ImportPath: module + "/internal/generate", Imports: []string{module + "/internal/source/git"}},
		"siblings":                    {ImportPath: module + "/internal/cluster", Imports: []string{module + "/internal/source/git"}},
		"render knows sources":        {ImportPath: module + "/internal/render/helm", Imports: []string{module + "/internal/source/git"}},
		"the engine knows technology": {ImportPath: module + "/internal/engine", Imports: []string{module + "/internal/cluster"}},
		"the engine has a client":     {ImportPath: module + "/internal/engine", Imports: []string{"k8s.io/client-go/kubernetes"}},
		"a driver knows an adapter":   {ImportPath: module + "/internal/cli", Imports: []string{module + "/internal/cluster"}},
		"a driver knows the root":     {ImportPath: module + "/internal/controller/argo", Imports: []string{module + "/internal/daemon"}},
		"no ring":                     {ImportPath: module + "/internal/stray"},
	} {
		if len(Imports(p)) == 0 {
			t.Errorf("%s: not caught", name)
		}
	}
	for name, p := range map[string]Package{
		"no comment": {ImportPath: module + "/internal/x", Name: "x", GoFiles: []string{"x.go"}},
		"util":       {ImportPath: module + "/internal/util", Name: "util", Doc: "d", GoFiles: []string{"x.go"}},
	} {
		if len(Habits(p)) == 0 {
			t.Errorf("%s: not caught", name)
		}
	}
}

// TestPureCode looks into the deciders' code for what imports do not show: the
// clock and goroutines.
func TestPureCode(t *testing.T) {
	for _, p := range packages(t) {
		if r := ringOf(p); r == nil || r.name != "pure" && r.name != "vocabulary" {
			continue
		}
		for _, f := range p.GoFiles {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, f), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range impure(file) {
				t.Errorf("%s: reads the clock or starts a goroutine", fset.Position(at))
			}
		}
	}
}

func impure(file *ast.File) []token.Pos {
	var bad []token.Pos
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.GoStmt:
			bad = append(bad, x.Pos())
		case *ast.SelectorExpr:
			if pkg, ok := x.X.(*ast.Ident); ok && pkg.Name == "time" && (x.Sel.Name == "Now" || x.Sel.Name == "Since" || x.Sel.Name == "After" || x.Sel.Name == "Sleep") {
				bad = append(bad, x.Pos())
			}
		}
		return true
	})
	return bad
}

func TestImpureIsSeen(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nimport \"time\"\nfunc f() { go f(); _ = time.Now() }", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(impure(file)) != 2 {
		t.Error("a goroutine and the clock must be seen")
	}
}

// TestModule: the product can be installed with go install, and never links
// Kubernetes itself.
func TestModule(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		if strings.HasPrefix(line, "replace ") {
			t.Errorf("go.mod: %s: no replace in the product's module", line)
		}
		if strings.HasPrefix(line, "k8s.io/kubernetes ") || strings.Contains(line, "rutter/localcluster") {
			t.Errorf("go.mod: %s: Kubernetes itself belongs to the module localcluster", line)
		}
	}
}

// TestNoUnfinishedMarks: what is not finished is said in an issue, not in the code.
func TestNoUnfinishedMarks(t *testing.T) {
	marks := []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") || strings.HasPrefix(d.Name(), "zz_generated") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(data), "\n") {
			for _, m := range marks {
				if strings.Contains(line, m) {
					t.Errorf("%s:%d: %s", path, i+1, m)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestGenerated makes the generated files anew and compares.
func TestGenerated(t *testing.T) {
	dir, tmp := root(t), t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "run", "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0",
		"object", "paths=./api/...", "crd:crdVersions=v1", "output:crd:dir="+tmp, "output:object:dir="+tmp)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	fresh, err := os.ReadDir(tmp)
	if err != nil || len(fresh) < 4 {
		t.Fatalf("controller-gen made %d files: %v", len(fresh), err)
	}
	for _, f := range fresh {
		where := filepath.Join(dir, "deploy", "crds", f.Name())
		if strings.HasSuffix(f.Name(), ".go") {
			where = filepath.Join(dir, "api", "argoproj", "v1alpha1", f.Name())
		}
		want, err1 := os.ReadFile(filepath.Join(tmp, f.Name()))
		got, err2 := os.ReadFile(where)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s is not fresh: run make generate", where)
		}
	}
}
