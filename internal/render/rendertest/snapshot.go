// Package rendertest gives tests an in-memory repository: a rutter.Snapshot
// made of a map of files, with the same hashes that Git has for them.
//
// Ring: test support. Only tests import it.
package rendertest

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/rutterhq/rutter"
)

// snapshot is a commit that never was.
type snapshot struct {
	fstest.MapFS

	revision string
}

// Snapshot returns a commit that holds these files, by path. Equal files give
// an equal revision.
func Snapshot(files map[string]string) rutter.Snapshot {
	s := snapshot{MapFS: fstest.MapFS{}}
	var all []string
	for name, content := range files {
		s.MapFS[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
		all = append(all, name+"\x00"+blob([]byte(content)))
	}
	slices.Sort(all)
	s.revision = digest([]byte(strings.Join(all, "\n")))
	return s
}

// With returns a copy of files in which some are changed; an empty content removes the file.
func With(files, changes map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, files)
	for k, v := range changes {
		if v == "" {
			delete(out, k)
			continue
		}
		out[k] = v
	}
	return out
}

// Revision implements rutter.Snapshot.
func (s snapshot) Revision() string { return s.revision }

// Hash implements rutter.Snapshot.
func (s snapshot) Hash(kind rutter.InputKind, name string) (string, error) {
	info, err := s.Stat(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
			return "", nil
		}
		return "", fmt.Errorf("stat %s: %w", name, err)
	}
	switch {
	case kind == rutter.InputStat && info.IsDir():
		return "dir", nil
	case kind == rutter.InputStat:
		return "file", nil
	case kind == rutter.InputList && info.IsDir():
		return s.list(name)
	case kind == rutter.InputFile && !info.IsDir():
		data, err := s.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", name, err)
		}
		return blob(data), nil
	}
	return "", nil
}

func (s snapshot) list(name string) (string, error) {
	entries, err := s.ReadDir(name)
	if err != nil {
		return "", fmt.Errorf("list %s: %w", name, err)
	}
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%s %s\n", e.Type(), e.Name())
	}
	return digest([]byte(b.String())), nil
}

func blob(data []byte) string {
	return digest(append([]byte(fmt.Sprintf("blob %d\x00", len(data))), data...))
}

func digest(data []byte) string {
	sum := sha1.Sum(data)
	return hex.EncodeToString(sum[:])
}
