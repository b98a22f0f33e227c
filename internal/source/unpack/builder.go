package unpack

import (
	"bufio"
	"crypto/sha1" //nolint:gosec // the name of a blob, as Git has it
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// kind is what an entry of a tree is.
type kind byte

const (
	kindFile kind = 'f'
	kindExec kind = 'x'
	kindDir  kind = 'd'
	kindLink kind = 'l'
)

// blobID is the name that Git gives to a content.
type blobID [sha1.Size]byte

// record is an entry in the list at the end of a pack.
type record struct {
	Path   string `json:"p"`
	Kind   kind   `json:"k"`
	Size   int64  `json:"s,omitempty"`
	Offset int64  `json:"o,omitempty"`
	ID     []byte `json:"i,omitempty"`
	Target string `json:"t,omitempty"`
}

// Builder takes the entries of a tree, one after the other, and writes their
// contents behind each other into one file: names of archives never become
// names of files. It holds each name to the rules, so that every way to make a
// tree has them.
type Builder struct {
	w       *bufio.Writer
	limits  Limits
	offset  int64
	records []record
	// seen has all names, and the folders that they imply.
	seen map[string]int
}

// implied marks a folder that no entry names.
const implied = -1

func newBuilder(w io.Writer, l Limits) *Builder {
	return &Builder{w: bufio.NewWriterSize(w, 64<<10), limits: l, seen: map[string]int{}}
}

// Limits returns what the builder holds entries to.
func (b *Builder) Limits() Limits { return b.limits }

// Dir adds a folder. The same one may be named more than once.
func (b *Builder) Dir(raw string) error {
	name, err := cleanName(raw, b.limits)
	if err != nil || name == "." {
		return err
	}
	if i, ok := b.seen[name]; ok && (i == implied || b.records[i].Kind == kindDir) {
		return nil
	}
	return b.add(raw, record{Path: name, Kind: kindDir})
}

// File adds a file whose content has size bytes.
func (b *Builder) File(raw string, executable bool, size int64, content io.Reader) error {
	name, err := cleanName(raw, b.limits)
	if err != nil {
		return err
	}
	if size < 0 || size > b.limits.EntryBytes {
		return rutter.Errorf(rutter.CodeInvalid, "the archive's file %q has %d bytes, more than %d", name, size, b.limits.EntryBytes)
	}
	if b.offset+size > b.limits.TotalBytes {
		return rutter.Errorf(rutter.CodeInvalid, "the archive's files have more than %d bytes together (at %q)", b.limits.TotalBytes, name)
	}
	r := record{Path: name, Kind: kindFile, Size: size, Offset: b.offset}
	if executable {
		r.Kind = kindExec
	}
	if err := b.add(raw, r); err != nil {
		return err
	}
	id := sha1.New() //nolint:gosec // as above
	id.Write([]byte("blob " + strconv.FormatInt(size, 10) + "\x00"))
	n, err := io.Copy(io.MultiWriter(b.w, id), io.LimitReader(content, size))
	b.offset += n
	switch {
	case err != nil:
		return err
	case n != size:
		return rutter.Errorf(rutter.CodeInvalid, "the archive ends within the file %q", name)
	}
	b.records[len(b.records)-1].ID = id.Sum(nil)
	return nil
}

// Link adds a symbolic link. It is kept as one, and followed within the tree only.
func (b *Builder) Link(raw, target string) error {
	name, err := cleanName(raw, b.limits)
	if err != nil {
		return err
	}
	if err := checkTarget(name, target, b.limits); err != nil {
		return err
	}
	return b.add(raw, record{Path: name, Kind: kindLink, Target: target, Size: int64(len(target))})
}

// Alias adds a file with the content of an earlier one: what a hard link means.
func (b *Builder) Alias(raw, target string) error {
	name, err := cleanName(raw, b.limits)
	if err != nil {
		return err
	}
	to, err := cleanName(target, b.limits)
	if err != nil {
		return rutter.Errorf(rutter.CodeInvalid, "the archive's hard link %q leads to %q: %w", name, target, err)
	}
	i, ok := b.seen[to]
	if !ok || i == implied || b.records[i].Kind != kindFile && b.records[i].Kind != kindExec {
		return rutter.Errorf(rutter.CodeInvalid, "the archive's hard link %q leads to %q, which is no earlier file of it", name, target)
	}
	r := b.records[i]
	r.Path = name
	return b.add(raw, r)
}

func (b *Builder) add(raw string, r record) error {
	switch {
	case r.Path == ".":
		return rutter.Errorf(rutter.CodeInvalid, "the archive's entry %q has the name of a folder and is none", raw)
	case len(b.records) >= b.limits.Entries:
		return rutter.Errorf(rutter.CodeInvalid, "the archive has more than %d entries", b.limits.Entries)
	}
	if i, ok := b.seen[r.Path]; ok && (i != implied || r.Kind != kindDir) {
		return rutter.Errorf(rutter.CodeInvalid, "the archive has two entries %q", r.Path)
	}
	for dir := path.Dir(r.Path); dir != "."; dir = path.Dir(dir) {
		i, ok := b.seen[dir]
		switch {
		case !ok:
			b.seen[dir] = implied
		case i != implied && b.records[i].Kind != kindDir:
			return rutter.Errorf(rutter.CodeInvalid, "the archive's entry %q lies in %q, which is no folder", r.Path, dir)
		}
	}
	b.seen[strings.Clone(r.Path)] = len(b.records)
	b.records = append(b.records, r)
	return nil
}
