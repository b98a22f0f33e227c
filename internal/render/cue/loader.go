package cue

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/load"
	"cuelang.org/go/cue/token"
	"cuelang.org/go/mod/modfile"
)

// loader finds the packages that a package imports: those of its own module,
// and those that are vendored below cue.mod. cue's own loader looks into
// registries and the caches of a home folder; it only loads single folders here.
type loader struct {
	repo files
	ctx  *build.Context
	// root is the module's folder as cue's loader names it, with a slash before
	// it; module is its path without a version, empty when there is none.
	root, module string
	// loading are the packages that import the one that is loaded now.
	loading []string
}

// modDir marks the root of a module and holds what is vendored.
const modDir = "cue.mod"

// newLoader finds the module that a folder belongs to.
func newLoader(repo files, dir string) *loader {
	l := &loader{repo: repo, root: "/" + dir}
	l.ctx = build.NewContext(build.Loader(l.load))
	for d := dir; ; d = path.Dir(d) {
		if info, err := repo.Stat(path.Join(d, modDir)); err == nil && info.IsDir() {
			l.root = path.Join("/", d)
			break
		}
		if d == "." {
			return l
		}
	}
	name := path.Join(inRepo(l.root), modDir, "module.cue")
	if data, err := repo.ReadFile(name); err == nil {
		// What is wrong with the file is reported when the package is loaded.
		if mf, err := modfile.ParseNonStrict(data, name); err == nil {
			l.module, _, _ = ast.SplitPackageVersion(mf.QualifiedModule())
		}
	}
	return l
}

// instance loads the package in one folder.
func (l *loader) instance(cfg load.Config) *build.Instance {
	cfg.Context = l.ctx
	cfg.SkipImports = true // load does it
	cfg.Env = []string{}
	insts := load.Instances([]string{"."}, &cfg)
	if len(insts) != 1 {
		return l.failed(token.NoPos, "%s is not one CUE package", inRepo(cfg.Dir))
	}
	return insts[0]
}

func (l *loader) failed(pos token.Pos, format string, args ...any) *build.Instance {
	inst := l.ctx.NewInstance("", nil)
	inst.Err = errors.Newf(pos, format, args...)
	return inst
}

// load finds an imported package; nil is for cue's standard library.
func (l *loader) load(pos token.Pos, name string) *build.Instance {
	parts := ast.ParseImportPath(name)
	first, _, _ := strings.Cut(parts.Path, "/")
	switch {
	case first != "" && !strings.Contains(first, "."):
		return nil // names of modules have a dot, those of the standard library none
	case !fs.ValidPath(parts.Path):
		return l.failed(pos, "import %q: the path leaves the repository: name a package of this module", name)
	case slices.Contains(l.loading, name):
		return l.failed(pos, "import %q: the package imports itself, by way of %s", name, strings.Join(l.loading, ", "))
	}
	l.loading = append(l.loading, name)
	defer func() { l.loading = l.loading[:len(l.loading)-1] }()

	if rel, ok := below(parts.Path, l.module); ok && l.module != "" {
		if dir := path.Join(l.root, rel); l.hasFiles(l.repo, dir) {
			return l.instance(load.Config{FS: l.repo, Dir: dir, ModuleRoot: l.root, Package: parts.Qualifier})
		}
		return l.failed(pos, "import %q: the module %s has no such package", name, l.module)
	}
	v := vendored{files: l.repo, root: inRepo(l.root)}
	if !l.hasFiles(v, parts.Path) {
		return l.failed(pos, "import %q: it is not in the repository, and modules are not fetched: copy the package to %s", name, path.Join(v.root, modDir, "pkg", parts.Path))
	}
	return l.instance(load.Config{FS: v, FromFSPath: v.inRepo, Dir: "/" + parts.Path, ModuleRoot: "/", Package: parts.Qualifier})
}

// below returns name relative to base, when it lies there.
func below(name, base string) (string, bool) {
	if name == base {
		return ".", true
	}
	return strings.CutPrefix(name, base+"/")
}

func (l *loader) hasFiles(repo fs.ReadDirFS, dir string) bool {
	entries, err := repo.ReadDir(path.Clean(strings.TrimPrefix(dir, "/")))
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return path.Ext(e.Name()) == ".cue" })
}
