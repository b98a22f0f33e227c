package unpack

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/rutterhq/rutter"
)

// snapshot implements rutter.Snapshot: a tree under the name of what it came from.
type snapshot struct {
	tree     *Tree
	name     string
	revision string
}

var (
	_ rutter.Snapshot = (*snapshot)(nil)
	_ fs.ReadLinkFS   = (*snapshot)(nil)
)

// Snapshot returns the tree as the content of a repository, which name names in
// errors. It costs nothing: all snapshots of a tree share it.
func (t *Tree) Snapshot(name, revision string) rutter.Snapshot {
	return &snapshot{tree: t, name: name, revision: revision}
}

// Revision implements rutter.Snapshot.
func (s *snapshot) Revision() string { return s.revision }

// String names the snapshot in logs.
func (s *snapshot) String() string { return s.name + "@" + s.revision }

func (s *snapshot) fail(err error) error {
	return rutter.Errorf(rutter.CodeOf(err), "%s, %s: %w", s.name, s.revision, err)
}

// maxLinks is how many symbolic links one path may lead through.
const maxLinks = 40

// find walks to name. Symbolic links are followed within the tree only: one
// that leaves it leads to nothing. The last is followed only if follow says so.
func (s *snapshot) find(name string, follow bool) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, fs.ErrInvalid
	}
	root := &node{name: ".", kind: kindDir, folder: s.tree.root}
	// The path of folders from the root, for links that go up.
	var room [16]*node
	stack := append(room[:0], root)
	links := 0
	for rest := name; rest != ""; {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		switch part {
		case "", ".":
			continue
		case "..":
			if len(stack) == 1 {
				return nil, fs.ErrNotExist
			}
			stack = stack[:len(stack)-1]
			continue
		}
		n, ok := stack[len(stack)-1].folder.lookup(part)
		switch {
		case !ok:
			return nil, fs.ErrNotExist
		case n.kind == kindDir:
			stack = append(stack, n)
		case n.kind == kindLink && (follow || rest != ""):
			if links++; links > maxLinks || path.IsAbs(n.target) {
				return nil, fs.ErrNotExist
			}
			rest = n.target + "/" + rest
		case strings.Trim(rest, "/") != "":
			return nil, fs.ErrNotExist
		default:
			return n, nil
		}
	}
	return stack[len(stack)-1], nil
}

// content is what a file holds; a link's is its target, and is never asked for.
func (s *snapshot) content(n *node) ([]byte, error) {
	data, err := s.tree.read(n)
	if err != nil {
		return nil, s.fail(err)
	}
	return data, nil
}

// Open implements fs.FS.
func (s *snapshot) Open(name string) (fs.File, error) {
	n, err := s.find(name, true)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	i := infoOf(n, path.Base(name))
	if n.kind == kindDir {
		return &openFolder{info: i, entries: entriesOf(n.folder)}, nil
	}
	data, err := s.content(n)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return newOpenFile(i, data), nil
}

// ReadFile implements fs.ReadFileFS.
func (s *snapshot) ReadFile(name string) ([]byte, error) {
	n, err := s.find(name, true)
	if err == nil && n.kind == kindDir {
		err = errIsFolder
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	data, err := s.content(n)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, nil
}

// ReadDir implements fs.ReadDirFS.
func (s *snapshot) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := s.find(name, true)
	if err == nil && n.kind != kindDir {
		err = errNoFolder
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return entriesOf(n.folder), nil
}

// Stat implements fs.StatFS; it follows symbolic links.
func (s *snapshot) Stat(name string) (fs.FileInfo, error) { return s.stat("stat", name, true) }

// Lstat implements fs.ReadLinkFS: Stat without following a last symbolic link.
func (s *snapshot) Lstat(name string) (fs.FileInfo, error) { return s.stat("lstat", name, false) }

func (s *snapshot) stat(op, name string, follow bool) (fs.FileInfo, error) {
	n, err := s.find(name, follow)
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return infoOf(n, path.Base(name)), nil
}

// ReadLink implements fs.ReadLinkFS.
func (s *snapshot) ReadLink(name string) (string, error) {
	n, err := s.find(name, false)
	if err == nil && n.kind != kindLink {
		err = fs.ErrInvalid
	}
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return n.target, nil
}

// Hash implements rutter.Snapshot.
func (s *snapshot) Hash(kind rutter.InputKind, name string) (string, error) {
	n, err := s.find(name, true)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", &fs.PathError{Op: "hash", Path: name, Err: err}
	}
	isDir := n.kind == kindDir
	switch kind {
	case rutter.InputFile:
		if !isDir {
			return hex.EncodeToString(n.id[:]), nil
		}
	case rutter.InputList:
		if isDir {
			return n.folder.hash, nil
		}
	case rutter.InputStat:
		if isDir {
			return "dir", nil
		}
		return "file", nil
	default:
		return "", rutter.Errorf(rutter.CodeInternal, "input of unknown kind %q at %s", kind, name)
	}
	return "", nil
}

var (
	errIsFolder = errors.New("is a directory")
	errNoFolder = errors.New("not a directory")
)
