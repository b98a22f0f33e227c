package cue

import (
	"encoding/json"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"
	"cuelang.org/go/cue/parser"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/isolate"
)

// maxNesting is how deep in structs and lists objects are looked for.
const maxNesting = 50

// Task evaluates one request; an isolated process runs it under TaskName.
func Task(repo isolate.Files, text []byte) ([]byte, error) {
	var req request
	if err := json.Unmarshal(text, &req); err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "read a request: %w", err)
	}
	pkg, err := packageName(files{repo}, req.Dir)
	if err != nil {
		return nil, err
	}
	l := newLoader(files{repo}, req.Dir)
	inst := l.instance(load.Config{FS: l.repo, Dir: "/" + req.Dir, ModuleRoot: l.root, Package: pkg, Tags: req.Tags})
	if inst.Err != nil {
		return nil, places(nil).explain(inst.Err, req.Dir)
	}
	w := &walk{dir: req.Dir, places: written(inst.Files)}
	v := cuecontext.New().BuildInstance(inst)
	if err := v.Validate(cue.Concrete(true)); err != nil {
		return nil, w.places.explain(err, req.Dir)
	}
	if err := w.visit(v, 0); err != nil {
		return nil, err
	}
	out, err := json.Marshal(w.found)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "write down the objects: %w", err)
	}
	return out, nil
}

// packageName finds the package that a folder holds: "" is for the loader to
// find, "_" are files that name none.
func packageName(repo files, dir string) (string, error) {
	entries, err := repo.ReadDir(dir)
	if err != nil {
		return "", rutter.Errorf(rutter.CodeOf(err), "list %s: %w", dir, err)
	}
	var names []string
	some := false
	for _, e := range entries {
		if !inPackage(e.Name()) {
			continue
		}
		some = true
		full := strings.TrimPrefix(dir+"/"+e.Name(), "./")
		data, err := repo.ReadFile(full)
		if err != nil {
			return "", rutter.Errorf(rutter.CodeOf(err), "read %s: %w", full, err)
		}
		f, err := parser.ParseFile(full, data, parser.PackageClauseOnly)
		if err != nil {
			return "", places(nil).explain(err, dir)
		}
		if n := f.PackageName(); n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	switch {
	case !some:
		return "", rutter.Errorf(rutter.CodeInvalid, "%s holds no CUE files", dir)
	case len(names) > 1:
		slices.Sort(names)
		return "", rutter.Errorf(rutter.CodeInvalid, "%s holds several CUE packages: %s: give each a folder of its own", dir, strings.Join(names, ", "))
	case len(names) == 0:
		return "_", nil
	}
	return "", nil
}

// walk collects the objects of a package.
type walk struct {
	dir    string
	places places
	found  []found
}

func (w *walk) visit(v cue.Value, depth int) error {
	if depth > maxNesting {
		return nil
	}
	v, _ = v.Default()
	var it *cue.Iterator
	switch v.IncompleteKind() {
	case cue.StructKind:
		if v.LookupPath(cue.ParsePath("apiVersion")).Exists() && v.LookupPath(cue.ParsePath("kind")).Exists() {
			return w.emit(v)
		}
		fields, err := v.Fields()
		if err != nil {
			return w.places.explain(err, w.dir)
		}
		it = fields
	case cue.ListKind:
		list, err := v.List()
		if err != nil {
			return w.places.explain(err, w.dir)
		}
		it = &list
	default:
		return nil
	}
	for it.Next() {
		if err := w.visit(it.Value(), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) emit(v cue.Value) error {
	text, err := v.MarshalJSON()
	if err != nil {
		return w.places.explain(err, w.dir)
	}
	f := found{Path: v.Path().String(), JSON: text}
	f.File, f.Line = w.places.of(v)
	w.found = append(w.found, f)
	return nil
}
