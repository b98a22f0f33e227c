package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strconv"
)

// clock are the names of package time that read the clock or wait for it.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTicker", "NewTimer"}

// Impure finds what imports do not show in a deciding package: the clock, and
// goroutines.
func Impure(fset *token.FileSet, file *ast.File) []string {
	timeName := nameOf(file, "time")
	var bad []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.GoStmt:
			bad = append(bad, fmt.Sprintf("%s: starts a goroutine; deciding is a function of its arguments", fset.Position(x.Pos())))
		case *ast.SelectorExpr:
			if pkg, ok := x.X.(*ast.Ident); ok && timeName != "" && pkg.Name == timeName && slices.Contains(clock, x.Sel.Name) {
				bad = append(bad, fmt.Sprintf("%s: reads the clock (time.%s); take the time as an argument", fset.Position(x.Pos()), x.Sel.Name))
			}
		}
		return true
	})
	return bad
}

// nameOf is the name under which a file imports a package; "" when it does not.
// A dot import would hide the uses, so it counts as none and is refused by State.
func nameOf(file *ast.File, importPath string) string {
	for _, imp := range file.Imports {
		if p, err := strconv.Unquote(imp.Path.Value); err != nil || p != importPath {
			continue
		}
		if imp.Name != nil {
			return imp.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// State finds a package's mutable state: init functions, dot imports, variables
// of the package that its functions write, and package-level locks, which have no
// other purpose. Tables, compiled patterns and sync.Once* functions are fine.
func State(fset *token.FileSet, importPath string, files []*ast.File) []string {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	// Imports are not looked into and so cannot be checked; whose a name is shows without.
	conf := types.Config{Error: func(error) {}, Importer: noImports{}}
	pkg, _ := conf.Check(importPath, fset, files, info) // its errors are those of the imports
	var bad []string
	report := func(at token.Pos, format string, args ...any) {
		bad = append(bad, fmt.Sprintf("%s: ", fset.Position(at))+fmt.Sprintf(format, args...))
	}
	written := func(e ast.Expr) {
		id := rootOf(e)
		if id == nil {
			return
		}
		if v, ok := info.Uses[id].(*types.Var); ok && pkg != nil && v.Parent() == pkg.Scope() {
			report(e.Pos(), "writes %s, a variable of the package; give it an owner", id.Name)
		}
	}
	for _, file := range files {
		declared(file, report)
		ast.Inspect(file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.AssignStmt:
				for _, e := range x.Lhs {
					written(e)
				}
			case *ast.IncDecStmt:
				written(x.X)
			case *ast.CallExpr:
				if f, ok := x.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") && len(x.Args) > 0 {
					written(x.Args[0])
				}
			}
			return true
		})
	}
	return bad
}

// declared looks at what a file declares: init functions, dot imports, locks.
func declared(file *ast.File, report func(token.Pos, string, ...any)) {
	for _, imp := range file.Imports {
		if imp.Name != nil && imp.Name.Name == "." {
			report(imp.Pos(), "dot import of %s; a reader must see whose a name is", imp.Path.Value)
		}
	}
	for _, d := range file.Decls {
		switch x := d.(type) {
		case *ast.FuncDecl:
			if x.Name.Name == "init" && x.Recv == nil {
				report(x.Pos(), "init function; construct what is needed where it is needed")
			}
		case *ast.GenDecl:
			for _, s := range x.Specs {
				if v, ok := s.(*ast.ValueSpec); ok && x.Tok == token.VAR && isLock(v.Type) {
					report(v.Pos(), "%s is a lock of the whole package; give the state that it guards an owner", v.Names[0].Name)
				}
			}
		}
	}
}

// isLock tells whether a type is one of sync's or sync/atomic's; a sync.Pool
// holds nothing that anybody can tell apart.
func isLock(t ast.Expr) bool {
	sel, ok := t.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && (pkg.Name == "atomic" || pkg.Name == "sync" && sel.Sel.Name != "Pool")
}

// rootOf is the variable that an expression writes into: m in m[k].f.
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// noImports imports nothing: the type checker stands in a stub and goes on.
type noImports struct{}

var errNoImports = errors.New("imports are not looked into")

// Import implements types.Importer.
func (noImports) Import(string) (*types.Package, error) { return nil, errNoImports }
