// Package web is the adapter that reads single files over HTTP(S), such as a
// remote file of Helm values (ADAPTER ring). It implements rutter.Sources for
// repositories of the kind rutter.RepoFile: the snapshot's root holds one file,
// named as the URL's path ends, and the revision is the SHA-256 of its content.
package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/fresh"
	"github.com/rutterhq/rutter/internal/source/remote"
	"github.com/rutterhq/rutter/internal/source/unpack"
)

// Options configure a Source. Only Dir is required.
type Options struct {
	// Dir holds what was fetched. It may be removed while nothing uses it.
	Dir    string
	Logger *slog.Logger
	// Timeout ends a request that a server does not answer.
	Timeout time.Duration
	// MaxBytes bounds a file, CacheBytes all that is kept on disk.
	MaxBytes   int64
	CacheBytes int64
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 10 << 20
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = 256 << 20
	}
	return o
}

// Source implements rutter.Sources. It is safe for concurrent use.
type Source struct {
	opts      Options
	store     *unpack.Store
	keys      atomic.Pointer[remote.Keyring]
	files     fresh.Table[*fresh.Answer[file]]
	lookups   atomic.Int64
	downloads atomic.Int64
	closed    atomic.Bool
}

var _ rutter.Sources = (*Source)(nil)

// Stats counts what was asked of servers since the start.
type Stats struct {
	// Lookups are the requests; Downloads those that were answered with content
	// and not by saying that it has not changed.
	Lookups   int64
	Downloads int64
}

// file is what a URL named when it was last asked.
type file struct {
	digest     string
	key        string
	validators remote.Validators
}

// New opens the store. Close releases what the Source holds.
func New(opts Options) (*Source, error) {
	opts = opts.withDefaults()
	store, err := unpack.OpenStore(unpack.StoreOptions{
		Dir: opts.Dir, Logger: opts.Logger, Bytes: opts.CacheBytes, Limits: unpack.Limits{EntryBytes: opts.MaxBytes, TotalBytes: opts.MaxBytes},
	})
	if err != nil {
		return nil, err
	}
	s := &Source{opts: opts, store: store}
	s.files.Most = 4096
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
	return Stats{Lookups: s.lookups.Load(), Downloads: s.downloads.Load()}
}

// Snapshot implements rutter.Sources. A Revision of the form sha256:... holds
// the file to that content; there is no other way to pin one.
func (s *Source) Snapshot(ctx context.Context, repo rutter.Repo, opts rutter.ResolveOptions) (rutter.Snapshot, error) {
	address, err := remote.ParseWeb(repo.URL)
	if err != nil {
		return nil, err
	}
	name := path.Base(address.Path)
	if address.Path == "" || name == "." {
		return nil, rutter.Errorf(rutter.CodeInvalid, "URL %q names no file on the host", address)
	}
	pin := strings.TrimSpace(repo.Revision)
	if pin != "" && !strings.HasPrefix(pin, "sha256:") {
		return nil, rutter.Errorf(rutter.CodeInvalid, "file %s: revision %q: a file on the web has no revisions; leave it empty, or write the digest of its content (sha256:...)", address, pin)
	}
	if s.closed.Load() {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "file %s: the web sources are closed", address)
	}
	f, tree, err := s.read(ctx, fetch{s, s.keys.Load(), address, name, repo.Project}, time.Duration(opts.MaxAge))
	if err != nil {
		return nil, err
	}
	if pin != "" && pin != f.digest {
		return nil, rutter.Errorf(rutter.CodeInvalid, "file %s has the content %s and not %s, which it is pinned to", address, f.digest, pin)
	}
	return tree.Snapshot(address.String(), f.digest), nil
}

// read returns the file and the tree that holds it. A tree that has left the
// store meanwhile is fetched again.
func (s *Source) read(ctx context.Context, f fetch, age time.Duration) (file, *unpack.Tree, error) {
	access := f.keys.Choose(f.address, f.project)
	key := f.address.Identity() + "\x00" + access.Scope() + "\x00" + access.Digest()
	answer := s.files.Get(key, func() *fresh.Answer[file] { return &fresh.Answer[file]{} })
	ask := func(ctx context.Context, last file, ok bool) (file, error) { return f.ask(ctx, access, last, ok) }
	for range 2 {
		got, err := answer.Ask(ctx, age, ask)
		if err != nil {
			return file{}, nil, rutter.Errorf(rutter.CodeOf(err), "file %s: %w", f.address, err)
		}
		if tree, ok := s.store.Get(got.key); ok {
			return got, tree, nil
		}
		age = 0
	}
	return file{}, nil, rutter.Errorf(rutter.CodeUnavailable, "file %s: the store in %s keeps nothing; is its disk full?", f.address, s.opts.Dir)
}

// fetch is one file for one asker.
type fetch struct {
	*Source

	keys    *remote.Keyring
	address remote.Address
	name    string
	project string
}

// ask asks the server for the file, or whether it has changed.
func (f fetch) ask(ctx context.Context, access remote.Access, last file, ok bool) (file, error) {
	ctx, cancel := context.WithTimeout(ctx, f.opts.Timeout)
	defer cancel()
	header := http.Header{}
	if ok {
		if _, stored := f.store.Get(last.key); stored {
			last.validators.Set(header)
		}
	}
	f.lookups.Add(1)
	resp, err := f.keys.Do(ctx, access, remote.Request{
		URL: f.address.URL(), Header: header, Authorization: access.BasicAuth(), Bounds: []remote.Bound{access.Bound()},
	})
	if err != nil {
		return file{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotModified && len(header) > 0:
		return last, nil
	case resp.StatusCode != http.StatusOK:
		return file{}, remote.Refused("it", access, resp)
	}
	data, err := io.ReadAll(remote.Body("the file", access, resp, f.opts.MaxBytes))
	if err != nil {
		return file{}, err
	}
	f.downloads.Add(1)
	return f.keep(access, data, remote.ValidatorsOf(resp))
}

// keep puts a content into the store, unless it is there.
func (f fetch) keep(access remote.Access, data []byte, v remote.Validators) (file, error) {
	sum := sha256.Sum256(data)
	got := file{digest: "sha256:" + hex.EncodeToString(sum[:]), validators: v}
	got.key = strings.Join([]string{"file", f.address.Identity(), access.Scope(), got.digest}, "\x00")
	if _, ok := f.store.Get(got.key); ok {
		return got, nil
	}
	_, err := f.store.Put(func(b *unpack.Builder) (string, error) {
		return got.key, b.File(f.name, false, int64(len(data)), bytes.NewReader(data))
	}, nil)
	return got, err
}
