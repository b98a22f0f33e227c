// Package chart is the adapter that reads Helm charts (ADAPTER ring), from
// repositories with an HTTP index and from OCI registries. It implements
// rutter.Sources for repositories of the kind rutter.RepoHelm: the snapshot's
// root holds Chart.yaml, and the revision is the chart's version. A version
// that was pushed again with another content is noticed: it has other hashes.
//
// An index may be large, has thousands of entries, and is somebody else's. It
// is asked for only when somebody wants to know, with a validator, so that the
// usual answer is "not changed"; it is read as a stream, and what is kept of it
// is the names, versions, digests and addresses. An entry that cannot be used
// costs only itself.
package chart

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/fresh"
	"github.com/rutterhq/rutter/internal/source/registry"
	"github.com/rutterhq/rutter/internal/source/remote"
	"github.com/rutterhq/rutter/internal/source/unpack"
)

// Options configure a Source. Only Dir is required.
type Options struct {
	// Dir holds the charts. It may be removed while nothing uses it.
	Dir    string
	Logger *slog.Logger
	// LookupTimeout and DownloadTimeout end what a server does not answer: the
	// first an index or a list of tags, the second a chart.
	LookupTimeout   time.Duration
	DownloadTimeout time.Duration
	// MaxIndexBytes and MaxBytes bound an index and a chart as they are
	// downloaded.
	MaxIndexBytes int64
	MaxBytes      int64
	// IndexMemory bounds what is kept of all indexes together, CacheBytes the
	// charts on disk.
	IndexMemory int64
	CacheBytes  int64
	// Limits bound what a chart unfolds to.
	Limits unpack.Limits
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LookupTimeout <= 0 {
		o.LookupTimeout = 2 * time.Minute
	}
	if o.DownloadTimeout <= 0 {
		o.DownloadTimeout = 5 * time.Minute
	}
	if o.MaxIndexBytes <= 0 {
		o.MaxIndexBytes = 64 << 20
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 64 << 20
	}
	if o.IndexMemory <= 0 {
		o.IndexMemory = 64 << 20
	}
	return o
}

// Source implements rutter.Sources. It is safe for concurrent use.
type Source struct {
	opts     Options
	store    *unpack.Store
	registry *registry.Client
	keys     atomic.Pointer[remote.Keyring]
	indexes  fresh.Table[*fresh.Answer[*index]]
	archives fresh.Table[*fresh.Answer[archive]]
	flights  fresh.Flight[*unpack.Tree]

	lookups   atomic.Int64
	parsed    atomic.Int64
	downloads atomic.Int64
	closed    atomic.Bool
}

var _ rutter.Sources = (*Source)(nil)

// Stats counts what was asked of servers since the start.
type Stats struct {
	// Lookups are the times an index, a list of tags or what a tag names was
	// asked for; Indexes the answers that held a new index, Downloads the charts
	// that were fetched.
	Lookups   int64
	Indexes   int64
	Downloads int64
}

// New opens the store. Close releases what the Source holds.
func New(opts Options) (*Source, error) {
	opts = opts.withDefaults()
	store, err := unpack.OpenStore(unpack.StoreOptions{Dir: opts.Dir, Logger: opts.Logger, Bytes: opts.CacheBytes, Limits: opts.Limits})
	if err != nil {
		return nil, err
	}
	s := &Source{opts: opts, store: store, registry: registry.NewClient(registry.Options{
		Store: store, LookupTimeout: opts.LookupTimeout, DownloadTimeout: opts.DownloadTimeout, MaxBytes: opts.MaxBytes,
	})}
	s.indexes.Most, s.indexes.Budget, s.indexes.Cost = 1024, opts.IndexMemory, costOf
	s.archives.Most = 4096
	s.keys.Store(remote.NewKeyring())
	return s, nil
}

// Close releases the store. Snapshots that are held can still be read.
func (s *Source) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.keys.Load().Close()
	return s.store.Close()
}

// SetCredentials replaces all credentials and trust at once. What was learnt
// with a credential that has changed, success or failure, counts no more.
func (s *Source) SetCredentials(creds []rutter.RepoCredential, trust rutter.RepoTrust) {
	s.keys.Store(s.keys.Load().With(creds, trust))
}

// Stats returns the counters.
func (s *Source) Stats() Stats {
	return Stats{
		Lookups: s.lookups.Load() + s.registry.Lookups(), Indexes: s.parsed.Load(),
		Downloads: s.downloads.Load() + s.registry.Downloads(),
	}
}

// Snapshot implements rutter.Sources.
func (s *Source) Snapshot(ctx context.Context, repo rutter.Repo, opts rutter.ResolveOptions) (rutter.Snapshot, error) {
	keys := s.keys.Load()
	repo, err := registered(keys, repo)
	if err != nil {
		return nil, err
	}
	url := repo.URL
	wish, err := registry.ParseWish(repo.Revision)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeOf(err), "chart %q of %s: revision: %w", repo.Chart, remote.Conceal(url), err)
	}
	if s.closed.Load() {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "chart %q of %s: the chart sources are closed", repo.Chart, remote.Conceal(url))
	}
	r := request{Source: s, keys: keys, repo: repo, wish: wish, age: time.Duration(opts.MaxAge)}
	if keys.IsRegistry(url, repo.Project) {
		return r.fromRegistry(ctx)
	}
	return r.fromIndex(ctx)
}

// Resolve puts the URL in the place of a registered repository's name (@name or
// alias:name), as Snapshot does for the same project: whether a project may use
// a repository is a question about its URL.
func (s *Source) Resolve(repo rutter.Repo) (rutter.Repo, error) {
	return registered(s.keys.Load(), repo)
}

// request is one chart for one asker.
type request struct {
	*Source

	keys *remote.Keyring
	repo rutter.Repo
	wish registry.Wish
	age  time.Duration
}

// registered replaces the name of a registered repository by its URL.
func registered(keys *remote.Keyring, repo rutter.Repo) (rutter.Repo, error) {
	text := strings.TrimSpace(repo.URL)
	name, ok := strings.CutPrefix(text, "@")
	if !ok {
		name, ok = strings.CutPrefix(text, "alias:")
	}
	if !ok {
		repo.URL = text
		return repo, nil
	}
	url, found := keys.Named(name, repo.Project)
	if !found {
		return repo, rutter.Errorf(rutter.CodeNotFound, "chart %q: no Helm repository that this project may use is registered by the name %q: add a repository Secret with that name, or write the URL", repo.Chart, name)
	}
	repo.URL = url
	return repo, nil
}
