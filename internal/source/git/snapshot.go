package git

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
)

// snapshot implements rutter.Snapshot: a commit of a mirror. As long as it is
// referenced the mirror keeps the commit, whatever becomes of its branch.
type snapshot struct {
	m      *mirror
	url    string
	commit string
	root   objectID
}

var (
	_ rutter.Snapshot = (*snapshot)(nil)
	_ fs.ReadLinkFS   = (*snapshot)(nil)
)

// newSnapshot opens a commit that is in the mirror.
func newSnapshot(m *mirror, url, commit string) (*snapshot, error) {
	s := &snapshot{m: m, url: url, commit: commit}
	id, ok := parseID(commit)
	if !ok {
		return nil, s.fail(rutter.Errorf(rutter.CodeInvalid, "it is not a commit id"))
	}
	data, err := m.object(commit, id, "commit")
	if err != nil {
		return nil, s.fail(err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	if s.root, ok = parseID(strings.TrimPrefix(line, "tree ")); !ok {
		return nil, s.fail(rutter.Errorf(rutter.CodeInvalid, "it has no tree"))
	}
	if _, err := m.tree(commit, s.root); err != nil {
		return nil, s.fail(err)
	}
	return s, nil
}

func (s *snapshot) fail(err error) error {
	return rutter.Errorf(rutter.CodeOf(err), "repository %q, commit %s: %w", s.url, s.commit, err)
}

// Revision implements rutter.Snapshot.
func (s *snapshot) Revision() string { return s.commit }

// maxLinks is how many symbolic links one path may lead through.
const maxLinks = 40

// node is what a path leads to.
type node struct {
	entry

	// tree is set for a folder.
	tree *tree
}

// find walks to name. Symbolic links are followed within the tree only: one
// that is absolute, or leaves it, leads to nothing. The last is followed only
// if follow says so.
func (s *snapshot) find(name string, follow bool) (node, error) {
	if !fs.ValidPath(name) {
		return node{}, fs.ErrInvalid
	}
	root, err := s.m.tree(s.commit, s.root)
	if err != nil {
		return node{}, s.fail(err)
	}
	// The path of folders from the root, for links that go up.
	var room [16]node
	stack := append(room[:0], node{entry: entry{name: ".", kind: kindDir, id: s.root}, tree: root})
	links := 0
	for rest := name; rest != ""; {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		top := stack[len(stack)-1]
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			if len(stack) == 1 {
				return node{}, fs.ErrNotExist
			}
			stack = stack[:len(stack)-1]
			continue
		}
		e, ok := top.tree.lookup(part)
		if !ok {
			return node{}, fs.ErrNotExist
		}
		switch {
		case e.kind.isDir():
			t, err := s.folder(e)
			if err != nil {
				return node{}, err
			}
			stack = append(stack, node{entry: e, tree: t})
		case e.kind == kindLink && (follow || rest != ""):
			target, err := s.target(e)
			if err != nil {
				return node{}, err
			}
			if links++; links > maxLinks || path.IsAbs(target) {
				return node{}, fs.ErrNotExist
			}
			rest = target + "/" + rest
		case strings.Trim(rest, "/") != "":
			return node{}, fs.ErrNotExist
		default:
			return node{entry: e}, nil
		}
	}
	return stack[len(stack)-1], nil
}

func (s *snapshot) folder(e entry) (*tree, error) {
	if e.kind == kindSubmodule {
		return emptyTree, nil
	}
	t, err := s.m.tree(s.commit, e.id)
	if err != nil {
		return nil, s.fail(err)
	}
	return t, nil
}

func (s *snapshot) target(e entry) (string, error) {
	data, err := s.m.blob(s.commit, e.id)
	if err != nil {
		return "", s.fail(err)
	}
	return string(data), nil
}

// Open implements fs.FS.
func (s *snapshot) Open(name string) (fs.File, error) {
	n, err := s.find(name, true)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if n.tree != nil {
		return &folder{info: info{name: path.Base(name), kind: n.kind}, entries: s.entries(n.tree)}, nil
	}
	data, err := s.m.blob(s.commit, n.id)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: s.fail(err)}
	}
	return newFile(info{name: path.Base(name), kind: n.kind, size: int64(len(data))}, data), nil
}

// ReadFile implements fs.ReadFileFS.
func (s *snapshot) ReadFile(name string) ([]byte, error) {
	n, err := s.find(name, true)
	if err == nil && n.tree != nil {
		err = errIsFolder
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	data, err := s.m.blob(s.commit, n.id)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: s.fail(err)}
	}
	return slices.Clone(data), nil
}

// ReadDir implements fs.ReadDirFS.
func (s *snapshot) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := s.find(name, true)
	if err == nil && n.tree == nil {
		err = errNoFolder
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return s.entries(n.tree), nil
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
	n.name = path.Base(name)
	i, err := s.info(n.entry)
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return i, nil
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
	target, err := s.target(n.entry)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return target, nil
}

func (s *snapshot) info(e entry) (info, error) {
	i := info{name: e.name, kind: e.kind}
	if e.kind.isDir() {
		return i, nil
	}
	size, err := s.m.size(s.commit, e.id)
	if err != nil {
		return i, s.fail(err)
	}
	i.size = size
	return i, nil
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
	isDir := n.tree != nil
	switch kind {
	case rutter.InputFile:
		if !isDir {
			return n.id.String(), nil
		}
	case rutter.InputList:
		if isDir {
			return n.tree.listHash(), nil
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

// String names the snapshot in logs.
func (s *snapshot) String() string { return fmt.Sprintf("%s@%s", s.url, s.commit) }
