// Package record wraps a snapshot so that a render's inputs are known
// afterwards: every file, listing and look-up, with the hash of what was found
// there, the absent ones too. A later commit in which all of them have the
// same hashes must render to the same objects, so no tool has to run.
//
// Ring: adapter (render). It is the only way in which the render tools see a
// repository, and therefore also where a tool is stopped: when its time is up,
// or when it has read more than a render may.
package record

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/rutterhq/rutter"
)

// Limits bounds what one render may read; zero means no limit.
type Limits struct {
	Reads int
	Bytes int64
}

// Options are what a render may reach beside its snapshot, and how far. Each
// function may be nil.
type Options struct {
	Limits

	// Fetch finds what the source names elsewhere, when its project allows it.
	Fetch func(ctx context.Context, repo rutter.Repo) (rutter.Snapshot, error)
	// Decrypt opens a file that is sealed with SOPS (rutter.Decrypter).
	Decrypt func(ctx context.Context, name string, data []byte) (plain []byte, sealed bool, err error)
	// Lookup reads an object of the target cluster.
	Lookup rutter.Lookup
	// HashKey keys the hashes of what was looked up, which may be secrets.
	HashKey []byte
}

// FS is a read-only file system that takes notes. Paths are relative to the
// root of the repository, with slashes, and may hold "." and "..". It is safe
// for concurrent use.
type FS struct {
	snap   rutter.Snapshot
	source int
	// repo names a repository elsewhere (rutter.Repo.Key); empty for a source.
	repo string
	log  *journal
}

// journal is shared by the file systems of one render.
type journal struct {
	ctx  context.Context //nolint:containedctx // a render's file system lives exactly as long as the render
	opts Options

	mu      sync.Mutex
	inputs  map[rutter.Input]string
	reads   int
	bytes   int64
	secret  bool
	passing bool
	err     error
}

// New returns a recording view of snap for one render, which ends with ctx.
func New(ctx context.Context, snap rutter.Snapshot, opts Options) *FS {
	return &FS{snap: snap, log: &journal{ctx: ctx, opts: opts, inputs: map[rutter.Input]string{}}}
}

// Beside returns a view of another snapshot that the same render reads; its
// inputs carry the number source.
func (f *FS) Beside(snap rutter.Snapshot, source int) *FS {
	return &FS{snap: snap, source: source, log: f.log}
}

// Clean returns p in the form in which snapshots are asked, or an error when
// it is absolute or leaves the repository.
func Clean(p string) (string, error) {
	c := path.Clean(p)
	if path.IsAbs(c) || c == ".." || len(c) > 2 && c[:3] == "../" {
		return "", rutter.Errorf(rutter.CodeInvalid, "path %q leaves the repository: use a relative path inside it", p)
	}
	return c, nil
}

// note records one look and stops a render that has run out of its limits.
func (f *FS) note(kind rutter.InputKind, p string) error {
	hash, err := f.snap.Hash(kind, p)
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	switch {
	case f.log.err != nil:
		return f.log.err
	case f.log.ctx.Err() != nil:
		f.log.err = context.Cause(f.log.ctx)
	case err != nil:
		f.log.err = fmt.Errorf("hash %s: %w", p, err)
		f.log.passing = f.log.passing || passing(err)
	default:
		f.log.reads++
		if f.log.opts.Reads > 0 && f.log.reads > f.log.opts.Reads {
			f.log.err = rutter.Errorf(rutter.CodeInvalid, "the render looks at more than %d files", f.log.opts.Reads)
		}
	}
	if f.log.err != nil {
		return f.log.err
	}
	f.log.inputs[rutter.Input{Source: f.source, Repo: f.repo, Kind: kind, Path: p}] = hash
	return nil
}

// Err returns what has stopped the render, when something did. Tools wrap or
// swallow errors of a file system; this is the one that counts.
func (f *FS) Err() error {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	return f.log.err
}

// ReadFile returns the content of a file, the plaintext where it is sealed and
// a key is configured.
func (f *FS) ReadFile(name string) ([]byte, error) {
	data, err := f.ReadSealed(name)
	if err != nil || f.log.opts.Decrypt == nil || !bytes.Contains(data, []byte("sops")) {
		return data, err
	}
	plain, sealed, err := f.log.opts.Decrypt(f.log.ctx, name, data)
	switch {
	case err != nil: // it names the file
		if rutter.CodeOf(err) != rutter.CodeInvalid {
			f.log.pass()
		}
		f.log.stop(err)
		return nil, err
	case sealed:
		f.log.mu.Lock()
		defer f.log.mu.Unlock()
		f.log.secret = true
		return plain, nil
	}
	return data, nil
}

// ReadSealed returns the content of a file as it is in the repository.
func (f *FS) ReadSealed(name string) ([]byte, error) {
	p, err := Clean(name)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	if err := f.note(rutter.InputFile, p); err != nil {
		return nil, err
	}
	data, err := f.snap.ReadFile(p)
	if err != nil {
		f.log.failed(err)
		return nil, err
	}
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	f.log.bytes += int64(len(data))
	if f.log.opts.Bytes > 0 && f.log.bytes > f.log.opts.Bytes {
		f.log.err = rutter.Errorf(rutter.CodeInvalid, "the render reads more than %d MiB", f.log.opts.Bytes>>20)
		return nil, f.log.err
	}
	return data, nil
}

// ReadDir returns the entries of a directory, sorted by name.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	p, err := Clean(name)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	if err := f.note(rutter.InputList, p); err != nil {
		return nil, err
	}
	entries, err := f.snap.ReadDir(p)
	if err != nil {
		f.log.failed(err)
		return nil, err
	}
	return entries, nil
}

// Stat returns what is at a path.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	p, err := Clean(name)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	if err := f.note(rutter.InputStat, p); err != nil {
		return nil, err
	}
	info, err := f.snap.Stat(p)
	if err != nil {
		f.log.failed(err)
		return nil, err
	}
	return info, nil
}

// IsDir reports whether a path is a directory.
func (f *FS) IsDir(name string) bool {
	info, err := f.Stat(name)
	return err == nil && info.IsDir()
}

// IsFile reports whether a path is a regular file.
func (f *FS) IsFile(name string) bool {
	info, err := f.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// HashOf returns the hash of a file that was read, "" for one that was not.
func (f *FS) HashOf(file string) string {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	return f.log.inputs[rutter.Input{Source: f.source, Repo: f.repo, Kind: rutter.InputFile, Path: file}]
}

// Inputs returns all that was looked at, ordered by source, path and kind.
func (f *FS) Inputs() []rutter.Input {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	out := make([]rutter.Input, 0, len(f.log.inputs))
	for in, hash := range f.log.inputs {
		in.Hash = hash
		out = append(out, in)
	}
	slices.SortFunc(out, func(a, b rutter.Input) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// IsAbsent reports whether err says that there is nothing at a path, as
// opposed to a repository that could not be read.
func IsAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
