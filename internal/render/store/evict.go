package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is one file of the store.
type file struct {
	name string
	size int64
	mod  time.Time
}

// measure returns the size of all files, and removes what a killed process
// left half written.
func (s *Store) measure() int64 {
	var size int64
	for _, f := range s.files() {
		if strings.HasPrefix(filepath.Base(f.name), "tmp-") {
			_ = os.Remove(f.name) // at worst it is evicted later
			continue
		}
		size += f.size
	}
	return size
}

// evict removes what was not used for longest until a tenth is free.
func (s *Store) evict() {
	if !s.evicting.TryLock() {
		return
	}
	defer s.evicting.Unlock()
	files := s.files()
	slices.SortFunc(files, func(a, b file) int { return a.mod.Compare(b.mod) })
	var size int64
	for _, f := range files {
		size += f.size
	}
	goal, removed := s.opts.MaxBytes-s.opts.MaxBytes/10, 0
	for _, f := range files {
		if size <= goal {
			break
		}
		if os.Remove(f.name) == nil {
			size -= f.size
			removed++
		}
	}
	s.size.Store(size)
	s.opts.Logger.Info("the render store was trimmed", "files", removed, "bytes", size)
}

func (s *Store) files() []file {
	var out []file
	_ = filepath.WalkDir(s.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // what cannot be listed is not counted
		}
		if info, err := d.Info(); err == nil {
			out = append(out, file{name: name, size: info.Size(), mod: info.ModTime()})
		}
		return nil
	})
	return out
}
