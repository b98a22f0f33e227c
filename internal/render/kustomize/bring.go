package kustomize

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
)

// bringIn returns a copy of a kustomization in which all that is elsewhere has
// been fetched, by the sources and as the project allows, and is named by its
// place in the file system that the library sees. Charts are inflated.
func (f *snapshotFS) bringIn(full string, at place, data []byte) (*types.Kustomization, error) {
	k, err := decode(at.display(), data)
	if err != nil {
		return nil, err
	}
	k.FixKustomization() // moves bases, and the older forms of helmCharts
	b := bringer{snapshotFS: f, full: full, at: at, text: data}
	if full == f.rootFile() {
		b.text = f.root.text
	}
	// All that is wanted is asked for before it is brought in.
	for _, e := range entries(k) {
		if !e.elsewhere() {
			continue
		}
		to, err := b.entry(e)
		if err != nil && !errors.Is(err, errLater) {
			return nil, err
		}
		*e.text = e.prefix + to
	}
	if p := k.OpenAPI["path"]; isWeb(p) {
		if k.OpenAPI["path"], err = b.file(p); err != nil && !errors.Is(err, errLater) {
			return nil, b.failed("openapi.path", p, err)
		}
	}
	if err := b.charts(k); err != nil && !errors.Is(err, errLater) {
		return nil, err
	}
	if f.brought.wanting() {
		return nil, errLater
	}
	for _, list := range [][]string{k.Generators, k.Transformers, k.Validators} {
		if err := b.pluginFolders(list); err != nil {
			return nil, err
		}
	}
	quiet(k)
	return k, nil
}

// bringer brings in what one kustomization names.
type bringer struct {
	*snapshotFS

	full string
	at   place
	text []byte
}

// entry fetches what an entry names and returns its path relative to the kustomization.
func (b bringer) entry(e entry) (string, error) {
	address := strings.TrimSpace(e.address())
	if strings.Contains(address, "\n") {
		return "", &rutter.Error{Code: rutter.CodeInvalid, File: b.at.display(), Message: e.field + ": an entry on several lines must be an object, and this is none: " + oneLine(printable(address))}
	}
	mustFile, mustGit := namesFile(address)
	base, isGit := parseGit(address)
	switch {
	case !e.base || !e.only && mustFile, !e.only && !mustGit && !isGit:
		to, err := b.file(address)
		return to, b.failed(e.field, address, err)
	case !isGit:
		return "", b.failed(e.field, address, rutter.Errorf(rutter.CodeInvalid, "it has none of the forms of a Git repository: write https://host/org/repo//folder?ref=commit"))
	}
	to, err := b.base(e.field, address, base)
	if err != nil && !errors.Is(err, errLater) && !mustGit && !e.only && rutter.CodeOf(err) != rutter.CodeForbidden {
		// As the library does, try it as a file: an address does not tell.
		if asFile, fileErr := b.file(address); fileErr == nil || errors.Is(fileErr, errLater) {
			return asFile, fileErr
		}
	}
	return to, b.failed(e.field, address, err)
}

// line finds where the kustomization names something; 0 when it is not written so.
func (b bringer) line(address string) int { return lineOf(b.text, address) }

// origin is the place to show for what is brought in.
func (b bringer) origin(address string) rutter.Origin {
	return b.at.m.origin(b.at.path, b.line(address))
}

// failed says for which entry something cannot be brought in.
func (b bringer) failed(field, address string, err error) error {
	if err == nil || errors.Is(err, errLater) {
		return err
	}
	if e := (*rutter.Error)(nil); errors.As(err, &e) && e.File != "" {
		return err
	}
	return &rutter.Error{Code: rutter.CodeOf(err), File: b.at.display(), Line: b.line(address), Message: field + ": cannot bring in " + printable(address), Err: err}
}

// base fetches a repository and returns the path of a folder in it.
func (b bringer) base(field, address string, base gitBase) (string, error) {
	if strings.HasPrefix(base.url, schemeFile) {
		return "", rutter.Errorf(rutter.CodeForbidden, "file:// is the file system of this machine: name the path in the repository")
	}
	m, err := b.mountOf(address, base)
	if err != nil {
		return "", err
	}
	if !m.repo.IsDir(base.dir) {
		if err := m.repo.Err(); err != nil {
			return "", fmt.Errorf("look up %s: %w", base.dir, err)
		}
		return "", rutter.Errorf(rutter.CodeNotFound, "there is no folder %s in %s", base.dir, m.label)
	}
	if !isPinned(base.ref) {
		b.warnUnpinned(field, address, base)
	}
	to, err := filepath.Rel(path.Dir(b.full), path.Join(m.root, base.dir))
	if err != nil {
		return "", rutter.Errorf(rutter.CodeInternal, "name %s: %w", m.label, err)
	}
	return filepath.ToSlash(to), nil
}

func (b bringer) warnUnpinned(field, address string, base gitBase) {
	what := "names no ref, so it is whatever the default branch holds"
	if base.ref != "" {
		what = "follows " + base.ref + ", which may move"
	}
	place := b.at.display()
	if n := b.line(address); n > 0 {
		place = fmt.Sprintf("%s:%d", place, n)
	}
	b.warnings[fmt.Sprintf("%s: %s: %s %s: pin it with ?ref= and a commit", place, field, printable(address), what)] = true
}

// mountOf returns the mount of a repository, which is fetched once in a render.
func (b bringer) mountOf(address string, base gitBase) (*mount, error) {
	repo := rutter.Repo{URL: base.url, Revision: base.ref, Project: b.in.Project}
	if m, ok := b.key[repo.Key()]; ok {
		return m, nil
	}
	view, err := b.fetch(repo)
	if err != nil {
		return nil, err
	}
	m := &mount{repo: view, label: printable(base.url), base: base, at: b.origin(address)}
	b.add(m)
	b.key[repo.Key()] = m
	return m, nil
}

// fetch returns another repository, once it has been brought in.
func (f *snapshotFS) fetch(repo rutter.Repo) (*record.FS, error) {
	return f.brought.repository(repo)
}

// file fetches one file over HTTP and returns its path.
func (b bringer) file(address string) (string, error) {
	view, err := b.fetch(webFile(address, b.in.Project))
	if err != nil {
		return "", err
	}
	data, err := onlyFile(view, address)
	if err != nil {
		return "", err
	}
	return b.put(path.Dir(b.full), path.Base(address), &virtualFile{data: data, entry: address, at: b.origin(address)}), nil
}
