package git

import (
	"bytes"
	"io"
	"io/fs"
	"time"
)

// info implements fs.FileInfo. Git records no times: all are zero, so that a
// render cannot depend on one.
type info struct {
	name string
	kind entryKind
	size int64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.kind.mode() }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.kind.isDir() }
func (i info) Sys() any           { return nil }

// dirEntry implements fs.DirEntry; the size is looked up only when asked for.
type dirEntry struct {
	s *snapshot
	e *entry
}

func (d dirEntry) Name() string               { return d.e.name }
func (d dirEntry) IsDir() bool                { return d.e.kind.isDir() }
func (d dirEntry) Type() fs.FileMode          { return d.e.kind.mode().Type() }
func (d dirEntry) Info() (fs.FileInfo, error) { return d.s.info(*d.e) }
func (d dirEntry) String() string             { return fs.FormatDirEntry(d) }

func (s *snapshot) entries(t *tree) []fs.DirEntry {
	out := make([]fs.DirEntry, len(t.entries))
	for i := range t.entries {
		out[i] = dirEntry{s, &t.entries[i]}
	}
	return out
}

// file is an open regular file.
type file struct {
	*bytes.Reader

	info   info
	closed bool
}

func newFile(i info, data []byte) *file { return &file{Reader: bytes.NewReader(data), info: i} }

// Stat implements fs.File.
func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

// Read implements fs.File.
func (f *file) Read(p []byte) (int, error) {
	if f.closed {
		return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: fs.ErrClosed}
	}
	return f.Reader.Read(p)
}

// Close implements fs.File.
func (f *file) Close() error {
	f.closed = true
	return nil
}

// folder is an open directory.
type folder struct {
	info    info
	entries []fs.DirEntry
}

// Stat implements fs.File.
func (d *folder) Stat() (fs.FileInfo, error) { return d.info, nil }

// Read implements fs.File.
func (d *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: errIsFolder}
}

// Close implements fs.File.
func (d *folder) Close() error { return nil }

// ReadDir implements fs.ReadDirFile.
func (d *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	rest := d.entries
	if n > 0 {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		rest = rest[:min(n, len(rest))]
	}
	d.entries = d.entries[len(rest):]
	return rest, nil
}
