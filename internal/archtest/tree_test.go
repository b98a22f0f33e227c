package archtest

import (
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

// list asks go for the packages of a module and what they import.
func list(t *testing.T, dir string, atLeast int) []Package {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Doc,Name,Imports,Deps,GoFiles,Dir", "./...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v: %s", dir, err, stderr.String())
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
	if len(all) < atLeast {
		t.Fatalf("go list in %s found only %d packages", dir, len(all))
	}
	return all
}

func parse(t *testing.T, fset *token.FileSet, p Package) []*ast.File {
	t.Helper()
	files := make([]*ast.File, 0, len(p.GoFiles))
	for _, f := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, f), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// TestRings holds the product's packages to their rings.
func TestRings(t *testing.T) {
	for _, p := range list(t, root(t), 20) {
		for _, bad := range Imports(p) {
			t.Error(bad)
		}
	}
}

// TestPackages holds the packages of both modules to the house's habits.
func TestPackages(t *testing.T) {
	all := append(list(t, root(t), 20), list(t, filepath.Join(root(t), "localcluster"), 4)...)
	for _, p := range all {
		for _, bad := range Habits(p) {
			t.Error(bad)
		}
	}
}

// TestCode looks into the code of the product's packages for what go list does
// not show.
func TestCode(t *testing.T) {
	pure := 0
	for _, p := range list(t, root(t), 20) {
		fset := token.NewFileSet()
		files := parse(t, fset, p)
		if below(rel(p.ImportPath), "internal/testenv") {
			continue // the clusters that a test process shares are the process's own
		}
		for _, bad := range State(fset, p.ImportPath, files) {
			t.Error(bad)
		}
		if r := ringOf(p); r == nil || r.standard == nil && r.name != "vocabulary" {
			continue
		}
		pure++
		for _, file := range files {
			for _, bad := range Impure(fset, file) {
				t.Error(bad)
			}
		}
	}
	if pure < 8 {
		t.Errorf("only %d packages were held to be pure", pure)
	}
}

// TestModule: the product can be installed with go install, and never links
// Kubernetes itself.
func TestModule(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range Module(data) {
		t.Error(bad)
	}
}

// TestNoUnfinishedMarks reads every Go file that is in Git or will be.
func TestNoUnfinishedMarks(t *testing.T) {
	files := 0
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		files++
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, bad := range Unfinished(path, data) {
			t.Error(bad)
		}
		return nil
	})
	if err != nil || files < 50 {
		t.Fatalf("read %d files: %v", files, err)
	}
}

// TestGenerated makes the generated files anew, in a copy of the module that
// holds api/ alone, and compares.
func TestGenerated(t *testing.T) {
	dir, tmp := root(t), t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tmp, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(tmp, "api"), withoutGenerated{os.DirFS(filepath.Join(dir, "api"))}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0",
		"object", "paths=./api/...", "crd:crdVersions=v1", "output:crd:dir=deploy/crds")
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("controller-gen: %v: %s", err, out)
	}
	for _, part := range []string{"api", filepath.Join("deploy", "crds")} {
		fresh, tree := os.DirFS(filepath.Join(tmp, part)), os.DirFS(filepath.Join(dir, part))
		bad, err := Stale(fresh, tree, byControllerGen)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bad {
			t.Errorf("%s/%s", part, b)
		}
	}
}

func byControllerGen(name string, data []byte) bool {
	return strings.HasPrefix(filepath.Base(name), "zz_generated") || bytes.Contains(data, []byte("controller-gen.kubebuilder.io/version"))
}

// withoutGenerated hides the deep copies, so that they can only come from the generator.
type withoutGenerated struct{ fs.FS }

// ReadDir implements fs.ReadDirFS.
func (w withoutGenerated) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(w.FS, name)
	var kept []fs.DirEntry
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), "zz_generated") {
			kept = append(kept, e)
		}
	}
	return kept, err
}
