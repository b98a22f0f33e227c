package git

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rutterhq/rutter"
)

// Mirrors that nobody uses any more are removed: repositories move, and what is
// left of them would fill the disk. When a mirror was last used stands in the
// time of its lock file, where all processes that share the folder see it.

// use notes that somebody wants the mirror now.
func (m *mirror) use() {
	now := time.Now()
	last := m.used.Swap(now.UnixNano())
	if now.UnixNano()-last > int64(m.f.sweepEvery()) {
		_ = os.Chtimes(m.dir+"."+lockFile, now, now) // one that is not there is made when it is locked
	}
}

// sweepEvery is the time between two looks for unused mirrors.
func (f *Fetcher) sweepEvery() time.Duration {
	if f.opts.KeepMirrors < 0 {
		return time.Hour
	}
	return max(min(f.opts.KeepMirrors/4, time.Hour), time.Millisecond)
}

// startSweeping looks for unused mirrors soon after the start, since a process
// may never run for long, and then now and again.
func (f *Fetcher) startSweeping() {
	f.sweeping.Lock()
	defer f.sweeping.Unlock()
	f.sweeper = time.AfterFunc(min(f.sweepEvery(), time.Minute), func() {
		f.sweeping.Lock()
		defer f.sweeping.Unlock()
		if f.closed.Load() {
			return
		}
		f.sweep(time.Now())
		f.sweeper.Reset(f.sweepEvery())
	})
}

// stopSweeping returns when no sweep runs and none will.
func (f *Fetcher) stopSweeping() {
	f.sweeping.Lock()
	defer f.sweeping.Unlock()
	f.sweeper.Stop()
}

// sweep removes what nobody has used for long: mirrors, content of LFS, tokens.
func (f *Fetcher) sweep(now time.Time) {
	f.apps.keep(now)
	root := filepath.Join(f.opts.Dir, "mirrors")
	entries, err := os.ReadDir(root)
	if err != nil {
		return // nothing was fetched yet
	}
	f.mu.Lock()
	known := map[string]*mirror{}
	for _, m := range f.mirrors {
		known[m.dir] = m
	}
	f.mu.Unlock()
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		var err error
		switch name, isMirror := strings.CutSuffix(e.Name(), "."+lockFile); {
		case strings.HasSuffix(e.Name(), ".lfs"):
			err = pruneLFS(dir, now.Add(-f.opts.KeepCommits))
		case isMirror && f.opts.KeepMirrors > 0:
			err = f.sweepMirror(filepath.Join(root, name), known[filepath.Join(root, name)], now.Add(-f.opts.KeepMirrors))
		}
		if err != nil {
			f.opts.Logger.Warn("what is left of an unused repository could not be removed", "dir", dir, "err", err)
		}
	}
}

// sweepMirror removes a mirror that was last used before a moment; m is nil for
// one that this process has not used.
func (f *Fetcher) sweepMirror(dir string, m *mirror, before time.Time) error {
	if m != nil {
		if !m.disk.TryLock() {
			return nil // it is being written to
		}
		defer m.disk.Unlock()
		if !m.unused(before) {
			return nil
		}
	}
	lock, err := os.OpenFile(dir+"."+lockFile, os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil // another process is writing to it
	}
	if info, err := lock.Stat(); err != nil || !info.ModTime().Before(before) {
		return nil
	}
	if m != nil {
		m.reset()
	}
	name := strings.TrimSuffix(dir, ".git")
	for _, path := range []string{dir, name + ".history.git", name + ".lfs", dir + "." + lockFile} {
		if err := os.RemoveAll(path); err != nil {
			return rutter.Errorf(rutter.CodeUnavailable, "removing an unused Git mirror: %w", err)
		}
	}
	f.opts.Logger.Info("Git mirror was not used for long and is removed", "dir", dir)
	return nil
}

// unused reports whether nobody has wanted the mirror since a moment, and
// nobody reads a commit of it.
func (m *mirror) unused(before time.Time) bool {
	if m.used.Load() >= before.UnixNano() {
		return false
	}
	m.mu.Lock()
	m.recent = nil
	m.mu.Unlock()
	return len(m.alive()) == 0
}

// reset makes m one that has not been opened yet; m.disk is held. Who has got
// hold of it at this moment fetches anew.
func (m *mirror) reset() {
	m.objects.restart()
	m.opened, m.since = false, 0
	m.damaged.Store(false)
	m.mu.Lock()
	clear(m.pins)
	clear(m.live)
	m.mu.Unlock()
	m.refs.Clear()
	m.history.forget.Store(true)
}
