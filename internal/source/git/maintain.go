package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
)

// maintainEvery is the number of fetches after which a mirror is tidied up.
const maintainEvery = 64

// maintain keeps a mirror quick and small: small packs are joined, and commits
// that nobody has read for long and nobody holds a Snapshot of are let go.
// It never touches what a Snapshot that is still referenced may read.
func (m *mirror) maintain(ctx context.Context) {
	m.disk.Lock()
	defer m.disk.Unlock()
	if m.since < maintainEvery {
		return
	}
	m.since = 0
	unlock, err := m.lock(ctx)
	if err == nil {
		defer unlock()
		err = m.tidy(ctx)
	}
	if err != nil {
		m.f.opts.Logger.Warn("Git mirror could not be tidied up", "dir", m.dir, "err", err)
	}
}

// tidy does the work of maintain; m.disk is held.
func (m *mirror) tidy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.f.opts.FetchTimeout)
	defer cancel()
	git := command{dir: m.dir, env: base().env(), files: m.lockFiles()}
	dropped := m.unpin(time.Now().Add(-m.f.opts.KeepCommits))
	steps := [][]string{{"pack-refs", "--all"}, {"repack", "--quiet", "-d", "--geometric=2"}}
	if len(dropped) > 0 {
		var script strings.Builder
		for _, commit := range dropped {
			script.WriteString("delete " + pinned + commit + "\n")
		}
		git.args, git.stdin = []string{"update-ref", "--stdin"}, script.String()
		if _, err := m.f.git.run(ctx, git); err != nil {
			return err
		}
		git.stdin = ""
		steps = [][]string{{"pack-refs", "--all"}, {"repack", "--quiet", "-a", "-d"}, {"prune", "--expire=now"}}
	}
	for _, args := range steps {
		git.args = args
		if _, err := m.f.git.run(ctx, git); err != nil {
			return err
		}
	}
	return nil
}

// unpin forgets the commits that were last asked for before a moment and that
// no living Snapshot shows, and returns them.
func (m *mirror) unpin(before time.Time) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for commit, p := range m.live {
		if p.Value() == nil {
			delete(m.live, commit)
		}
	}
	var dropped []string
	for commit, used := range m.pins {
		if _, alive := m.live[commit]; !alive && used.Before(before) {
			dropped = append(dropped, commit)
			delete(m.pins, commit)
		}
	}
	return dropped
}

// rebuild replaces a damaged mirror by a new one that has commit, and as many
// as possible of the others that are still being read. Until the new one is
// complete the old one stays, so that nothing is lost when the remote is away.
func (m *mirror) rebuild(ctx context.Context, r remote, commit string) error {
	m.disk.Lock()
	defer m.disk.Unlock()
	if !m.damaged.Load() {
		return nil
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	m.f.opts.Logger.Warn("Git mirror is damaged and is fetched anew", "dir", m.dir, "repository", r.display())
	m.f.counts.rebuilds.Add(1)
	fresh := filepath.Join(m.f.git.tmp, filepath.Base(m.dir)+".new")
	defer os.RemoveAll(fresh)
	if err := os.RemoveAll(fresh); err != nil {
		return rutter.Errorf(rutter.CodeUnavailable, "rebuilding a Git mirror: %w", err)
	}
	if err := m.create(ctx, fresh); err != nil {
		return err
	}
	if err := m.fetchCommits(ctx, fresh, r, []string{commit}); err != nil {
		return err
	}
	pins := map[string]time.Time{commit: time.Now()}
	for _, other := range m.alive() {
		if other != commit && m.fetchCommits(ctx, fresh, r, []string{other}) == nil {
			pins[other] = time.Now()
		}
	}
	return m.replace(fresh, pins)
}

func (m *mirror) alive() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var commits []string
	for commit, p := range m.live {
		if p.Value() != nil {
			commits = append(commits, commit)
		}
	}
	return commits
}

// replace moves fresh to the mirror's place.
func (m *mirror) replace(fresh string, pins map[string]time.Time) error {
	old := fresh + ".old"
	defer os.RemoveAll(old)
	if err := os.RemoveAll(old); err != nil {
		return rutter.Errorf(rutter.CodeUnavailable, "rebuilding a Git mirror: %w", err)
	}
	if err := os.Rename(m.dir, old); err != nil && !os.IsNotExist(err) {
		return rutter.Errorf(rutter.CodeUnavailable, "rebuilding a Git mirror: %w", err)
	}
	if err := os.Rename(fresh, m.dir); err != nil {
		return rutter.Errorf(rutter.CodeUnavailable, "rebuilding a Git mirror: %w", err)
	}
	m.objects.restart()
	m.mu.Lock()
	m.pins = pins
	m.mu.Unlock()
	m.opened = true
	m.damaged.Store(false)
	return nil
}
