package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rutterhq/rutter"
)

// Options configure a Fetcher.
type Options struct {
	// Dir holds the mirrors. It can be removed while no process uses it.
	Dir    string
	Logger *slog.Logger
	// Timeout bounds one call of git against a remote; default 90 s.
	Timeout time.Duration
	// BlobCache bounds the bytes of file contents kept in memory; default 64 MiB.
	BlobCache int64
}

// Fetcher implements rutter.Sources.
type Fetcher struct {
	opts  Options
	git   string
	blobs *blobCache

	mu      sync.Mutex
	mirrors map[string]*mirror
	creds   credentials
	stats   Stats
}

// Stats are counters since the start.
type Stats struct {
	// Lookups are the calls that asked a remote for its refs, Fetches those
	// that brought objects.
	Lookups, Fetches atomic.Int64
}

var _ rutter.Sources = (*Fetcher)(nil)

// New opens the mirrors in a folder, which is made when it is not there.
func New(opts Options) (*Fetcher, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeNotFound, "git is not installed: %w", err)
	}
	if opts.Timeout == 0 {
		opts.Timeout = 90 * time.Second
	}
	if opts.BlobCache == 0 {
		opts.BlobCache = 64 << 20
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Dir, err = filepath.Abs(opts.Dir); err != nil {
		return nil, fmt.Errorf("find the folder of mirrors: %w", err)
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of mirrors: %w", err)
	}
	return &Fetcher{opts: opts, git: path, blobs: newBlobCache(opts.BlobCache), mirrors: map[string]*mirror{}}, nil
}

// Stats returns the counters.
func (f *Fetcher) Stats() *Stats { return &f.stats }

// SetCredentials replaces what is known of repositories' logins.
func (f *Fetcher) SetCredentials(creds []rutter.RepoCredential, trust rutter.RepoTrust) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.creds = credentials{list: creds, trust: trust}
}

// Close ends the processes that read the mirrors.
func (f *Fetcher) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.mirrors {
		m.reader.close()
	}
	return nil
}

// Snapshot implements rutter.Sources.
func (f *Fetcher) Snapshot(ctx context.Context, repo rutter.Repo, opts rutter.ResolveOptions) (rutter.Snapshot, error) {
	m, err := f.mirror(repo)
	if err != nil {
		return nil, err
	}
	commit, err := m.resolve(ctx, repo.Revision, time.Duration(opts.MaxAge))
	if err != nil {
		return nil, fmt.Errorf("repository %q, revision %q: %w", redact(repo.URL), revisionName(repo.Revision), err)
	}
	s, err := m.snapshot(ctx, commit)
	if err != nil {
		return nil, fmt.Errorf("repository %q, commit %s: %w", redact(repo.URL), commit, err)
	}
	return s, nil
}

// Resolve returns the commit that a revision names, without reading its files.
func (f *Fetcher) Resolve(ctx context.Context, repo rutter.Repo, opts rutter.ResolveOptions) (string, error) {
	m, err := f.mirror(repo)
	if err != nil {
		return "", err
	}
	commit, err := m.resolve(ctx, repo.Revision, time.Duration(opts.MaxAge))
	if err != nil {
		return "", fmt.Errorf("repository %q, revision %q: %w", redact(repo.URL), revisionName(repo.Revision), err)
	}
	return commit, nil
}

// mirror returns the one mirror of a repository, whatever the spelling of its
// URL. Projects with credentials of their own have mirrors of their own, so
// that nobody reads through what another project may read.
func (f *Fetcher) mirror(repo rutter.Repo) (*mirror, error) {
	if err := checkURL(repo.URL); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	cred := f.creds.find(repo.URL, repo.Project)
	scope := ""
	if cred != nil {
		scope = cred.Project
	}
	key := scope + "|" + rutter.NormalizeGitURL(repo.URL)
	m := f.mirrors[key]
	if m == nil {
		sum := sha256.Sum256([]byte(key))
		m = newMirror(f, filepath.Join(f.opts.Dir, hex.EncodeToString(sum[:16])+".git"))
		f.mirrors[key] = m
	}
	m.setRemote(remote{url: repo.URL, cred: cred, trust: f.creds.trust})
	return m, nil
}

func revisionName(r string) string {
	if r == "" {
		return "HEAD"
	}
	return r
}
