package unpack

import (
	"bytes"
	"io"
	"io/fs"
	"time"
)

// info implements fs.FileInfo and fs.DirEntry. All times are zero, so that a
// render cannot depend on one.
type info struct {
	name string
	kind kind
	size int64
}

func infoOf(n *node, name string) info {
	i := info{name: name, kind: n.kind}
	if n.kind != kindDir {
		i.size = n.size
	}
	return i
}

func (i info) Name() string               { return i.name }
func (i info) Size() int64                { return i.size }
func (i info) ModTime() time.Time         { return time.Time{} }
func (i info) IsDir() bool                { return i.kind == kindDir }
func (i info) Sys() any                   { return nil }
func (i info) Type() fs.FileMode          { return i.Mode().Type() }
func (i info) Info() (fs.FileInfo, error) { return i, nil }
func (i info) String() string             { return fs.FormatFileInfo(i) }

func (i info) Mode() fs.FileMode {
	switch i.kind {
	case kindDir:
		return fs.ModeDir | 0o555
	case kindLink:
		return fs.ModeSymlink | 0o777
	case kindExec:
		return 0o555
	case kindFile:
	}
	return 0o444
}

func entriesOf(d *folder) []fs.DirEntry {
	out := make([]fs.DirEntry, len(d.entries))
	for i := range d.entries {
		out[i] = infoOf(&d.entries[i], d.entries[i].name)
	}
	return out
}

// openFile is an open regular file.
type openFile struct {
	*bytes.Reader

	info   info
	closed bool
}

func newOpenFile(i info, data []byte) *openFile {
	return &openFile{Reader: bytes.NewReader(data), info: i}
}

// Stat implements fs.File.
func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// Read implements fs.File.
func (f *openFile) Read(p []byte) (int, error) {
	if f.closed {
		return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: fs.ErrClosed}
	}
	return f.Reader.Read(p)
}

// Close implements fs.File.
func (f *openFile) Close() error {
	f.closed = true
	return nil
}

// openFolder is an open directory.
type openFolder struct {
	info    info
	entries []fs.DirEntry
}

// Stat implements fs.File.
func (d *openFolder) Stat() (fs.FileInfo, error) { return d.info, nil }

// Read implements fs.File.
func (d *openFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: errIsFolder}
}

// Close implements fs.File.
func (d *openFolder) Close() error { return nil }

// ReadDir implements fs.ReadDirFile.
func (d *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
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
