package git

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// entry is one name in a tree.
type entry struct {
	name string
	mode fs.FileMode
	id   string
}

// tree is a commit's whole list of files, by folder.
type tree struct {
	dirs map[string][]entry // folder → entries by name; the root is "."
	byID map[string]entry   // path → entry
}

// parseTree reads the output of ls-tree -r -t -z.
func parseTree(out []byte) *tree {
	t := &tree{dirs: map[string][]entry{".": nil}, byID: map[string]entry{}}
	for rec := range bytes.SplitSeq(out, []byte{0}) {
		meta, name, ok := strings.Cut(string(rec), "\t")
		fields := strings.Fields(meta)
		if !ok || len(fields) != 3 {
			continue
		}
		e := entry{name: path.Base(name), id: fields[2]}
		switch mode, _ := strconv.ParseUint(fields[0], 8, 32); {
		case fields[1] == "tree", fields[1] == "commit": // a submodule is an empty folder
			e.mode = fs.ModeDir | 0o555
			if _, seen := t.dirs[name]; !seen {
				t.dirs[name] = nil
			}
		case mode == 0o120000:
			e.mode = fs.ModeSymlink | 0o444
		case mode == 0o100755:
			e.mode = 0o555
		default:
			e.mode = 0o444
		}
		t.byID[name] = e
		dir := path.Dir(name)
		t.dirs[dir] = append(t.dirs[dir], e)
	}
	for _, entries := range t.dirs {
		slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	}
	return t
}

// snapshot implements rutter.Snapshot.
type snapshot struct {
	commit string
	m      *mirror
	tree   *tree

	listMu sync.Mutex
	lists  map[string]string
}

var _ rutter.Snapshot = (*snapshot)(nil)

// Revision implements rutter.Snapshot.
func (s *snapshot) Revision() string { return s.commit }

const maxLinks = 40

// locate follows symbolic links, within the tree only, to an entry. The root is
// the entry with the name ".".
func (s *snapshot) locate(op, name string) (string, entry, error) {
	if !fs.ValidPath(name) {
		return "", entry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	missing := &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	todo, at, links := strings.Split(name, "/"), ".", 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case ".", "":
			continue
		case "..":
			if at == "." {
				return "", entry{}, missing // a link that leaves the tree
			}
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		e, ok := s.tree.byID[next]
		if !ok {
			return "", entry{}, missing
		}
		if e.mode&fs.ModeSymlink == 0 {
			if len(todo) > 0 && !e.mode.IsDir() {
				return "", entry{}, missing
			}
			at = next
			continue
		}
		target, err := s.m.blob(e.id)
		if links++; err != nil || links > maxLinks || strings.HasPrefix(string(target), "/") {
			return "", entry{}, missing
		}
		todo = append(strings.Split(string(target), "/"), todo...)
	}
	if at == "." {
		return at, entry{name: ".", mode: fs.ModeDir | 0o555}, nil
	}
	return at, s.tree.byID[at], nil
}

// ReadFile implements fs.ReadFileFS.
func (s *snapshot) ReadFile(name string) ([]byte, error) {
	_, e, err := s.locate("open", name)
	if err != nil {
		return nil, err
	}
	if e.mode.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	data, err := s.m.blob(e.id)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return bytes.Clone(data), nil
}

// ReadDir implements fs.ReadDirFS.
func (s *snapshot) ReadDir(name string) ([]fs.DirEntry, error) {
	at, e, err := s.locate("open", name)
	if err != nil {
		return nil, err
	}
	if !e.mode.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	out := make([]fs.DirEntry, 0, len(s.tree.dirs[at]))
	for _, c := range s.tree.dirs[at] {
		out = append(out, info{e: c, s: s})
	}
	return out, nil
}

// Stat implements fs.StatFS.
func (s *snapshot) Stat(name string) (fs.FileInfo, error) {
	_, e, err := s.locate("stat", name)
	if err != nil {
		return nil, err
	}
	e.name = path.Base(name)
	return info{e: e, s: s}, nil
}

// Open implements fs.FS.
func (s *snapshot) Open(name string) (fs.File, error) {
	_, e, err := s.locate("open", name)
	if err != nil {
		return nil, err
	}
	e.name = path.Base(name)
	f := &openFile{info: info{e: e, s: s}, name: name}
	if e.mode.IsDir() {
		f.entries, err = s.ReadDir(name)
		return f, err
	}
	data, err := s.m.blob(e.id)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f.Reader = bytes.NewReader(data)
	return f, nil
}

// Hash implements rutter.Snapshot.
func (s *snapshot) Hash(kind rutter.InputKind, name string) (string, error) {
	at, e, err := s.locate("stat", name)
	if err != nil {
		return "", nil //nolint:nilerr // what is not there has no hash
	}
	switch {
	case kind == rutter.InputStat && e.mode.IsDir():
		return "dir", nil
	case kind == rutter.InputStat:
		return "file", nil
	case kind == rutter.InputFile && !e.mode.IsDir():
		return e.id, nil
	case kind == rutter.InputList && e.mode.IsDir():
		return s.listHash(at), nil
	}
	return "", nil
}

// listHash is over names and types, not contents.
func (s *snapshot) listHash(dir string) string {
	s.listMu.Lock()
	defer s.listMu.Unlock()
	if h, ok := s.lists[dir]; ok {
		return h
	}
	h := sha256.New()
	for _, e := range s.tree.dirs[dir] {
		fmt.Fprintf(h, "%s\x00%v\n", e.name, e.mode.Type())
	}
	sum := hex.EncodeToString(h.Sum(nil)[:16])
	if s.lists == nil {
		s.lists = map[string]string{}
	}
	s.lists[dir] = sum
	return sum
}

// info is an entry as io/fs shows it.
type info struct {
	e entry
	s *snapshot
}

func (i info) Name() string               { return i.e.name }
func (i info) IsDir() bool                { return i.e.mode.IsDir() }
func (i info) Type() fs.FileMode          { return i.e.mode.Type() }
func (i info) Info() (fs.FileInfo, error) { return i, nil }
func (i info) Mode() fs.FileMode          { return i.e.mode }
func (i info) ModTime() time.Time         { return time.Time{} }
func (i info) Sys() any                   { return nil }
func (i info) Size() int64 {
	if i.e.mode.IsDir() {
		return 0
	}
	data, err := i.s.m.blob(i.e.id)
	if err != nil {
		return 0
	}
	return int64(len(data))
}

// openFile is an open file or folder.
type openFile struct {
	*bytes.Reader
	info
	name    string
	entries []fs.DirEntry
	at      int
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }
func (f *openFile) Size() int64                { return f.info.Size() }

func (f *openFile) Read(p []byte) (int, error) {
	if f.Reader == nil {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: fs.ErrInvalid}
	}
	return f.Reader.Read(p)
}

// ReadDir implements fs.ReadDirFile.
func (f *openFile) ReadDir(n int) ([]fs.DirEntry, error) {
	rest := f.entries[f.at:]
	if n <= 0 {
		f.at = len(f.entries)
		return rest, nil
	}
	if len(rest) == 0 {
		return nil, io.EOF
	}
	rest = rest[:min(n, len(rest))]
	f.at += len(rest)
	return rest, nil
}
