package unpack

import (
	"crypto/sha1" //nolint:gosec // the name of a blob, as Git has it
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// Tree is an unpacked archive. It never changes, and it can be read as long as
// it is referenced, whatever becomes of its place in the store: the file stays
// open, and the runtime closes it when nobody holds the tree any more.
type Tree struct {
	file io.ReaderAt
	root *folder
	// damaged drops the tree from the store.
	damaged func()
}

// folder has its entries sorted by name.
type folder struct {
	entries []node
	hash    string
}

// node is one name in a folder.
type node struct {
	name   string
	kind   kind
	size   int64
	offset int64
	id     blobID
	// target is a symbolic link's, folder a folder's.
	target string
	folder *folder
}

// treeOf arranges records by folder.
func treeOf(f io.ReaderAt, records []record, damaged func()) *Tree {
	folders := map[string]*folder{".": {}}
	var open func(name string) *folder
	open = func(name string) *folder {
		if d, ok := folders[name]; ok {
			return d
		}
		d := &folder{}
		folders[name] = d
		up := open(path.Dir(name))
		up.entries = append(up.entries, node{name: path.Base(name), kind: kindDir, folder: d})
		return d
	}
	for _, r := range records {
		if r.Kind == kindDir {
			open(r.Path)
			continue
		}
		n := node{name: path.Base(r.Path), kind: r.Kind, size: r.Size, offset: r.Offset, target: r.Target}
		copy(n.id[:], r.ID)
		up := open(path.Dir(r.Path))
		up.entries = append(up.entries, n)
	}
	for _, d := range folders {
		slices.SortFunc(d.entries, func(a, b node) int { return strings.Compare(a.name, b.name) })
		d.hash = d.listHash()
	}
	return &Tree{file: f, root: folders["."], damaged: damaged}
}

func (d *folder) lookup(name string) (*node, bool) {
	i, ok := slices.BinarySearchFunc(d.entries, name, func(n node, s string) int { return strings.Compare(n.name, s) })
	if !ok {
		return nil, false
	}
	return &d.entries[i], true
}

// listHash is over names and kinds, where links lead, and not over content.
func (d *folder) listHash() string {
	h := sha256.New()
	for _, n := range d.entries {
		h.Write([]byte{byte(n.kind)})
		h.Write([]byte(n.name + "\x00" + n.target + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// read returns a file's content, once it is what was stored.
func (t *Tree) read(n *node) ([]byte, error) {
	data := make([]byte, n.size)
	if _, err := t.file.ReadAt(data, n.offset); err != nil && n.size > 0 {
		t.damaged()
		return nil, rutter.Errorf(rutter.CodeUnavailable, "reading the stored copy (it will be fetched again): %w", err)
	}
	h := sha1.New() //nolint:gosec // as above
	h.Write([]byte("blob " + strconv.FormatInt(n.size, 10) + "\x00"))
	h.Write(data)
	if blobID(h.Sum(nil)) != n.id {
		t.damaged()
		return nil, rutter.Errorf(rutter.CodeUnavailable, "%w: it will be fetched again", errDamaged)
	}
	return data, nil
}

// verify reads everything once.
func (t *Tree) verify() error { return t.verifyFolder(t.root, make([]byte, 128<<10)) }

func (t *Tree) verifyFolder(d *folder, buf []byte) error {
	for i := range d.entries {
		n := &d.entries[i]
		switch n.kind {
		case kindDir:
			if err := t.verifyFolder(n.folder, buf); err != nil {
				return err
			}
		case kindFile, kindExec:
			h := sha1.New() //nolint:gosec // as above
			h.Write([]byte("blob " + strconv.FormatInt(n.size, 10) + "\x00"))
			if _, err := io.CopyBuffer(h, io.NewSectionReader(t.file, n.offset, n.size), buf); err != nil || blobID(h.Sum(nil)) != n.id {
				return errDamaged
			}
		case kindLink:
		default:
			return errDamaged
		}
	}
	return nil
}
