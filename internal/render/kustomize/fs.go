package kustomize

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/rutterhq/rutter/internal/render/record"
)

// mount is where the library sees the repository. It is not the root, so that
// a path with too many ".." leaves it and finds nothing.
const mount = "/repository"

var errReadOnly = errors.New("the repository is read-only")

func fileNames() []string { return konfig.RecognizedKustomizationFileNames() }

// snapshotFS shows the repository to the library. Every kustomization passes
// through ReadFile, which is where it is checked before the library acts on it.
type snapshotFS struct {
	repo  *record.FS
	root  *edited
	known *known

	// alone is set when the render may use the openapi field; needsAlone when it has to.
	alone, needsAlone bool
	// refused is why the render was stopped. The library wraps and swallows
	// errors of files, so it is kept here.
	refused error
	// plugins are files and folders that configure the library's own plugins.
	plugins map[string]bool
	// kustomizations, resources and read are what the render has seen, for the origins.
	kustomizations map[string]*types.Kustomization
	resources      map[string]bool
	read           map[string][]byte
}

var _ filesys.FileSystem = (*snapshotFS)(nil)

func newFS(repo *record.FS, root *edited, known *known) *snapshotFS {
	return &snapshotFS{repo: repo, root: root, known: known, plugins: map[string]bool{},
		kustomizations: map[string]*types.Kustomization{}, resources: map[string]bool{}, read: map[string][]byte{}}
}

// inside translates a path of the library to one of the repository.
func inside(name string) (string, bool) {
	clean := path.Clean(filepath.ToSlash(name))
	if clean == mount {
		return ".", true
	}
	return strings.CutPrefix(clean, mount+"/")
}

func (f *snapshotFS) stat(name string) (fs.FileInfo, error) {
	p, ok := inside(name)
	if !ok {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return f.repo.Stat(p)
}

// ReadFile implements filesys.FileSystem.
func (f *snapshotFS) ReadFile(name string) ([]byte, error) {
	if f.refused != nil {
		return nil, f.refused
	}
	p, ok := inside(name)
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	data := f.root.data
	if p != f.root.file {
		var err error
		if data, err = f.repo.ReadFile(p); err != nil {
			return nil, err
		}
	}
	var err error
	switch {
	case slices.Contains(fileNames(), path.Base(p)):
		data, err = f.kustomization(p, data)
	case f.plugins[p]:
		err = checkPlugin(p, data)
	}
	if err != nil {
		if f.refused == nil && !f.needsAlone {
			f.refused = err
		}
		return nil, err
	}
	f.read[p] = data
	return data, nil
}

// IsDir implements filesys.FileSystem.
func (f *snapshotFS) IsDir(name string) bool {
	info, err := f.stat(name)
	return err == nil && info.IsDir()
}

// Exists implements filesys.FileSystem.
func (f *snapshotFS) Exists(name string) bool {
	_, err := f.stat(name)
	return err == nil
}

// CleanedAbs implements filesys.FileSystem.
func (f *snapshotFS) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	info, err := f.stat(name)
	if err != nil {
		return "", "", err
	}
	clean := path.Clean(filepath.ToSlash(name))
	if info.IsDir() {
		return filesys.ConfirmedDir(clean), "", nil
	}
	return filesys.ConfirmedDir(path.Dir(clean)), path.Base(clean), nil
}

// ReadDir implements filesys.FileSystem.
func (f *snapshotFS) ReadDir(name string) ([]string, error) {
	p, ok := inside(name)
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	entries, err := f.repo.ReadDir(p)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Glob implements filesys.FileSystem, for a pattern in the last part of a path.
func (f *snapshotFS) Glob(pattern string) ([]string, error) {
	dir, last := path.Split(filepath.ToSlash(pattern))
	names, err := f.ReadDir(dir)
	if err != nil {
		return nil, nil //nolint:nilerr // as filepath.Glob: what cannot be listed does not match
	}
	var out []string
	for _, n := range names {
		ok, err := path.Match(last, n)
		if err != nil {
			return nil, err //nolint:wrapcheck // as filepath.Glob
		}
		if ok {
			out = append(out, path.Join(dir, n))
		}
	}
	return out, nil
}

// Walk implements filesys.FileSystem.
func (f *snapshotFS) Walk(name string, fn filepath.WalkFunc) error {
	info, err := f.stat(name)
	if err != nil {
		return fn(name, nil, err)
	}
	if err := fn(name, info, nil); err != nil || !info.IsDir() {
		if errors.Is(err, filepath.SkipDir) && info.IsDir() {
			return nil
		}
		return err
	}
	names, err := f.ReadDir(name)
	if err != nil {
		return fn(name, info, err)
	}
	for _, n := range names {
		if err := f.Walk(path.Join(name, n), fn); err != nil {
			return err
		}
	}
	return nil
}

// Open implements filesys.FileSystem; the library reads by ReadFile only.
func (f *snapshotFS) Open(string) (filesys.File, error) { return nil, errReadOnly }

// Create implements filesys.FileSystem.
func (f *snapshotFS) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir implements filesys.FileSystem.
func (f *snapshotFS) Mkdir(string) error { return errReadOnly }

// MkdirAll implements filesys.FileSystem.
func (f *snapshotFS) MkdirAll(string) error { return errReadOnly }

// RemoveAll implements filesys.FileSystem.
func (f *snapshotFS) RemoveAll(string) error { return errReadOnly }

// WriteFile implements filesys.FileSystem.
func (f *snapshotFS) WriteFile(string, []byte) error { return errReadOnly }
