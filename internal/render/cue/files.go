package cue

import (
	"bytes"
	"io"
	"io/fs"

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
func (f files) Open(name string) (fs.File, error) { return open(f, name) }

func open(f isolate.Files, name string) (fs.File, error) {
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
