package unpack

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// StoreOptions configure a Store. Only Dir is required.
type StoreOptions struct {
	// Dir holds the packs, and belongs to one process at a time. It may be
	// removed while nothing uses it; what is needed is fetched again.
	Dir    string
	Logger *slog.Logger
	// Bytes bounds the packs on disk: the least recently used ones go first.
	Bytes int64
	// Open bounds the trees that are kept open between uses.
	Open   int
	Limits Limits
}

// Store keeps trees on disk. It is safe for concurrent use.
type Store struct {
	opts StoreOptions
	root *os.Root

	mu     sync.Mutex
	packs  map[string]*pack
	used   int64
	closed bool
	opened int
}

// pack is a file of the store.
type pack struct {
	size int64
	last time.Time
	// noted is when last was written to the file.
	noted time.Time
	// tree is open while it was used recently.
	tree *Tree
}

const suffix = ".pack"

// OpenStore opens the store in a folder, which is made when it is missing, and
// finds what an earlier process left there.
func OpenStore(opts StoreOptions) (*Store, error) {
	if opts.Dir == "" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "a folder for unpacked sources is needed: set Dir")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Bytes <= 0 {
		opts.Bytes = 4 << 30
	}
	if opts.Open <= 0 {
		opts.Open = 128
	}
	opts.Limits = opts.Limits.withDefaults()
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "folder for unpacked sources: %w", err)
	}
	root, err := os.OpenRoot(opts.Dir)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "folder for unpacked sources: %w", err)
	}
	s := &Store{opts: opts, root: root, packs: map[string]*pack{}}
	if err := s.scan(); err != nil {
		_ = root.Close()
		return nil, err
	}
	return s, nil
}

// scan finds the packs, and removes what a process that was killed did not finish.
func (s *Store) scan() error {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return rutter.Errorf(rutter.CodeUnavailable, "folder for unpacked sources: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "new-") {
			_ = s.root.Remove(e.Name())
			continue
		}
		name, ok := strings.CutSuffix(e.Name(), suffix)
		info, err := e.Info()
		if !ok || err != nil || !info.Mode().IsRegular() {
			continue
		}
		s.packs[name] = &pack{size: info.Size(), last: info.ModTime(), noted: info.ModTime()}
		s.used += info.Size()
	}
	s.shrink("")
	return nil
}

// Close releases the folder. Trees that are held can still be read.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.packs = nil
	if err := s.root.Close(); err != nil {
		return rutter.Errorf(rutter.CodeInternal, "closing the store of unpacked sources: %w", err)
	}
	return nil
}

// nameOf makes a file's name of a key; keys hold text of users and of servers.
func nameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Get opens the tree that is stored under a key. One that is damaged is as one
// that is missing, and is removed.
func (s *Store) Get(key string) (*Tree, bool) {
	name := nameOf(key)
	s.mu.Lock()
	p, ok := s.packs[name]
	if !ok {
		s.mu.Unlock()
		return nil, false
	}
	s.touch(name, p)
	t := p.tree
	s.mu.Unlock()
	if t != nil {
		return t, true
	}
	t, err := s.load(name, key)
	if err != nil {
		s.opts.Logger.Warn("a stored source cannot be read and is fetched again", "pack", name, "error", err)
		s.drop(name)
		return nil, false
	}
	s.keep(name, t)
	return t, true
}

// load opens a pack and checks all of it.
func (s *Store) load(name, key string) (*Tree, error) {
	f, err := s.root.Open(name + suffix)
	if err != nil {
		return nil, err
	}
	records, err := readTable(f, key)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	t := treeOf(f, records, func() { s.drop(name) })
	if err := t.verify(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return t, nil
}

// Put stores the tree that build makes under the key that build returns, which
// may hold a digest that is known only at the end, and opens it. check, which
// may be nil, has the last word. Nothing is stored when one of them fails, nor
// when the process is killed at any moment.
func (s *Store) Put(build func(*Builder) (key string, err error), check func(*Tree) error) (*Tree, error) {
	temporary := "new-" + rand.Text()
	f, err := s.root.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "storing a source: %w", err)
	}
	t, name, size, err := s.write(f, build)
	if err == nil && check != nil {
		err = check(t)
	}
	if err == nil {
		err = s.root.Rename(temporary, name+suffix)
	}
	if err != nil {
		_ = f.Close()
		_ = s.root.Remove(temporary)
		if _, ok := errors.AsType[*rutter.Error](err); ok {
			return nil, err
		}
		return nil, rutter.Errorf(rutter.CodeUnavailable, "storing a source: %w", err)
	}
	s.enter(name, size, t)
	return t, nil
}

// write makes a pack in f and reads it back as a tree.
func (s *Store) write(f *os.File, build func(*Builder) (string, error)) (t *Tree, name string, size int64, err error) {
	b := newBuilder(f, s.opts.Limits)
	key, err := build(b)
	if err != nil {
		return nil, "", 0, err
	}
	if err := b.finish(key); err != nil {
		return nil, "", 0, err
	}
	if size, err = f.Seek(0, io.SeekEnd); err != nil {
		return nil, "", 0, err
	}
	name = nameOf(key)
	return treeOf(f, b.records, func() { s.drop(name) }), name, size, nil
}

// enter puts a new pack on the books.
func (s *Store) enter(name string, size int64, t *Tree) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if old, ok := s.packs[name]; ok {
		s.forget(name, old)
	}
	now := time.Now()
	p := &pack{size: size, last: now, noted: now}
	s.packs[name] = p
	s.used += size
	s.hold(p, t)
	s.shrink(name)
}

// touch notes a use; s.mu is held. The file's time is how the next process
// knows of it, and a minute is exact enough for that.
func (s *Store) touch(name string, p *pack) {
	p.last = time.Now()
	if p.last.Sub(p.noted) > time.Minute {
		p.noted = p.last
		_ = s.root.Chtimes(name+suffix, p.last, p.last)
	}
}

// keep holds a tree open that was loaded.
func (s *Store) keep(name string, t *Tree) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.packs[name]; ok && p.tree == nil {
		s.hold(p, t)
	}
}

// hold counts an open tree and lets go of the one that was used longest ago
// when there are too many; s.mu is held.
func (s *Store) hold(p *pack, t *Tree) {
	p.tree = t
	if s.opened++; s.opened <= s.opts.Open {
		return
	}
	var oldest *pack
	for _, other := range s.packs {
		if other != p && other.tree != nil && (oldest == nil || other.last.Before(oldest.last)) {
			oldest = other
		}
	}
	if oldest != nil {
		oldest.tree = nil
		s.opened--
	}
}

// drop removes a pack.
func (s *Store) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.packs[name]; ok {
		s.forget(name, p)
		_ = s.root.Remove(name + suffix)
	}
}

// forget takes a pack off the books; s.mu is held.
func (s *Store) forget(name string, p *pack) {
	s.used -= p.size
	if p.tree != nil {
		s.opened--
	}
	delete(s.packs, name)
}

// shrink removes the packs that were used longest ago until the rest is within
// the limit; s.mu is held. The named one stays, however large it is.
func (s *Store) shrink(newest string) {
	if s.used <= s.opts.Bytes {
		return
	}
	names := make([]string, 0, len(s.packs))
	for name := range s.packs {
		if name != newest {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return s.packs[a].last.Compare(s.packs[b].last) })
	for _, name := range names {
		if s.used <= s.opts.Bytes {
			return
		}
		s.forget(name, s.packs[name])
		_ = s.root.Remove(name + suffix)
	}
}
