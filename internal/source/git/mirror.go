package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// snapshotsKept bounds the commits of one mirror whose file lists are in memory.
const snapshotsKept = 8

// mirror is the local copy of one repository.
type mirror struct {
	f      *Fetcher
	dir    string
	reader *reader

	mu     sync.Mutex
	remote remote
	refs   refs
	asking *ask // the look-up that is running
	next   *ask // the one that those who came after its start wait for

	fetching  sync.Mutex
	ready     bool // the mirror's folder has been checked since the start
	snapMu    sync.Mutex
	snapshots map[string]*snapshot
	order     []string
}

// ask is one look-up that several wait for.
type ask struct {
	done chan struct{}
	refs refs
	err  error
}

func newMirror(f *Fetcher, dir string) *mirror {
	m := &mirror{f: f, dir: dir, snapshots: map[string]*snapshot{}}
	m.reader = newReader(f.git, dir)
	return m
}

func (m *mirror) setRemote(r remote) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remote = r
}

// lookup returns the remote's refs, not older than maxAge. One look-up runs at a
// time; who comes while one runs waits for the next, since the running one may
// have been answered before what the newcomer knows of.
func (m *mirror) lookup(ctx context.Context, maxAge time.Duration) (refs, error) {
	m.mu.Lock()
	if !m.refs.at.IsZero() && maxAge > 0 && time.Since(m.refs.at) < maxAge {
		known := m.refs
		m.mu.Unlock()
		return known, nil
	}
	a := m.join()
	m.mu.Unlock()
	select {
	case <-a.done:
		return a.refs, a.err
	case <-ctx.Done():
		return refs{}, rutter.Errorf(rutter.CodeUnavailable, "stopped while looking up refs: %w", ctx.Err())
	}
}

// join returns the look-up to wait for, starting one if need be; m.mu is held.
func (m *mirror) join() *ask {
	if m.asking == nil {
		m.asking = &ask{done: make(chan struct{})}
		go m.perform(m.asking)
		return m.asking
	}
	if m.next == nil {
		m.next = &ask{done: make(chan struct{})}
	}
	return m.next
}

// perform makes one look-up, tells those who wait, and starts the next.
func (m *mirror) perform(a *ask) {
	m.mu.Lock()
	r := m.remote
	m.mu.Unlock()
	// The look-up serves all who wait, so it does not end with one of them; git
	// itself ends after Options.Timeout.
	a.refs, a.err = m.f.lsRemote(context.Background(), r) //nolint:forbidigo // see above
	m.mu.Lock()
	if a.err == nil {
		m.refs = a.refs
	}
	m.asking, m.next = m.next, nil
	if m.asking != nil {
		go m.perform(m.asking)
	}
	m.mu.Unlock()
	close(a.done)
}

func (f *Fetcher) lsRemote(ctx context.Context, r remote) (refs, error) {
	env, cleanup, err := r.environment()
	if err != nil {
		return refs{}, err
	}
	defer cleanup()
	f.stats.Lookups.Add(1)
	at := time.Now()
	out, err := f.run(ctx, "", env, "ls-remote", "--symref", "--end-of-options", r.url)
	if err != nil {
		return refs{}, err
	}
	return parseRefs(out, at), nil
}

// ensure makes the mirror's folder if it is not there, and makes it anew if
// what is there is not whole.
func (m *mirror) ensure(ctx context.Context) error {
	if m.ready {
		return nil
	}
	_, err := os.Stat(filepath.Join(m.dir, "HEAD"))
	if err == nil {
		if _, err := m.f.run(ctx, m.dir, nil, "rev-parse", "--git-dir"); err == nil {
			removeLocks(m.dir)
			m.ready = true
			return nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at the mirror: %w", err)
	}
	return m.rebuild(ctx)
}

func (m *mirror) rebuild(ctx context.Context) error {
	m.reader.close()
	if err := os.RemoveAll(m.dir); err != nil {
		return fmt.Errorf("remove a broken mirror: %w", err)
	}
	if _, err := m.f.run(ctx, m.f.opts.Dir, nil, "init", "--bare", "--quiet", "--end-of-options", m.dir); err != nil {
		return fmt.Errorf("make the mirror: %w", err)
	}
	m.ready = true
	return nil
}

// removeLocks removes what a process that was killed left behind; only one
// process uses a mirror.
func removeLocks(dir string) {
	for _, pattern := range []string{"*.lock", "refs/*/*.lock", "objects/pack/tmp_*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are constant and valid
		for _, p := range found {
			os.Remove(p)
		}
	}
}

// fetch makes sure that a commit and all of its files are in the mirror.
func (m *mirror) fetch(ctx context.Context, commit string) error {
	m.fetching.Lock()
	defer m.fetching.Unlock()
	if err := m.ensure(ctx); err != nil {
		return err
	}
	if m.has(ctx, commit) {
		return nil
	}
	m.mu.Lock()
	r, known := m.remote, m.refs
	m.mu.Unlock()
	env, cleanup, err := r.environment()
	if err != nil {
		return err
	}
	defer cleanup()
	m.f.stats.Fetches.Add(1)
	err = m.fetchWith(ctx, env, r.url, known.specFor(commit))
	if err != nil && strings.Contains(err.Error(), "not our ref") || err == nil && !m.has(ctx, commit) {
		// A server that serves no single commits, or a commit behind the tips.
		err = m.fetchWith(ctx, env, r.url, "+refs/*:refs/remote/*")
	}
	if err != nil {
		return err
	}
	if !m.has(ctx, commit) {
		return rutter.Errorf(rutter.CodeNotFound, "the commit is not in the repository")
	}
	return m.pin(ctx, commit)
}

func (m *mirror) fetchWith(ctx context.Context, env []string, url, spec string) error {
	_, err := m.f.run(ctx, m.dir, env, "fetch", "--quiet", "--force", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
		"--end-of-options", url, spec)
	return err
}

// pin keeps the commit from being collected although no branch may hold it any more.
func (m *mirror) pin(ctx context.Context, commit string) error {
	if _, err := m.f.run(ctx, m.dir, nil, "update-ref", "refs/rutter/"+commit, commit); err != nil {
		return fmt.Errorf("pin commit: %w", err)
	}
	return nil
}

// has reports whether the commit and everything it needs is there.
func (m *mirror) has(ctx context.Context, commit string) bool {
	_, err := m.f.run(ctx, m.dir, nil, "rev-parse", "--quiet", "--verify", "refs/rutter/"+commit)
	if err == nil {
		return true
	}
	_, err = m.f.run(ctx, m.dir, nil, "rev-list", "--objects", "--max-count=1", "--quiet", "--end-of-options", commit)
	return err == nil
}

// snapshot returns the commit's files, fetching it first when it is not here.
func (m *mirror) snapshot(ctx context.Context, commit string) (*snapshot, error) {
	m.snapMu.Lock()
	defer m.snapMu.Unlock()
	if s := m.snapshots[commit]; s != nil {
		return s, nil
	}
	if err := m.fetch(ctx, commit); err != nil {
		return nil, err
	}
	out, err := m.f.run(ctx, m.dir, nil, "ls-tree", "-r", "-t", "-z", "--full-tree", "--end-of-options", commit)
	if err != nil {
		// An object is missing or broken: the mirror is not whole. Once more from nothing.
		m.f.opts.Logger.Warn("mirror is broken and is fetched again", "dir", m.dir, "err", err)
		m.fetching.Lock()
		err = m.rebuild(ctx)
		m.fetching.Unlock()
		if err == nil {
			err = m.fetch(ctx, commit)
		}
		if err == nil {
			out, err = m.f.run(ctx, m.dir, nil, "ls-tree", "-r", "-t", "-z", "--full-tree", "--end-of-options", commit)
		}
		if err != nil {
			return nil, err
		}
	}
	s := &snapshot{commit: commit, m: m, tree: parseTree(out)}
	m.snapshots[commit] = s
	m.order = append(m.order, commit)
	if len(m.order) > snapshotsKept {
		delete(m.snapshots, m.order[0])
		m.order = m.order[1:]
	}
	return s, nil
}
