package kustomize

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
)

// mount is a repository in the file system that the library sees. Its name is
// made by chance for each render, so that no kustomization can name another
// repository than its own, however many ".." it writes.
type mount struct {
	// root is where the library sees it.
	root string
	repo *record.FS
	// label is the address of a repository that was fetched, "" for the source's own.
	label string
	base  gitBase
	// at is where the source's own repository names this one.
	at rutter.Origin
}

// display is how a path in the mount is shown to the user.
func (m *mount) display(p string) string {
	if m.label == "" {
		return p
	}
	return m.label + "//" + p
}

// origin is where the user finds what lies at a path: only the source's own
// repository can be named, for another the place that brought it in.
func (m *mount) origin(p string, line int) rutter.Origin {
	if m.label == "" {
		return rutter.Origin{File: p, Line: line}
	}
	return m.at
}

// place is a file or folder of a mount.
type place struct {
	m    *mount
	path string
}

func (p place) display() string { return p.m.display(p.path) }

// dir is the folder that holds p.
func (p place) dir() place { return place{p.m, path.Dir(p.path)} }

// mounts are the repositories of one render, the source's own first.
type mounts struct {
	nonce string
	all   []*mount
	by    map[string]*mount // by root
	key   map[string]*mount // by rutter.Repo.Key
}

func newMounts(repo *record.FS) *mounts {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails
	m := &mounts{nonce: "repo" + hex.EncodeToString(b[:]), by: map[string]*mount{}, key: map[string]*mount{}}
	m.add(&mount{repo: repo})
	return m
}

func (m *mounts) add(one *mount) {
	one.root = fmt.Sprintf("/%s-%d", m.nonce, len(m.all))
	m.all = append(m.all, one)
	m.by[one.root] = one
}

// own is the source's own repository.
func (m *mounts) own() *mount { return m.all[0] }

// place translates a path of the library.
func (m *mounts) place(name string) (place, bool) {
	clean := path.Clean(filepath.ToSlash(name))
	root, rest := clean, "."
	if len(clean) > 1 {
		if i := strings.IndexByte(clean[1:], '/'); i >= 0 {
			root, rest = clean[:i+1], clean[i+2:]
		}
	}
	one, ok := m.by[root]
	return place{one, rest}, ok
}

// readable is a text of the library without the places where it sees things.
func (m *mounts) readable(text string) string {
	seen := regexp.MustCompile(`(?:(?:\.\./)+|/)` + m.nonce + `-(\d+)(/?)`)
	text = seen.ReplaceAllStringFunc(text, func(found string) string {
		parts := seen.FindStringSubmatch(found)
		for i, one := range m.all {
			switch {
			case strconv.Itoa(i) != parts[1]:
			case one.label != "":
				return one.label + "//"
			case parts[2] == "":
				return "."
			}
		}
		return ""
	})
	text = regexp.MustCompile(`\.?`+m.nonce+`-v\d+/?`).ReplaceAllString(text, "")
	return oneLine(text)
}
