package git

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/fresh"
)

// modules are the submodules of one commit as one asker may read them. They
// are fetched when something below them is read: a commit with twenty of them
// of which a render reads one costs one.
type modules struct {
	parent location
	// list reads a .gitmodules; open is a commit of a submodule's repository.
	list func(text []byte) (map[string]string, error)
	open func(url, commit string) (*snapshot, error)

	once sync.Once
	urls map[string]string
	err  error

	mu sync.Mutex
	// opened are by path: a commit names one commit for each.
	opened map[string]*snapshot
}

const (
	// maxNesting is how deep submodules may have submodules.
	maxNesting = 8
	// maxModules is the size of a .gitmodules.
	maxModules = 1 << 20
)

func (f *Fetcher) newModules(ctx context.Context, parent rutter.Repo, l location, depth int) *modules {
	m := &modules{parent: l, opened: map[string]*snapshot{}}
	m.list = func(text []byte) (map[string]string, error) { return f.listModules(ctx, text) }
	m.open = func(url, commit string) (*snapshot, error) {
		if depth >= maxNesting {
			return nil, rutter.Errorf(rutter.CodeInvalid, "submodules are nested more than %d deep", maxNesting)
		}
		sub := rutter.Repo{URL: url, Revision: commit, Project: parent.Project}
		loc, err := parseLocation(url)
		if err != nil {
			return nil, err
		}
		if loc.scheme == "file" && l.scheme != "file" {
			return nil, rutter.Errorf(rutter.CodeForbidden, "%q is on this machine, and the repository that names it is not", loc.display())
		}
		if f.opts.Permit != nil {
			if err := f.opts.Permit(parent, sub); err != nil {
				return nil, refusal(err)
			}
		}
		// A submodule that could not be had a moment ago is not asked for again
		// by each of the files below it.
		key := strings.Join([]string{url, commit, sub.Project, strconv.Itoa(depth)}, "\x00")
		return await[*snapshot](f.opts.ReadTimeout, f.modules.DoChan(key, func() (any, error) {
			ctx, cancel := context.WithTimeout(ctx, f.opts.FetchTimeout)
			defer cancel()
			return f.snapshot(ctx, sub, fresh.FailureAge, depth+1)
		}))
	}
	return m
}

func refusal(err error) error {
	code := rutter.CodeOf(err)
	if code == rutter.CodeInternal {
		code = rutter.CodeForbidden
	}
	return rutter.Errorf(code, "it is not permitted: %w", err)
}

// submodule returns what stands at path, where the commit names id.
func (s *snapshot) submodule(path string, id objectID) (*snapshot, error) {
	m := s.modules
	m.once.Do(func() { m.urls, m.err = s.moduleURLs() })
	if m.err != nil {
		return nil, m.err
	}
	m.mu.Lock()
	sub := m.opened[path]
	m.mu.Unlock()
	if sub != nil {
		return sub, nil
	}
	fail := func(err error) (*snapshot, error) {
		return nil, s.fail(rutter.Errorf(rutter.CodeOf(err), "submodule %q: %w", path, err))
	}
	raw, ok := m.urls[path]
	if !ok {
		return fail(rutter.Errorf(rutter.CodeInvalid, "it has no url in .gitmodules; add it there, or remove the submodule"))
	}
	url, err := submoduleURL(m.parent, raw)
	if err != nil {
		return fail(err)
	}
	if sub, err = m.open(url, id.String()); err != nil {
		return fail(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened[path] = sub
	return sub, nil
}

// moduleURLs reads the commit's .gitmodules: URLs by path. One that is a link
// is none, as for git.
func (s *snapshot) moduleURLs() (map[string]string, error) {
	root, err := s.tree(s.root)
	if err != nil {
		return nil, err
	}
	e, ok := root.lookup(".gitmodules")
	if !ok || e.kind != kindFile && e.kind != kindExec {
		return nil, nil
	}
	text, err := s.blob(e.id)
	if err != nil {
		return nil, err
	}
	urls, err := s.modules.list(text)
	if err != nil {
		return nil, s.fail(err)
	}
	return urls, nil
}

// listModules lets git read its own format; it includes no other file.
func (f *Fetcher) listModules(ctx context.Context, text []byte) (map[string]string, error) {
	if len(text) > maxModules {
		return nil, rutter.Errorf(rutter.CodeInvalid, ".gitmodules has %d bytes, more than %d", len(text), maxModules)
	}
	if len(text) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := f.git.run(ctx, command{args: []string{"config", "--file", "-", "--no-includes", "--null", "--list"}, env: base().env(), stdin: string(text)})
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, ".gitmodules cannot be read; correct it: %w", err)
	}
	return parseModules(string(out)), nil
}

// parseModules joins path and url of each name.
func parseModules(list string) map[string]string {
	paths, urls := map[string]string{}, map[string]string{}
	for item := range strings.SplitSeq(list, "\x00") {
		key, value, _ := strings.Cut(item, "\n")
		name, ok := strings.CutPrefix(key, "submodule.")
		i := strings.LastIndexByte(name, '.')
		if !ok || i < 0 {
			continue
		}
		switch name[i+1:] {
		case "path":
			paths[name[:i]] = strings.Trim(value, "/")
		case "url":
			urls[name[:i]] = value
		}
	}
	out := map[string]string{}
	for name, path := range paths {
		if url := urls[name]; path != "" && url != "" {
			out[path] = url
		}
	}
	return out
}

// submoduleURL resolves a URL that begins with ./ or ../ against that of the
// repository which names it. It may go up to the host and no further.
func submoduleURL(parent location, raw string) (string, error) {
	if !strings.HasPrefix(raw, "./") && !strings.HasPrefix(raw, "../") {
		return raw, nil
	}
	root, path := splitRemote(parent)
	rest := raw
	for {
		if after, ok := strings.CutPrefix(rest, "./"); ok {
			rest = after
			continue
		}
		after, ok := strings.CutPrefix(rest, "../")
		if !ok {
			break
		}
		if path == "" {
			return "", rutter.Errorf(rutter.CodeInvalid, "its url %q in .gitmodules leads out of the host of its parent %q", raw, parent.display())
		}
		rest = after
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
	}
	if path != "" {
		path += "/"
	}
	return root + path + rest, nil
}

// splitRemote divides a remote into what comes before its path, and the path.
func splitRemote(l location) (root, path string) {
	remote := strings.TrimRight(l.remote, "/")
	if scheme, rest, ok := strings.Cut(remote, "://"); ok {
		host, path, _ := strings.Cut(rest, "/")
		return scheme + "://" + host + "/", path
	}
	i := strings.IndexByte(remote, ':')
	if end := strings.IndexByte(remote, ']'); end >= 0 {
		i = end + 1
	}
	path = remote[i+1:]
	trimmed := strings.TrimLeft(path, "/")
	return remote[:i+1] + path[:len(path)-len(trimmed)], trimmed
}
