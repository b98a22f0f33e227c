package kustomizeparity

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Kustomize's own tests write their trees with a harness, in Go source. What
// they write is read out of that source, by following the calls as far as their
// arguments are texts; what a test asserts does not matter, because the real
// kustomize builds the same tree here.

// harness are the harness's methods that write files, with what stands before the text.
func harness(method string) (name, header string, ok bool) {
	switch method {
	case "WriteK":
		return "kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", true
	case "WriteC":
		return "kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n", true
	case "WriteF":
		return "", "", true
	}
	return "", "", false
}

// moduleCache is where Go keeps modules.
func moduleCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// minedTrees returns the trees of the tests of the kustomize library in go.mod,
// and how many of them hold none that can be read.
func minedTrees(t *testing.T) ([]tree, int) {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kustomize/api")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "krusty")
	fset := token.NewFileSet()
	packages, err := parser.ParseDir(fset, dir, nil, 0) //nolint:staticcheck // no types are needed
	if err != nil {
		t.Fatal(err)
	}
	m := miner{texts: map[string]string{}, funcs: map[string]*ast.FuncDecl{}}
	var tests []*ast.FuncDecl
	for _, p := range packages {
		for _, f := range p.Files {
			tests = append(tests, m.declare(f)...)
		}
	}
	slices.SortFunc(tests, func(a, b *ast.FuncDecl) int { return strings.Compare(a.Name.Name, b.Name.Name) })
	var trees []tree
	skipped := 0
	for _, f := range tests {
		found := m.mine(f)
		if len(found) == 0 {
			skipped++
		}
		trees = append(trees, found...)
	}
	return trees, skipped
}

type miner struct {
	texts map[string]string
	funcs map[string]*ast.FuncDecl
	// of one test:
	name  string
	files map[string]string
	trees []tree
	depth int
}

// declare notes a file's texts and functions and returns its tests.
func (m *miner) declare(f *ast.File) []*ast.FuncDecl {
	var tests []*ast.FuncDecl
	for _, d := range f.Decls {
		switch x := d.(type) {
		case *ast.FuncDecl:
			m.funcs[x.Name.Name] = x
			if strings.HasPrefix(x.Name.Name, "Test") {
				tests = append(tests, x)
			}
		case *ast.GenDecl:
			m.values(x, m.texts)
		}
	}
	return tests
}

func (m *miner) values(d *ast.GenDecl, into map[string]string) {
	for _, s := range d.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok || len(v.Names) != len(v.Values) {
			continue
		}
		for i, n := range v.Names {
			if text, ok := text(v.Values[i], into); ok {
				into[n.Name] = text
			}
		}
	}
}

// mine follows one test and returns a tree for each build in it.
func (m *miner) mine(f *ast.FuncDecl) []tree {
	m.name, m.files, m.trees = f.Name.Name, map[string]string{}, nil
	m.block(f.Body, maps.Clone(m.texts))
	return m.trees
}

func (m *miner) block(b *ast.BlockStmt, texts map[string]string) {
	for _, s := range b.List {
		switch x := s.(type) {
		case *ast.DeclStmt:
			if d, ok := x.Decl.(*ast.GenDecl); ok {
				m.values(d, texts)
			}
		case *ast.AssignStmt:
			for i, l := range x.Lhs {
				id, ok := l.(*ast.Ident)
				if ok && len(x.Lhs) == len(x.Rhs) {
					if v, ok := text(x.Rhs[i], texts); ok {
						texts[id.Name] = v
					}
				}
			}
		}
		ast.Inspect(s, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.ForStmt, *ast.RangeStmt, *ast.FuncLit:
				return false // what depends on a table of values is left out
			case *ast.CallExpr:
				m.call(x, texts)
			}
			return true
		})
	}
}

func (m *miner) call(c *ast.CallExpr, texts map[string]string) {
	switch f := c.Fun.(type) {
	case *ast.SelectorExpr:
		name, header, ok := harness(f.Sel.Name)
		switch {
		case ok && len(c.Args) == 2:
			dir, okDir := text(c.Args[0], texts)
			body, okBody := text(c.Args[1], texts)
			if okDir && okBody {
				m.files[path.Clean("/" + path.Join(dir, name))[1:]] = header + body
			}
		case (f.Sel.Name == "Run" || f.Sel.Name == "RunWithErr") && len(c.Args) == 2:
			if dir, ok := text(c.Args[0], texts); ok && len(m.files) > 0 {
				m.trees = append(m.trees, tree{name: m.name + "-" + strconv.Itoa(len(m.trees)), files: maps.Clone(m.files), build: path.Clean("./" + dir)})
			}
		}
	case *ast.Ident:
		callee := m.funcs[f.Name]
		if callee == nil || callee.Body == nil || m.depth > 3 {
			return
		}
		inner := maps.Clone(m.texts)
		i := 0
		for _, p := range callee.Type.Params.List {
			for _, n := range p.Names {
				if i < len(c.Args) {
					if v, ok := text(c.Args[i], texts); ok {
						inner[n.Name] = v
					}
				}
				i++
			}
		}
		m.depth++
		m.block(callee.Body, inner)
		m.depth--
	}
}

// text evaluates an expression that is a text.
func text(e ast.Expr, texts map[string]string) (string, bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		if x.Kind != token.STRING {
			return "", false
		}
		s, err := strconv.Unquote(x.Value)
		return s, err == nil
	case *ast.Ident:
		s, ok := texts[x.Name]
		return s, ok
	case *ast.ParenExpr:
		return text(x.X, texts)
	case *ast.BinaryExpr:
		a, okA := text(x.X, texts)
		b, okB := text(x.Y, texts)
		return a + b, x.Op == token.ADD && okA && okB
	case *ast.CallExpr:
		sel, ok := x.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Join" {
			return "", false
		}
		parts := make([]string, len(x.Args))
		for i, a := range x.Args {
			if parts[i], ok = text(a, texts); !ok {
				return "", false
			}
		}
		return path.Join(parts...), true
	}
	return "", false
}

// folder is a kustomization that a module ships as files.
type folder struct{ name, root, build string }

// moduleTrees finds the kustomizations in the modules that are known to ship
// some, as far as they are in the module cache.
func moduleTrees(t *testing.T) []folder {
	t.Helper()
	cache := moduleCache(t)
	var out []folder
	for _, module := range []string{"sigs.k8s.io/kustomize/api", "sigs.k8s.io/kustomize/kyaml", "sigs.k8s.io/kustomize/kustomize/v5", "sigs.k8s.io/kustomize/cmd/config",
		"sigs.k8s.io/kwok", "github.com/fluxcd/flagger", "github.com/helmfile/helmfile", "github.com/helmfile/chartify", "k8s.io/cli-runtime", "k8s.io/pod-security-admission"} {
		roots, err := filepath.Glob(filepath.Join(cache, module) + "@*")
		if err != nil || len(roots) == 0 {
			continue
		}
		root := roots[len(roots)-1]
		err = filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
			if err == nil && (d.Name() == "kustomization.yaml" || d.Name() == "kustomization.yml" || d.Name() == "Kustomization") {
				rel, _ := filepath.Rel(root, filepath.Dir(p))
				out = append(out, folder{module + "/" + rel, root, rel})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}
