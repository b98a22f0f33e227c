package git

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/rutterhq/rutter"
)

// entryKind is what an entry of a tree is. A submodule is a folder of which
// nothing is known: it reads as an empty one.
type entryKind byte

const (
	kindFile      entryKind = 'f'
	kindExec      entryKind = 'x'
	kindDir       entryKind = 'd'
	kindSubmodule entryKind = 'm'
	kindLink      entryKind = 'l'
)

func (k entryKind) isDir() bool { return k == kindDir || k == kindSubmodule }

func (k entryKind) mode() fs.FileMode {
	switch k {
	case kindDir, kindSubmodule:
		return fs.ModeDir | 0o555
	case kindLink:
		return fs.ModeSymlink | 0o777
	case kindExec:
		return 0o555
	}
	return 0o444
}

// entry is one name in a tree.
type entry struct {
	name string
	kind entryKind
	id   objectID
}

// tree is one folder, its entries sorted by name. It never changes.
type tree struct {
	entries []entry

	once sync.Once
	hash string
}

var emptyTree = &tree{}

// parseTree reads a tree object. Names that could mislead a reader are refused
// here as well, although a fetch has checked them.
func parseTree(data []byte) (*tree, error) {
	t := &tree{}
	for len(data) > 0 {
		head, rest, ok := bytes.Cut(data, []byte{0})
		mode, name, ok2 := strings.Cut(string(head), " ")
		var id objectID
		if !ok || !ok2 || len(rest) < len(id) || name == "" || name == "." || name == ".." || strings.ContainsRune(name, '/') {
			return nil, rutter.Errorf(rutter.CodeInvalid, "the commit has a folder with a malformed entry; repair the repository (git fsck names it)")
		}
		copy(id[:], rest)
		data = rest[len(id):]
		t.entries = append(t.entries, entry{name: name, kind: kindOf(mode), id: id})
	}
	slices.SortFunc(t.entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(t.entries); i++ {
		if t.entries[i].name == t.entries[i-1].name {
			return nil, rutter.Errorf(rutter.CodeInvalid, "the commit has a folder with two entries %q; repair the repository (git fsck names it)", t.entries[i].name)
		}
	}
	return t, nil
}

func kindOf(mode string) entryKind {
	switch strings.TrimLeft(mode, "0") {
	case "40000":
		return kindDir
	case "120000":
		return kindLink
	case "160000":
		return kindSubmodule
	case "100755":
		return kindExec
	}
	return kindFile
}

func (t *tree) lookup(name string) (entry, bool) {
	i, ok := slices.BinarySearchFunc(t.entries, name, func(e entry, n string) int { return strings.Compare(e.name, n) })
	if !ok {
		return entry{}, false
	}
	return t.entries[i], true
}

// listHash is over names and kinds, where links lead, and not over content: a
// render that listed a folder depends on no more than that. A plugin sees
// whether a file may be executed.
func (t *tree) listHash() string {
	t.once.Do(func() {
		h := sha256.New()
		for _, e := range t.entries {
			h.Write([]byte{byte(e.kind)})
			h.Write([]byte(e.name))
			h.Write([]byte{0})
			if e.kind == kindLink {
				h.Write(e.id[:])
			}
		}
		t.hash = hex.EncodeToString(h.Sum(nil)[:20])
	})
	return t.hash
}
