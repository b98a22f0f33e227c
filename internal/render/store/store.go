// Package store keeps rendered manifests on local disk: blobs by the digest of
// their content, and for every declaration the renders that are known of it,
// each with the inputs it had.
//
// Ring: adapter (render). It is a cache, and nothing in it is ever the only
// copy: what is damaged is dropped and rendered again, what does not fit is
// not kept, and a disk that is full or gone costs time, not correctness. Files
// appear by renaming, so that a process killed at any moment leaves whole
// files only. They are readable by the owner only, and what Git does not hold in
// the clear is encrypted in them.
package store

import (
	"bytes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rutterhq/rutter"
)

// format is part of every path: another version of the store starts afresh.
const format = "v2"

// perKey is how many renders of one declaration are remembered, so that going
// back to an earlier commit costs nothing.
const perKey = 8

// touchAfter is how old a file's time may get before a use renews it.
const touchAfter = time.Hour

// Options adjusts a store.
type Options struct {
	// MaxBytes bounds the files; what was not used for longest goes first.
	// Default 1 GiB.
	MaxBytes int64
	// MaxRecordBytes bounds the records of known renders that are kept in memory,
	// so that a commit that changes nothing reads no file. Default 32 MiB.
	MaxRecordBytes int64
	// MaxHeld bounds what is kept in memory while the disk cannot be written.
	// Default 64 MiB.
	MaxHeld int64
	Logger  *slog.Logger
}

// Render is one known render of a declaration.
type Render struct {
	Inputs []rutter.Input `json:"inputs"`
	// Env are the build environment's variables that were used.
	Env        map[string]string `json:"env,omitempty"`
	SourceType string            `json:"sourceType"`
	Warnings   []string          `json:"warnings,omitempty"`
	// Digest addresses the blob with the objects.
	Digest string `json:"digest"`
	// Sealed says that the objects hold what Git does not hold in the clear. They
	// are kept encrypted, with a key that ends with the process.
	Sealed bool `json:"sealed,omitempty"`
}

// Store is a folder of renders. It is safe for concurrent use.
type Store struct {
	dir  string
	opts Options

	size     atomic.Int64
	evicting sync.Mutex
	failing  atomic.Bool // the last write failed

	seal    cipher.AEAD
	records *records
	writers [64]sync.Mutex // by key: who may write a key's file
	made    sync.Map       // folders that are known to exist
	temp    atomic.Int64   // names what is being written

	mu    sync.Mutex // guards what follows
	held  map[string][]byte
	order []string // of held, oldest first
	heldN int64
}

// Open returns the store in dir, which is made when it does not exist.
func Open(dir string, opts Options) (*Store, error) {
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 1 << 30
	}
	if opts.MaxHeld <= 0 {
		opts.MaxHeld = 64 << 20
	}
	if opts.MaxRecordBytes <= 0 {
		opts.MaxRecordBytes = 32 << 20
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	seal, err := newSeal()
	if err != nil {
		return nil, err
	}
	s := &Store{dir: filepath.Join(dir, format), opts: opts, seal: seal, records: newRecords(opts.MaxRecordBytes), held: map[string][]byte{}}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "open the render store: %w", err)
	}
	s.size.Store(s.measure())
	return s, nil
}

// Digest returns the address of a blob.
func Digest(blob []byte) string {
	sum := sha256.Sum256(blob)
	return hex.EncodeToString(sum[:])
}

// Renders returns what is known of a declaration, newest first. The result is
// shared and must not be changed.
func (s *Store) Renders(key string) []Render {
	if known, ok := s.records.get(key); ok {
		return known
	}
	file := s.lockOf(key)
	file.Lock()
	defer file.Unlock()
	return s.read(key)
}

// lockOf returns the lock of a key's file.
func (s *Store) lockOf(key string) *sync.Mutex {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // it cannot fail
	return &s.writers[h.Sum32()%uint32(len(s.writers))]
}

// read returns what is known of a declaration; its file is locked.
func (s *Store) read(key string) []Render {
	if known, ok := s.records.get(key); ok {
		return known
	}
	name := s.keyFile(key)
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	sum, body, _ := bytes.Cut(data, []byte("\n"))
	var known []Render
	if string(sum) != Digest(body) || json.Unmarshal(body, &known) != nil {
		s.drop(name, "a damaged entry of the render store was dropped")
		return nil
	}
	s.touch(name)
	s.records.put(key, known, int64(len(body)))
	return known
}

// Put remembers a render of a declaration and its objects, and returns how many
// renders of the declaration are known now.
func (s *Store) Put(key string, r Render, blob []byte) int {
	s.putBlob(r, blob)
	return s.Remember(key, r)
}

// Remember is Put of a render whose objects have been put already.
func (s *Store) Remember(key string, r Render) int {
	file := s.lockOf(key)
	file.Lock()
	defer file.Unlock()
	known := []Render{r}
	for _, o := range s.read(key) {
		if len(known) < perKey && !sameInputs(o, r) {
			known = append(known, o)
		}
	}
	body, err := json.Marshal(known)
	if err == nil {
		s.records.put(key, known, int64(len(body)))
		err = s.write(s.keyFile(key), append([]byte(Digest(body)+"\n"), body...))
	}
	s.health(err)
	return len(known)
}

// sameInputs reports whether two renders had the same inputs; the newer one replaces the other.
func sameInputs(a, b Render) bool {
	if len(a.Inputs) != len(b.Inputs) || len(a.Env) != len(b.Env) {
		return false
	}
	for i := range a.Inputs {
		if a.Inputs[i] != b.Inputs[i] {
			return false
		}
	}
	for k, v := range a.Env {
		if w, ok := b.Env[k]; !ok || w != v {
			return false
		}
	}
	return true
}

// Blob returns the content with a digest. CodeNotFound when it is not there, or damaged.
func (s *Store) Blob(digest string) ([]byte, error) {
	s.mu.Lock()
	blob, ok := s.held[digest]
	s.mu.Unlock()
	if ok {
		return blob, nil
	}
	name, err := s.blobFile(digest)
	if err != nil {
		return nil, err
	}
	blob, err = os.ReadFile(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, rutter.Errorf(rutter.CodeNotFound, "the render store does not hold %s", digest)
		}
		return nil, rutter.Errorf(rutter.CodeUnavailable, "read the render store: %w", err)
	}
	plain, sealed := s.open(blob, digest)
	switch {
	case sealed && plain == nil:
		s.forget(name) // sealed by a process that has ended
		return nil, rutter.Errorf(rutter.CodeNotFound, "the render store cannot open %s any more", digest)
	case sealed:
		return plain, nil
	case Digest(blob) != digest:
		s.drop(name, "a damaged file of the render store was dropped")
		return nil, rutter.Errorf(rutter.CodeNotFound, "the render store held a damaged %s", digest)
	}
	s.touch(name)
	return blob, nil
}

func (s *Store) putBlob(r Render, blob []byte) {
	name, err := s.blobFile(r.Digest)
	if err != nil {
		return
	}
	kept := blob
	if r.Sealed {
		kept = s.close(blob, r.Digest)
	}
	if info, err := os.Stat(name); err == nil && info.Size() == int64(len(kept)) {
		s.touch(name)
		return
	}
	err = s.write(name, kept)
	s.health(err)
	if err != nil {
		s.hold(r.Digest, blob)
	}
}

// hold keeps in memory what could not be written, so that it can be loaded again.
func (s *Store) hold(digest string, blob []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.held[digest]; ok {
		return
	}
	s.held[digest] = blob
	s.order = append(s.order, digest)
	s.heldN += int64(len(blob))
	for s.heldN > s.opts.MaxHeld && len(s.order) > 1 {
		oldest := s.order[0]
		s.order = s.order[1:]
		s.heldN -= int64(len(s.held[oldest]))
		delete(s.held, oldest)
	}
}

// health logs when the disk stops taking files, and when it does again.
func (s *Store) health(err error) {
	switch {
	case err != nil && !s.failing.Swap(true):
		s.opts.Logger.Warn("the render store cannot be written; renders are kept in memory", "err", err)
	case err == nil && s.failing.Swap(false):
		s.opts.Logger.Info("the render store can be written again")
	}
}

func (s *Store) keyFile(key string) string {
	sum := Digest([]byte(key))
	return filepath.Join(s.dir, "keys", sum[:2], sum)
}

func (s *Store) blobFile(digest string) (string, error) {
	if raw, err := hex.DecodeString(digest); err != nil || len(raw) != sha256.Size {
		return "", rutter.Errorf(rutter.CodeInvalid, "%q is no digest", digest)
	}
	return filepath.Join(s.dir, "blobs", digest[:2], digest), nil
}

// write puts a whole file in place.
func (s *Store) write(name string, data []byte) error {
	var before int64
	if info, err := os.Stat(name); err == nil {
		before = info.Size()
	}
	dir := filepath.Dir(name)
	tmp := filepath.Join(dir, fmt.Sprintf("tmp-%d-%d", os.Getpid(), s.temp.Add(1)))
	err := s.writeNew(dir, tmp, data)
	if err == nil {
		err = os.Rename(tmp, name)
	}
	if err != nil {
		return fmt.Errorf("write file: %w", errors.Join(err, removed(os.Remove(tmp))))
	}
	if s.size.Add(int64(len(data))-before) > s.opts.MaxBytes {
		s.evict()
	}
	return nil
}

// writeNew writes a file in a folder, which is made when it is not there.
func (s *Store) writeNew(dir, name string, data []byte) error {
	if _, ok := s.made.Load(dir); ok {
		if err := os.WriteFile(name, data, 0o600); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	s.made.Store(dir, true)
	return os.WriteFile(name, data, 0o600)
}

// removed is the error of a removal, where there was something to remove.
func removed(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// forget removes a file that can't be used.
func (s *Store) forget(name string) {
	if info, err := os.Stat(name); err == nil && os.Remove(name) == nil {
		s.size.Add(-info.Size())
	}
}

func (s *Store) drop(name, why string) {
	if info, err := os.Stat(name); err == nil && os.Remove(name) == nil {
		s.size.Add(-info.Size())
		s.opts.Logger.Warn(why, "file", filepath.Base(name))
	}
}

// touch renews a file's time, which is what eviction goes by.
func (s *Store) touch(name string) {
	info, err := os.Stat(name)
	if err != nil {
		return
	}
	if now := time.Now(); now.Sub(info.ModTime()) > touchAfter {
		_ = os.Chtimes(name, now, now) // a file that looks older than it is goes earlier, no more
	}
}
