package cue

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"path"

	"cuelang.org/go/mod/modconfig"
	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/module"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/isolate"
)

// files makes a repository an fs.FS, which is what cue's loader reads.
type files struct{ isolate.Files }

var (
	_ fs.ReadFileFS = files{}
	_ fs.ReadDirFS  = files{}
	_ fs.StatFS     = files{}
)

// Open implements fs.FS.
func (f files) Open(name string) (fs.File, error) {
	info, err := f.Stat(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if info.IsDir() {
		entries, err := f.ReadDir(name)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return &folder{info: info, entries: entries}, nil
	}
	data, err := f.ReadFile(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &file{Reader: bytes.NewReader(data), info: info}, nil
}

type file struct {
	*bytes.Reader

	info fs.FileInfo
}

// Stat implements fs.File.
func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close implements fs.File.
func (f *file) Close() error { return nil }

type folder struct {
	info    fs.FileInfo
	entries []fs.DirEntry
}

// Stat implements fs.File.
func (d *folder) Stat() (fs.FileInfo, error) { return d.info, nil }

// Read implements fs.File.
func (d *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.Name(), Err: fs.ErrInvalid}
}

// Close implements fs.File.
func (d *folder) Close() error { return nil }

// ReadDir implements fs.ReadDirFile.
func (d *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(d.entries) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(d.entries) {
		n = len(d.entries)
	}
	out := d.entries[:n]
	d.entries = d.entries[n:]
	return out, nil
}

// noRegistry refuses to fetch modules.
type noRegistry struct{}

var _ modconfig.Registry = noRegistry{}

func refuse(mod string) error {
	return rutter.Errorf(rutter.CodeForbidden, "the module %s is not in the repository, and modules are not fetched: %s", mod, remedy(mod))
}

func remedy(mod string) string {
	return "copy it to " + path.Join("cue.mod", "pkg", mod) + " of the module and take it out of the deps in cue.mod/module.cue"
}

// ModFile implements modconfig.Registry.
func (noRegistry) ModFile(_ context.Context, m module.Version) (*modfile.File, error) {
	return nil, refuse(m.BasePath())
}

// Fetch implements modconfig.Registry.
func (noRegistry) Fetch(_ context.Context, m module.Version) (module.SourceLoc, error) {
	return module.SourceLoc{}, refuse(m.BasePath())
}

// ModuleVersions implements modconfig.Registry: none are known of any module.
func (noRegistry) ModuleVersions(context.Context, string) ([]string, error) { return nil, nil }
