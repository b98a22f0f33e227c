package kustomize

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"time"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/rutterhq/rutter"
)

var errReadOnly = errors.New("the repository is read-only")

func fileNames() []string { return konfig.RecognizedKustomizationFileNames() }

// Limits of one render, beside those of record.Limits.
const (
	// maxKustomizations bounds the layers: a few that name each other twice
	// would multiply without end.
	maxKustomizations = 1000
	// maxRemotes bounds the repositories and files that are fetched.
	maxRemotes = 128
)

// snapshotFS shows the repository to the library. Every kustomization passes
// through ReadFile, which is where it is checked before the library acts on it,
// and where what it names elsewhere is fetched and put in its place.
type snapshotFS struct {
	*mounts

	in       *Input
	root     *edited
	known    *known
	brought  *brought
	warnings map[string]bool

	// alone is set when the render may use the openapi field; needsAlone when it has to.
	alone, needsAlone bool
	// refused is why the render was stopped. The library wraps and swallows
	// errors of files, so it is kept here.
	refused error
	// plugins are files and folders that configure the library's own plugins.
	plugins map[string]bool
	// virtual are files that are in no repository, with where they come from;
	// folders are the folders that hold them.
	virtual map[string]*virtualFile
	folders map[string]bool
	// depth is how many builds of plugins are nested now.
	depth int
	// visits is how many kustomizations were read, layers how they are nested now.
	visits int
	layers []layer
	// kustomizations, resources and read are what the render has seen, for the origins.
	kustomizations map[string]*types.Kustomization
	resources      map[string]bool
	read           map[string][]byte
	// texts are the kustomizations as they are written.
	texts map[string][]byte
}

// virtualFile is one that only the library sees.
type virtualFile struct {
	data []byte
	// entry is what the kustomization named, "" for charts.
	entry string
	// at is where it is named, charts the places of inflated objects.
	at     rutter.Origin
	charts map[declared][]rutter.Origin
}

var _ filesys.FileSystem = (*snapshotFS)(nil)

func newFS(in *Input, root *edited, known *known, brought *brought) *snapshotFS {
	f := &snapshotFS{mounts: newMounts(in.Repo), in: in, root: root, known: known, brought: brought,
		warnings: map[string]bool{}, plugins: map[string]bool{}, virtual: map[string]*virtualFile{}, folders: map[string]bool{},
		kustomizations: map[string]*types.Kustomization{}, resources: map[string]bool{}, read: map[string][]byte{}, texts: map[string][]byte{}}
	f.virtual[f.rootFile()] = &virtualFile{data: root.data}
	return f
}

// rootFile is where the library sees the kustomization that is rendered.
func (f *snapshotFS) rootFile() string { return path.Join(f.own().root, f.root.file) }

// put adds a file that only the library sees, in a folder of its own below dir,
// and returns its name relative to dir.
func (f *snapshotFS) put(dir, name string, file *virtualFile) string {
	folder := fmt.Sprintf(".%s-v%d", f.nonce, len(f.virtual))
	f.folders[path.Join(dir, folder)] = true
	f.virtual[path.Join(dir, folder, name)] = file
	return path.Join(folder, name)
}

func (f *snapshotFS) stat(name string) (fs.FileInfo, error) {
	clean := path.Clean(filepath.ToSlash(name))
	if v, ok := f.virtual[clean]; ok {
		return virtualInfo{path.Base(clean), int64(len(v.data)), false}, nil
	}
	if f.folders[clean] {
		return virtualInfo{path.Base(clean), 0, true}, nil
	}
	at, ok := f.place(clean)
	if !ok {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return at.m.repo.Stat(at.path)
}

// virtualInfo describes a file that only the library sees.
type virtualInfo struct {
	name string
	size int64
	dir  bool
}

// Name implements fs.FileInfo.
func (i virtualInfo) Name() string { return i.name }

// Size implements fs.FileInfo.
func (i virtualInfo) Size() int64 { return i.size }

// Mode implements fs.FileInfo.
func (i virtualInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// ModTime implements fs.FileInfo.
func (i virtualInfo) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (i virtualInfo) IsDir() bool { return i.dir }

// Sys implements fs.FileInfo.
func (i virtualInfo) Sys() any { return nil }

// ReadFile implements filesys.FileSystem.
func (f *snapshotFS) ReadFile(name string) ([]byte, error) {
	if f.refused != nil {
		return nil, f.refused
	}
	full := path.Clean(filepath.ToSlash(name))
	at, ok := f.place(full)
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	data, err := f.load(full, at)
	if err != nil {
		return nil, err
	}
	if data, err = f.check(full, at, data); err != nil {
		if f.refused == nil && !f.needsAlone {
			f.refused = err
		}
		return nil, err
	}
	f.read[full] = data
	return data, nil
}

// show names a file for the user.
func (f *snapshotFS) show(full string, at place) string {
	switch v := f.virtual[full]; {
	case v == nil:
	case v.charts != nil:
		return v.at.File
	case v.entry != "":
		return printable(v.entry)
	}
	return at.display()
}

// hashOf is the hash of a file that was read from a repository, else "".
func (f *snapshotFS) hashOf(full string, at place) string {
	if _, ok := f.virtual[full]; ok {
		return ""
	}
	return at.m.repo.HashOf(at.path)
}

// check returns a file as the library may see it.
func (f *snapshotFS) check(full string, at place, data []byte) ([]byte, error) {
	if hash := f.hashOf(full, at); !f.known.isSmall(hash) {
		if err := checkSize(f.show(full, at), data); err != nil {
			return nil, err
		}
		f.known.setSmall(hash)
	}
	switch {
	case f.isOurs(full):
		f.enter(full, &types.Kustomization{Resources: []string{inflatedFile}})
	case slices.Contains(fileNames(), path.Base(full)):
		return f.kustomization(full, at, data)
	case f.plugins[full]:
		return data, f.checkPlugin(f.show(full, at), data)
	}
	return data, nil
}

// isOurs reports whether a file is a kustomization that was put there for charts.
func (f *snapshotFS) isOurs(full string) bool {
	v, ok := f.virtual[full]
	return ok && full != f.rootFile() && v.entry == "" && slices.Contains(fileNames(), path.Base(full))
}

func (f *snapshotFS) load(full string, at place) ([]byte, error) {
	if v, ok := f.virtual[full]; ok {
		return v.data, nil
	}
	return at.m.repo.ReadFile(at.path)
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
	at, ok := f.place(name)
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	entries, err := at.m.repo.ReadDir(at.path)
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
