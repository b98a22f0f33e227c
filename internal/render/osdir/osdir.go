// Package osdir shows an ordinary folder as a rutter.Snapshot, so that what is
// not committed yet can be rendered offline (`rutter render --repo DIR`).
//
// Ring: adapter (render). The folder is opened as a root that symbolic links
// cannot leave; .git is not shown, as it is in no commit. Hashes are computed
// when they are asked for, and kept until the file changes.
package osdir

import (
	"crypto/sha1" //nolint:gosec // Git's object ids, not a protection
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// Revision is the revision of every folder: no commit has it.
const Revision = "0000000000000000000000000000000000000000"

// Dir is a folder on disk.
type Dir struct {
	root *os.Root

	mu     sync.Mutex
	hashes map[string]hashed
}

type hashed struct {
	size int64
	mod  time.Time
	hash string
}

var _ rutter.Snapshot = (*Dir)(nil)

// Open returns a view of a folder. It must be closed.
func Open(dir string) (*Dir, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &rutter.Error{Code: rutter.CodeNotFound, Message: "open folder " + dir, Err: err}
	}
	return &Dir{root: root, hashes: map[string]hashed{}}, nil
}

// Close releases the folder.
func (d *Dir) Close() error {
	if err := d.root.Close(); err != nil {
		return fmt.Errorf("close folder: %w", err)
	}
	return nil
}

// Revision implements rutter.Snapshot.
func (d *Dir) Revision() string { return Revision }

// Open implements fs.FS.
func (d *Dir) Open(name string) (fs.File, error) {
	if err := visible("open", name); err != nil {
		return nil, err
	}
	f, err := d.root.Open(name)
	return f, confined("open", name, err)
}

// ReadFile implements fs.ReadFileFS.
func (d *Dir) ReadFile(name string) ([]byte, error) {
	if err := visible("read", name); err != nil {
		return nil, err
	}
	data, err := d.root.ReadFile(name)
	return data, confined("read", name, err)
}

// Stat implements fs.StatFS; it follows symbolic links inside the folder.
func (d *Dir) Stat(name string) (fs.FileInfo, error) {
	if err := visible("stat", name); err != nil {
		return nil, err
	}
	info, err := d.root.Stat(name)
	return info, confined("stat", name, err)
}

// ReadDir implements fs.ReadDirFS.
func (d *Dir) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := visible("readdir", name); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(d.root.FS(), name)
	if err != nil {
		return nil, confined("readdir", name, err)
	}
	kept := entries[:0]
	for _, e := range entries {
		if e.Name() != ".git" {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// Hash implements rutter.Snapshot.
func (d *Dir) Hash(kind rutter.InputKind, name string) (string, error) {
	info, err := d.Stat(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return "", err
	}
	switch {
	case kind == rutter.InputStat && info.IsDir():
		return "dir", nil
	case kind == rutter.InputStat:
		return "file", nil
	case kind == rutter.InputList && info.IsDir():
		return d.hashList(name)
	case kind == rutter.InputFile && !info.IsDir():
		return d.hashFile(name, info)
	}
	return "", nil
}

func (d *Dir) hashList(name string) (string, error) {
	entries, err := d.ReadDir(name)
	if err != nil {
		return "", err
	}
	h := sha1.New() //nolint:gosec // see above
	for _, e := range entries {
		fmt.Fprintf(h, "%s %s\n", e.Type(), e.Name())
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (d *Dir) hashFile(name string, info fs.FileInfo) (string, error) {
	d.mu.Lock()
	known, ok := d.hashes[name]
	d.mu.Unlock()
	if ok && known.size == info.Size() && known.mod.Equal(info.ModTime()) {
		return known.hash, nil
	}
	data, err := d.ReadFile(name)
	if err != nil {
		return "", err
	}
	h := sha1.New() //nolint:gosec // see above
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	hash := hex.EncodeToString(h.Sum(nil))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hashes[name] = hashed{size: info.Size(), mod: info.ModTime(), hash: hash}
	return hash, nil
}

// visible refuses names that no commit has.
func visible(op, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	for part := range strings.SplitSeq(path.Clean(name), "/") {
		if part == ".git" {
			return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
	}
	return nil
}

// confined makes a symbolic link that leaves the folder look like nothing, and
// keeps the folder's own place on this machine out of errors.
func confined(op, name string, err error) error {
	var pe *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), !errors.As(err, &pe):
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	case strings.Contains(pe.Err.Error(), "escapes"), strings.Contains(pe.Err.Error(), "not a directory"):
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return &fs.PathError{Op: op, Path: name, Err: pe.Err}
}
