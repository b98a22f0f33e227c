package git

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/fresh"
)

// fetches brings commits into a mirror. All who want one commit share one
// fetch; all commits that are wanted while a fetch runs share the next one.
type fetches struct {
	mu      sync.Mutex
	pending map[string]*fetch
	// failed are the last failures, by commit.
	failed map[string]*fetch
	queue  []*fetch
	busy   bool
	// lock is held, and handed to git, while the mirror is written to.
	lock *os.File
}

// fetch is one commit that is on its way.
type fetch struct {
	remote remote
	commit string
	done   chan struct{}
	ended  time.Time
	err    error
}

// ensure returns once commit and all its files are in the mirror. A failure of
// a moment ago answers those who would take an answer of that age.
func (fs *fetches) ensure(ctx context.Context, m *mirror, r remote, commit string, age time.Duration) error {
	if m.pinnedHere(commit) {
		return nil
	}
	fs.mu.Lock()
	want := fs.pending[commit]
	if old := fs.failed[commit]; want == nil && old != nil && old.remote.access.digest == r.access.digest && time.Since(old.ended) < min(age, fresh.FailureAge) {
		want = old
	}
	if want == nil {
		want = &fetch{remote: r, commit: commit, done: make(chan struct{})}
		fs.pending[commit] = want
		fs.queue = append(fs.queue, want)
		if !fs.busy {
			fs.busy = true
			go fs.work(context.WithoutCancel(ctx), m)
		}
	}
	fs.mu.Unlock()
	select {
	case <-want.done:
		return want.err
	case <-ctx.Done():
		return rutter.Errorf(rutter.CodeUnavailable, "repository %q: fetching commit %s: %w", r.display(), commit, context.Cause(ctx))
	}
}

// work fetches until nothing is wanted. It ends by its time limits and not with
// those who wait: what was fetched serves the next who asks.
func (fs *fetches) work(ctx context.Context, m *mirror) {
	for {
		fs.mu.Lock()
		batch := fs.queue
		fs.queue = nil
		fs.busy = len(batch) > 0
		fs.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		m.fetchBatch(ctx, batch)
		fs.mu.Lock()
		for _, w := range batch {
			delete(fs.pending, w.commit)
			if w.ended = time.Now(); w.err != nil {
				fs.failed[w.commit] = w
			}
			close(w.done)
		}
		maps.DeleteFunc(fs.failed, func(_ string, w *fetch) bool { return time.Since(w.ended) > fresh.FailureAge })
		fs.mu.Unlock()
		m.maintain(ctx)
	}
}

// fetchBatch fetches what of batch is not here, in one go if possible: where
// one of several commits cannot be had, each is asked for by itself.
func (m *mirror) fetchBatch(ctx context.Context, batch []*fetch) {
	m.disk.Lock()
	defer m.disk.Unlock()
	unlock, err := m.lock(ctx)
	if err == nil {
		defer unlock()
		err = m.open(ctx)
	}
	if err != nil {
		for _, w := range batch {
			w.err = err
		}
		return
	}
	batch = slices.DeleteFunc(slices.Clone(batch), func(w *fetch) bool { return m.pinnedHere(w.commit) })
	groups := [][]*fetch{batch}
	for len(groups) > 0 {
		group := groups[0]
		groups = groups[1:]
		if len(group) == 0 {
			continue
		}
		err := m.fetchCommits(ctx, m.dir, group[0].remote, commitsOf(group))
		if err != nil && len(group) > 1 {
			for _, w := range group {
				groups = append(groups, []*fetch{w})
			}
			continue
		}
		for _, w := range group {
			if w.err = err; err == nil {
				m.pin(w.commit)
			}
		}
	}
	m.since++
}

func commitsOf(group []*fetch) []string {
	commits := make([]string, len(group))
	for i, w := range group {
		commits[i] = w.commit
	}
	return commits
}

func (m *mirror) pin(commit string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pins[commit] = time.Now()
}

// fetchCommits brings commits without their history. A server that gives out
// no single commits, or a commit that is no longer at the tip of a branch
// there, needs all branches with their history.
func (m *mirror) fetchCommits(ctx context.Context, dir string, r remote, commits []string) error {
	ctx, cancel := context.WithTimeout(ctx, m.f.opts.FetchTimeout)
	defer cancel()
	specs := make([]string, len(commits))
	for i, c := range commits {
		specs[i] = "+" + c + ":" + pinned + c
	}
	m.f.counts.fetches.Add(1)
	err := m.fetch(ctx, dir, r, append([]string{"--depth=1"}, r.remote), specs)
	if err != nil && refusesCommit(err) && len(commits) == 1 {
		err = m.fetchHistory(ctx, dir, r, commits[0])
	}
	if err != nil {
		sweep(dir)
		if dir == m.dir && looksDamaged(err) {
			m.damaged.Store(true)
		}
		return m.explainFetch(r, commits, err)
	}
	return m.checkKinds(ctx, dir, r, commits)
}

func (m *mirror) explainFetch(r remote, commits []string, err error) error {
	if errors.Is(err, errNoCommit) || refusesCommit(err) {
		return rutter.Errorf(rutter.CodeNotFound, "repository %q has no commit %s, or serves only what a branch or tag holds: check targetRevision",
			r.display(), strings.Join(commits, ", "))
	}
	return r.explain(err)
}

var errNoCommit = errors.New("the commit is in no branch or tag")

// fetchHistory brings everything, looks whether the commit is in it, and pins it.
func (m *mirror) fetchHistory(ctx context.Context, dir string, r remote, commit string) error {
	args := []string{"--prune", r.remote}
	if _, err := os.Stat(filepath.Join(dir, "shallow")); err == nil {
		args = []string{"--prune", "--unshallow", r.remote}
	}
	m.f.counts.fetches.Add(1)
	if err := m.fetch(ctx, dir, r, args, []string{"+refs/*:refs/remotes/all/*"}); err != nil {
		return err
	}
	git := command{dir: dir, env: base().env()}
	git.args = []string{"cat-file", "-e", commit + "^{commit}"}
	if _, err := m.f.git.run(ctx, git); err != nil {
		return errNoCommit
	}
	git.args = []string{"update-ref", pinned + commit, commit}
	_, err := m.f.git.run(ctx, git)
	return err
}

// fetch runs git fetch; args end with the URL.
func (m *mirror) fetch(ctx context.Context, dir string, r remote, args, specs []string) error {
	url := args[len(args)-1]
	cmd := []string{"fetch", "--quiet", "--no-tags", "--force", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--atomic", "--refmap="}
	cmd = append(cmd, args[:len(args)-1]...)
	cmd = append(cmd, "--end-of-options", url)
	_, err := m.f.talk(ctx, r, command{args: append(cmd, specs...), dir: dir, files: m.lockFiles()})
	return err
}

func refusesCommit(err error) bool {
	var failed *exitError
	return errors.As(err, &failed) && (strings.Contains(failed.stderr, "not our ref") || strings.Contains(failed.stderr, "unadvertised object") ||
		strings.Contains(failed.stderr, "couldn't find remote ref") || strings.Contains(failed.stderr, "no such remote ref"))
}

// looksDamaged reports whether a fetch failed for what is in the mirror, and
// not for what the remote did: its own words begin with "remote:".
func looksDamaged(err error) bool {
	var failed *exitError
	if !errors.As(err, &failed) {
		return false
	}
	for line := range strings.Lines(failed.stderr) {
		if strings.HasPrefix(line, "remote:") || strings.Contains(line, "askpass") {
			continue // a login that is refused says nothing of the mirror
		}
		for _, words := range []string{"bad object", "corrupt", "is empty", "cannot be mapped", "too small", "not a git repository", "bad config",
			"unexpected line in", "unable to read", "missing blob", "missing tree", "did not send all necessary objects", "Could not read "} {
			if strings.Contains(line, words) && !strings.Contains(line, "from remote repository") {
				return true
			}
		}
	}
	return false
}

// checkKinds makes sure that what was fetched are commits: a tag's own id, or
// a file's, is not something to deploy.
func (m *mirror) checkKinds(ctx context.Context, dir string, r remote, commits []string) error {
	out, err := m.f.git.run(ctx, command{dir: dir, env: base().env(), args: []string{"cat-file", "--batch-check=%(objecttype)"}, stdin: strings.Join(commits, "\n") + "\n"})
	if err != nil {
		return r.explain(err)
	}
	for i, kind := range strings.Fields(string(out)) {
		if kind != "commit" && i < len(commits) {
			return rutter.Errorf(rutter.CodeInvalid, "repository %q: %s is a %s and not a commit: write the commit, or the name of the tag", r.display(), commits[i], kind)
		}
	}
	return nil
}

// lockFile is held while a mirror is written to, also by the git that writes:
// another process waits until that one is gone as well.
const lockFile = "rutter.lock"

// lock takes the mirror's lock between processes.
func (m *mirror) lock(ctx context.Context) (func(), error) {
	fail := func(err error) (func(), error) {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "locking a Git mirror: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(m.dir), 0o700); err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeout(ctx, m.f.opts.FetchTimeout)
	defer cancel()
	var file *os.File
	for {
		var err error
		if file, err = tryLock(m.dir + "." + lockFile); err == nil {
			break
		}
		if !errors.Is(err, errLocked) {
			return fail(err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fail(errors.Join(err, ctx.Err()))
		}
	}
	m.fetches.lock = file
	return func() {
		m.fetches.lock = nil
		file.Close()
	}, nil
}

var errLocked = errors.New("another process is writing to it")

// tryLock locks a file, or says errLocked if another has. One that was removed
// together with its mirror while it was being locked is no lock any more.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errLocked
	}
	if err == nil {
		mine, _ := file.Stat()
		if there, statErr := os.Stat(path); statErr != nil || !os.SameFile(mine, there) {
			err = errLocked
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func (m *mirror) lockFiles() []*os.File {
	if m.fetches.lock == nil {
		return nil
	}
	return []*os.File{m.fetches.lock}
}
