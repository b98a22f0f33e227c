package git

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/rutterhq/rutter"
)

// Options configure a Fetcher. Only Dir is required.
type Options struct {
	// Dir holds the mirrors. It may be removed while nothing uses it; what is
	// needed is fetched again.
	Dir    string
	Logger *slog.Logger
	// Git is the program to run; "git" from the PATH by default.
	Git string
	// LookupTimeout and FetchTimeout end a command that a server does not answer.
	LookupTimeout time.Duration
	FetchTimeout  time.Duration
	// ReadTimeout ends a read that waits for what is fetched only then, content
	// of LFS or a submodule: 45 seconds by default. The fetch itself goes on.
	ReadTimeout time.Duration
	// CacheBytes bounds the file contents, and as many bytes again of folder
	// listings, that are kept in memory for all repositories together.
	CacheBytes int64
	// MaxFileBytes bounds a single file.
	MaxFileBytes int64
	// KeepCommits is how long a commit that nobody reads any more is kept.
	KeepCommits time.Duration
	// KeepMirrors is how long a mirror that nobody uses any more is kept: 7
	// days by default, for ever when it is negative.
	KeepMirrors time.Duration
	// Submodules reads what is below a submodule from the submodule's own
	// repository, at the commit that its parent names. Without it a submodule
	// is an empty folder.
	Submodules bool
	// Permit says whether a repository may have this submodule; an error
	// refuses it. Both have the project that asks.
	Permit func(parent, sub rutter.Repo) error
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LookupTimeout <= 0 {
		o.LookupTimeout = time.Minute
	}
	if o.FetchTimeout <= 0 {
		o.FetchTimeout = 15 * time.Minute
	}
	if o.ReadTimeout <= 0 {
		o.ReadTimeout = 45 * time.Second
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = 64 << 20
	}
	if o.MaxFileBytes <= 0 {
		o.MaxFileBytes = 64 << 20
	}
	if o.KeepCommits <= 0 {
		o.KeepCommits = 24 * time.Hour
	}
	if o.KeepMirrors == 0 {
		o.KeepMirrors = 7 * 24 * time.Hour
	}
	return o
}

// Fetcher implements rutter.Sources. It is safe for concurrent use.
type Fetcher struct {
	opts Options
	// real is opts.Dir with symbolic links resolved.
	real   string
	git    *runner
	blobs  *cache[[]byte]
	trees  *cache[*tree]
	counts counters

	keys atomic.Pointer[keyring]
	apps apps

	// downloads of LFS are shared; slots bounds how many there are at once.
	// modules are the submodules that are being opened.
	downloads singleflight.Group
	modules   singleflight.Group
	slots     *slots

	mu      sync.Mutex
	mirrors map[string]*mirror
	closed  atomic.Bool

	// sweeping is held by what looks for unused mirrors, for which sweeper waits.
	sweeping sync.Mutex
	sweeper  *time.Timer
}

type counters struct{ lookups, fetches, rebuilds, reads, downloads atomic.Int64 }

// Stats counts what was asked of Git since the start.
type Stats struct {
	// Lookups and Fetches are the times a remote was asked for its refs and for objects.
	Lookups int64
	Fetches int64
	// Rebuilds are the mirrors that were found damaged and fetched anew.
	Rebuilds int64
	// Reads are the objects that were read from a mirror and not from memory.
	Reads int64
	// Downloads are the files that were asked for from servers of LFS.
	Downloads int64
}

var _ rutter.Sources = (*Fetcher)(nil)

// New prepares the folder for mirrors and finds git. Close releases what the
// Fetcher holds.
func New(opts Options) (*Fetcher, error) {
	if opts.Dir == "" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "a folder for Git mirrors is needed: set Dir")
	}
	opts = opts.withDefaults()
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "folder for Git mirrors %q: %w", opts.Dir, err)
	}
	opts.Dir = dir
	run, err := newRunner(opts.Git, dir)
	if err != nil {
		return nil, err
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "folder for Git mirrors %q: %w", dir, err)
	}
	f := &Fetcher{opts: opts, real: resolved, git: run, mirrors: map[string]*mirror{}, blobs: newCache[[]byte](opts.CacheBytes),
		slots: newSlots(), apps: apps{tokens: map[appKey]*appToken{}}, trees: newCache[*tree](opts.CacheBytes)}
	f.keys.Store(newKeyring(nil, rutter.RepoTrust{}))
	f.startSweeping()
	return f, nil
}

// Close ends the processes that read mirrors. Snapshots cannot be read afterwards.
func (f *Fetcher) Close() error {
	f.mu.Lock()
	if f.closed.Swap(true) {
		f.mu.Unlock()
		return nil
	}
	mirrors := f.mirrors
	f.mirrors = map[string]*mirror{}
	f.mu.Unlock()
	f.stopSweeping()
	for _, m := range mirrors {
		m.objects.close()
	}
	if err := f.git.close(); err != nil {
		return rutter.Errorf(rutter.CodeInternal, "closing the Git sources: %w", err)
	}
	return nil
}

// SetCredentials replaces all credentials and trust at once. What was learnt
// with a credential that has changed, success or failure, is forgotten.
func (f *Fetcher) SetCredentials(creds []rutter.RepoCredential, trust rutter.RepoTrust) {
	f.keys.Store(newKeyring(creds, trust))
}

// Stats returns the counters.
func (f *Fetcher) Stats() Stats {
	return Stats{
		Lookups: f.counts.lookups.Load(), Fetches: f.counts.fetches.Load(),
		Rebuilds: f.counts.rebuilds.Load(), Reads: f.counts.reads.Load(), Downloads: f.counts.downloads.Load(),
	}
}

// Resolve returns the commit (40 hex digits) that repo's revision names now, or
// named at most opts.MaxAge ago. It fetches nothing but, for an abbreviated
// commit, the repository's history.
func (f *Fetcher) Resolve(ctx context.Context, repo rutter.Repo, opts rutter.ResolveOptions) (string, error) {
	r, err := f.remote(repo)
	if err != nil {
		return "", err
	}
	return r.mirror.resolve(ctx, r, repo, time.Duration(opts.MaxAge))
}

// Snapshot implements rutter.Sources.
func (f *Fetcher) Snapshot(ctx context.Context, repo rutter.Repo, opts rutter.ResolveOptions) (rutter.Snapshot, error) {
	s, err := f.snapshot(ctx, repo, time.Duration(opts.MaxAge), 0)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// snapshot is Snapshot for a repository that is a submodule of as many others
// as depth says.
func (f *Fetcher) snapshot(ctx context.Context, repo rutter.Repo, age time.Duration, depth int) (*snapshot, error) {
	r, err := f.remote(repo)
	if err != nil {
		return nil, err
	}
	commit, err := r.mirror.resolve(ctx, r, repo, age)
	if err != nil {
		return nil, err
	}
	h, err := r.mirror.hold(ctx, r, commit, age)
	if err != nil {
		return nil, err
	}
	// What is fetched when it is read belongs to no request: it ends by its
	// time limits, and its reader doesn't wait for longer than ReadTimeout.
	lazy := context.WithoutCancel(ctx)
	s := &snapshot{held: h}
	if r.access.cred.EnableLFS {
		s.lfs = f.newLFS(lazy, repo, h.m)
	}
	if f.opts.Submodules {
		s.modules = f.newModules(lazy, repo, r.location, depth)
	}
	return s, nil
}

// remote is a repository as one asker may use it.
type remote struct {
	location

	access access
	mirror *mirror
}

// explain turns a failed command against this repository into the user's error.
func (r remote) explain(err error) error { return explain(err, r.location, r.access) }

// remote finds what an asker may use. What the keyring has answered once it
// remembers; a file URL is looked at each time, since folders come and go.
func (f *Fetcher) remote(repo rutter.Repo) (remote, error) {
	keys := f.keys.Load()
	who := asker{repo.URL, repo.Project}
	if r, ok := keys.known.Load(who); ok && !f.closed.Load() {
		r.(remote).mirror.use()
		return r.(remote), nil
	}
	l, err := parseLocation(repo.URL)
	if err != nil {
		return remote{}, err
	}
	if l.scheme == "file" && within(f.real, l.path) {
		return remote{}, rutter.Errorf(rutter.CodeForbidden, "repository %q lies in Rutter's own data folder; use the URL of its origin", l.display())
	}
	r := remote{location: l, access: keys.choose(l, repo.Project)}
	key := l.identity() + "\x00" + r.access.scope()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed.Load() {
		return remote{}, rutter.Errorf(rutter.CodeUnavailable, "repository %q: %w", l.display(), errClosed)
	}
	if r.mirror = f.mirrors[key]; r.mirror == nil {
		r.mirror = newMirror(f, key)
		f.mirrors[key] = r.mirror
	}
	r.mirror.use()
	if l.scheme != "file" {
		keys.known.Store(who, r)
	}
	return r, nil
}

var errClosed = errors.New("the Git sources are closed")

// within reports whether path is dir, whose symbolic links are resolved, or
// leads below it.
func within(dir, path string) bool {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
