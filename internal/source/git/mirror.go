package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/fresh"
)

// pinned is where the refs that hold commits are. The remote's own refs are
// not kept, but for a server that gives out no single commits (fetchHistory).
const pinned = "refs/rutter/"

// mirror is the local copy of one repository, as one credential can read it.
type mirror struct {
	f   *Fetcher
	dir string

	// refs are what the remote has, as each login sees it.
	refs    fresh.Table[*fresh.Answer[refs]]
	fetches fetches
	history history
	objects *objects

	// used is when somebody last wanted the mirror, in nanoseconds.
	used atomic.Int64

	// damaged is set when an object that must be there cannot be read.
	damaged atomic.Bool

	// disk serialises what writes to dir, and guards the two below.
	disk   sync.Mutex
	opened bool
	// since counts fetches since the mirror was last tidied up.
	since int

	mu sync.Mutex
	// pins are the commits that are completely in the mirror, and when they
	// were last asked for.
	pins map[string]time.Time
	// live are the commits that somebody may still read; recent keeps the
	// last few, so that the next asker finds them.
	live   map[string]weak.Pointer[held]
	recent []*held
}

// mostLogins are those of one mirror whose answers are remembered. A login is
// replaced now and then; several at one time have mirrors of their own.
const mostLogins = 4

func newMirror(f *Fetcher, key string) *mirror {
	sum := sha256.Sum256([]byte(key))
	m := &mirror{f: f, dir: filepath.Join(f.opts.Dir, "mirrors", hex.EncodeToString(sum[:16])+".git"),
		pins: map[string]time.Time{}, live: map[string]weak.Pointer[held]{}}
	m.objects = newObjects(m)
	m.refs.Most = mostLogins
	m.fetches.pending, m.fetches.failed = map[string]*fetch{}, map[string]*fetch{}
	return m
}

// resolve turns a revision into a commit: a full commit as it is, all else by
// the remote's refs. What cannot be resolved is an error.
func (m *mirror) resolve(ctx context.Context, r remote, repo rutter.Repo, age time.Duration) (string, error) {
	revision := strings.TrimSpace(repo.Revision)
	if err := checkRevision(r.location, revision, repo.TagPrefix); err != nil {
		return "", err
	}
	if shortID.MatchString(revision) && len(revision) == 40 {
		return strings.ToLower(revision), nil
	}
	known, err := m.lookUp(ctx, r, age)
	if err != nil {
		return "", err
	}
	if commit, ok := known.find(revision, repo.TagPrefix); ok {
		return commit, nil
	}
	if shortID.MatchString(revision) {
		return m.history.find(ctx, m, r, known, strings.ToLower(revision))
	}
	if revision == "" || revision == "HEAD" {
		return "", rutter.Errorf(rutter.CodeNotFound, "repository %q has no default branch, or is empty: push a commit, or set targetRevision", r.display())
	}
	with := ""
	if repo.TagPrefix != "" {
		with = " (versions with the tagPrefix " + strconv.Quote(repo.TagPrefix) + ")"
	}
	return "", rutter.Errorf(rutter.CodeNotFound, "repository %q has no revision %q%s: it is no branch, tag, version range that a tag matches, or commit; check targetRevision",
		r.display(), revision, with)
}

// lookUp returns the remote's refs, at most age old.
func (m *mirror) lookUp(ctx context.Context, r remote, age time.Duration) (refs, error) {
	answer := m.refs.Get(r.access.digest, func() *fresh.Answer[refs] { return &fresh.Answer[refs]{} })
	known, err := answer.Ask(ctx, age, func(ctx context.Context, _ refs, _ bool) (refs, error) { return m.lsRemote(ctx, r) })
	if err != nil && ctx.Err() != nil {
		return refs{}, rutter.Errorf(rutter.CodeUnavailable, "repository %q: looking up its refs: %w", r.display(), err)
	}
	return known, err
}

// lsRemote asks the remote for all of its refs.
func (m *mirror) lsRemote(ctx context.Context, r remote) (refs, error) {
	ctx, cancel := context.WithTimeout(ctx, m.f.opts.LookupTimeout)
	defer cancel()
	m.f.counts.lookups.Add(1)
	out, err := m.f.talk(ctx, r, command{args: []string{"ls-remote", "--quiet", "--end-of-options", r.remote}})
	if err != nil {
		return refs{}, r.explain(err)
	}
	found, err := parseRefs(out)
	if err != nil {
		return refs{}, rutter.Errorf(rutter.CodeOf(err), "repository %q: %w", r.display(), err)
	}
	return found, nil
}

// hold returns a commit, fetching it when it is not here. A
// mirror that turns out to be damaged is made anew, once; while that fails,
// what of the old one can still be read goes on being read.
func (m *mirror) hold(ctx context.Context, r remote, commit string, age time.Duration) (*held, error) {
	if m.damaged.Load() {
		if err := m.rebuild(ctx, r, commit); err != nil {
			m.f.opts.Logger.Warn("Git mirror is damaged and could not be fetched anew", "repository", r.display(), "err", err)
		}
	}
	if s := m.known(commit); s != nil {
		return s, nil
	}
	s, err := m.openCommit(ctx, r, commit, age)
	if err != nil && m.damaged.Load() {
		if err = m.rebuild(ctx, r, commit); err == nil {
			s, err = m.openCommit(ctx, r, commit, age)
		}
	}
	if err != nil {
		return nil, err
	}
	return m.remember(s), nil
}

func (m *mirror) openCommit(ctx context.Context, r remote, commit string, age time.Duration) (*held, error) {
	if err := m.fetches.ensure(ctx, m, r, commit, age); err != nil {
		return nil, err
	}
	return newHeld(m, r.display(), commit)
}

func (m *mirror) known(commit string) *held {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.live[commit].Value()
	if s != nil {
		m.touch(s)
	}
	return s
}

// remember keeps s for the next asker, or returns the one that was quicker.
func (m *mirror) remember(s *held) *held {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other := m.live[s.commit].Value(); other != nil {
		s = other
	}
	m.live[s.commit] = weak.Make(s)
	m.touch(s)
	return s
}

// touch notes that s is in use; m.mu is held.
func (m *mirror) touch(s *held) {
	const kept = 4
	if _, ok := m.pins[s.commit]; ok {
		m.pins[s.commit] = time.Now()
	}
	for i, old := range m.recent {
		if old == s {
			copy(m.recent[1:i+1], m.recent[:i])
			m.recent[0] = s
			return
		}
	}
	m.recent = append([]*held{s}, m.recent...)
	m.recent = m.recent[:min(len(m.recent), kept)]
}

// pinnedHere reports whether commit is completely here, and keeps it from
// being let go before it is read.
func (m *mirror) pinnedHere(commit string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.pins[commit]
	if ok {
		m.pins[commit] = time.Now()
	}
	return ok
}

// open prepares the mirror's folder once: makes it, or takes it over from an
// earlier process, whatever state that has left it in. m.disk is held.
func (m *mirror) open(ctx context.Context) error {
	if m.opened {
		return nil
	}
	found, err := m.adopt(ctx)
	if err != nil {
		m.f.opts.Logger.Warn("Git mirror cannot be used and is made anew", "dir", m.dir, "err", err)
		m.f.counts.rebuilds.Add(1)
	}
	if !found {
		if err := os.RemoveAll(m.dir); err != nil {
			return rutter.Errorf(rutter.CodeUnavailable, "removing a damaged Git mirror: %w", err)
		}
		if err := m.create(ctx, m.dir); err != nil {
			return err
		}
	}
	m.opened = true
	return nil
}

// adopt reads which commits an existing folder holds; false when there is none
// that can be used.
func (m *mirror) adopt(ctx context.Context) (bool, error) {
	if _, err := os.Stat(m.dir); err != nil {
		return false, nil
	}
	sweep(m.dir)
	out, err := m.f.git.run(ctx, command{dir: m.dir, env: base().env(), args: []string{"for-each-ref", "--format=%(objectname)", pinned}})
	if err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for commit := range strings.FieldsSeq(string(out)) {
		m.pins[commit] = time.Now()
	}
	return true, nil
}

// create makes an empty repository. It is built beside its place and moved
// there, so that a folder of that name is always a whole repository.
func (m *mirror) create(ctx context.Context, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return rutter.Errorf(rutter.CodeUnavailable, "making a Git mirror: %w", err)
	}
	tmp, err := os.MkdirTemp(m.f.git.tmp, "new-")
	if err != nil {
		return rutter.Errorf(rutter.CodeUnavailable, "making a Git mirror: %w", err)
	}
	defer os.RemoveAll(tmp)
	fresh := filepath.Join(tmp, "mirror.git")
	if _, err := m.f.git.run(ctx, command{env: base().env(), args: []string{"init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--end-of-options", fresh}}); err != nil {
		return rutter.Errorf(rutter.CodeUnavailable, "making a Git mirror: %w", err)
	}
	if err := os.Rename(fresh, dir); err != nil {
		return rutter.Errorf(rutter.CodeUnavailable, "making a Git mirror: %w", err)
	}
	return nil
}

// sweep removes what a git that was killed has left behind: locks, which
// would block the next one for good, and halves of packs and objects.
func sweep(dir string) {
	for _, pattern := range []string{"*.lock", "refs/*/*.lock", "refs/*.lock", "objects/*.lock", "objects/info/*.lock", "objects/pack/*.lock",
		"objects/pack/tmp_*", "objects/pack/.tmp-*", "objects/??/tmp_obj_*", "objects/tmp_objdir-*", "shallow_*", "objects/info/tmp_*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are well-formed
		for _, path := range found {
			_ = os.RemoveAll(path)
		}
	}
}
