package cue

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// vendored is the folder of all packages that are vendored in a module: what
// lies in cue.mod/gen, cue.mod/usr and cue.mod/pkg, laid over each other. A
// file is named by the folder that it is from, so that none hides another.
type vendored struct {
	files

	root string
}

// vendorDirs are the folders of cue.mod that hold packages.
func vendorDirs() []string { return []string{"gen", "usr", "pkg"} }

// vendorMark ends the folder's name before that of a file.
const vendorMark = "~"

// paths are the places in the repository that a name may be about.
func (v vendored) paths(name string) []string {
	if first, _, _ := strings.Cut(name, "/"); first == modDir {
		return []string{path.Join(v.root, name)} // the module's own file says which language is spoken
	}
	dir, base := path.Split(name)
	for _, d := range vendorDirs() {
		if rest, ok := strings.CutPrefix(base, d+vendorMark); ok {
			return []string{path.Join(v.root, modDir, d, dir, rest)}
		}
	}
	var out []string
	for _, d := range vendorDirs() {
		out = append(out, path.Join(v.root, modDir, d, name))
	}
	return out
}

// Open implements fs.FS.
func (v vendored) Open(name string) (fs.File, error) { return open(v, name) }

// ReadFile implements fs.ReadFileFS.
func (v vendored) ReadFile(name string) ([]byte, error) {
	if p := v.paths(name); len(p) == 1 {
		return v.files.ReadFile(p[0])
	}
	return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
}

// Stat implements fs.StatFS.
func (v vendored) Stat(name string) (fs.FileInfo, error) {
	var info fs.FileInfo
	err := fs.ErrNotExist
	for _, p := range v.paths(name) {
		if info, err = v.files.Stat(p); err == nil {
			return info, nil
		}
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
}

// ReadDir implements fs.ReadDirFS.
func (v vendored) ReadDir(name string) ([]fs.DirEntry, error) {
	var out []fs.DirEntry
	found := false
	for _, p := range v.paths(name) {
		entries, err := v.files.ReadDir(p)
		if err != nil {
			continue
		}
		found = true
		below, _ := strings.CutPrefix(p, path.Join(v.root, modDir)+"/")
		kind, _, _ := strings.Cut(below, "/")
		for _, e := range entries {
			switch {
			case e.IsDir():
				if !slices.ContainsFunc(out, func(o fs.DirEntry) bool { return o.Name() == e.Name() }) {
					out = append(out, e)
				}
			case inPackage(e.Name()):
				out = append(out, renamed{DirEntry: e, name: kind + vendorMark + e.Name()})
			}
		}
	}
	if !found {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// renamed is an entry under another name.
type renamed struct {
	fs.DirEntry

	name string
}

// Name implements fs.DirEntry.
func (r renamed) Name() string { return r.name }

// inRepo is the place in the repository of a name, for positions and errors.
func (v vendored) inRepo(name string) string {
	if p := v.paths(strings.TrimPrefix(name, "/")); len(p) == 1 {
		return "/" + p[0]
	}
	return name
}
