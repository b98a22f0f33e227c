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

// snapshot implements rutter.Snapshot: a held commit as one asker may see it.
// What lies behind it elsewhere (submodules, content of LFS) is fetched when it
// is read, with what this asker may use.
type snapshot struct {
	*held

	// lfs is nil where pointers of LFS are files like any other; modules is
	// nil where a submodule is an empty folder.
	lfs     *lfs
	modules *modules
}

var (
	_ rutter.Snapshot  = (*snapshot)(nil)
	_ fs.ReadLinkFS    = (*snapshot)(nil)
	_ rutter.Committed = (*snapshot)(nil)
)

// Revision implements rutter.Snapshot.
func (s *snapshot) Revision() string { return s.commit }

// maxLinks is how many symbolic links one path may lead through, maxTarget how
// long a link's target may be, as in Linux.
const (
	maxLinks  = 40
	maxTarget = 4096
)

// node is what a path leads to.
type node struct {
	entry

	// in is the snapshot that it belongs to: the one that was asked, or that of
	// a submodule.
	in *snapshot
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
	root, err := s.tree(s.root)
	if err != nil {
		return node{}, err
	}
	// The path of folders from the root, for links that go up.
	var room [16]node
	stack := append(room[:0], node{entry: entry{name: ".", kind: kindDir, id: s.root}, in: s, tree: root})
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
			n, err := enter(stack, e)
			if err != nil {
				return node{}, err
			}
			stack = append(stack, n)
		case e.kind == kindLink && (follow || rest != ""):
			target, err := top.in.blob(e.id)
			if err != nil {
				return node{}, err
			}
			// A target of that length is no path; many of them would be walked for long.
			if links++; links > maxLinks || len(target) > maxTarget || path.IsAbs(string(target)) {
				return node{}, fs.ErrNotExist
			}
			rest = string(target) + "/" + rest
		case strings.Trim(rest, "/") != "":
			return node{}, fs.ErrNotExist
		default:
			return node{entry: e, in: top.in}, nil
		}
	}
	return stack[len(stack)-1], nil
}

// enter opens the folder e of the last folder of stack.
func enter(stack []node, e entry) (node, error) {
	in := stack[len(stack)-1].in
	n := node{entry: e, in: in}
	var err error
	switch {
	case e.kind == kindSubmodule && in.modules == nil:
		n.tree = emptyTree
	case e.kind == kindSubmodule:
		if n.in, err = in.submodule(pathWithin(stack, e.name), e.id); err != nil {
			return node{}, err
		}
		n.tree, err = n.in.tree(n.in.root)
	default:
		n.tree, err = in.tree(e.id)
	}
	return n, err
}

// pathWithin is the path of a name in the last folder of stack, from the root
// of the repository that this folder belongs to.
func pathWithin(stack []node, name string) string {
	in := stack[len(stack)-1].in
	for i := len(stack) - 1; i > 0 && stack[i-1].in == in; i-- {
		name = stack[i].name + "/" + name
	}
	return name
}

// content returns the content of a file, which must not be changed.
func (s *snapshot) content(e entry) ([]byte, error) {
	data, err := s.blob(e.id)
	if err != nil || s.lfs == nil || e.kind == kindLink {
		return data, err
	}
	p, ok := parsePointer(data)
	if !ok {
		return data, nil
	}
	if data, err = s.lfs.read(p); err != nil {
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
	if n.tree != nil {
		return &folder{info: info{name: path.Base(name), kind: n.kind}, entries: n.in.entries(n.tree)}, nil
	}
	data, err := n.in.content(n.entry)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
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
	data, err := n.in.content(n.entry)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
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
	return n.in.entries(n.tree), nil
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
	i, err := n.in.info(n.entry)
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
	target, err := n.in.blob(n.id)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return string(target), nil
}

func (s *snapshot) info(e entry) (info, error) {
	i := info{name: e.name, kind: e.kind}
	if e.kind.isDir() {
		return i, nil
	}
	size, err := s.size(e.id)
	if err == nil && s.lfs != nil && e.kind != kindLink && size <= maxPointer {
		size, err = s.pointedSize(e, size)
	}
	if err != nil {
		return i, err
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
			return n.in.fileHash(n.entry), nil
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
