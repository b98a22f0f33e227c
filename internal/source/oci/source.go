// Package oci is the adapter that reads OCI artifacts (ADAPTER ring): it turns
// oci://host/path and a tag, a digest or a constraint on versions into a
// read-only tree. It implements rutter.Sources for repositories of the kind
// rutter.RepoOCI.
//
// An artifact has exactly one layer that can be used: a tar archive, plain or
// with gzip, of the media types that Argo CD and Flux publish, or a chart,
// whose top folder is left out. Its revision is the digest of its manifest.
package oci

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/registry"
	"github.com/rutterhq/rutter/internal/source/remote"
	"github.com/rutterhq/rutter/internal/source/unpack"
)

// Options configure a Source. Only Dir is required.
type Options struct {
	// Dir holds what was fetched. It may be removed while nothing uses it.
	Dir    string
	Logger *slog.Logger
	// LookupTimeout and DownloadTimeout end what a registry does not answer.
	LookupTimeout   time.Duration
	DownloadTimeout time.Duration
	// MaxBytes bounds an artifact as it is downloaded, CacheBytes all that is
	// kept on disk.
	MaxBytes   int64
	CacheBytes int64
	// Limits bound what an artifact unfolds to.
	Limits unpack.Limits
}

// Source implements rutter.Sources. It is safe for concurrent use.
type Source struct {
	store  *unpack.Store
	client *registry.Client
	keys   atomic.Pointer[remote.Keyring]
	closed atomic.Bool
}

var _ rutter.Sources = (*Source)(nil)

// Stats counts what was asked of registries since the start.
type Stats struct {
	// Lookups are the times a registry was asked for tags or for what one
	// names; Downloads the artifacts that were fetched.
	Lookups   int64
	Downloads int64
}

// New opens the store. Close releases what the Source holds.
func New(opts Options) (*Source, error) {
	store, err := unpack.OpenStore(unpack.StoreOptions{Dir: opts.Dir, Logger: opts.Logger, Bytes: opts.CacheBytes, Limits: opts.Limits})
	if err != nil {
		return nil, err
	}
	s := &Source{store: store, client: registry.NewClient(registry.Options{
		Store: store, LookupTimeout: opts.LookupTimeout, DownloadTimeout: opts.DownloadTimeout, MaxBytes: opts.MaxBytes,
	})}
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
	return Stats{Lookups: s.client.Lookups(), Downloads: s.client.Downloads()}
}

// Snapshot implements rutter.Sources.
func (s *Source) Snapshot(ctx context.Context, repo rutter.Repo, opts rutter.ResolveOptions) (rutter.Snapshot, error) {
	address, err := remote.ParseRegistry(repo.URL)
	if err != nil {
		return nil, err
	}
	if s.closed.Load() {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "%s: the OCI sources are closed", address)
	}
	artifact, err := s.client.Open(s.keys.Load(), address, repo.Project)
	if err != nil {
		return nil, err
	}
	age := time.Duration(opts.MaxAge)
	digest, err := resolve(ctx, artifact, strings.TrimSpace(repo.Revision), age)
	if err != nil {
		return nil, err
	}
	tree, err := artifact.Tree(ctx, digest, age, registry.AnyLayer)
	if err != nil {
		return nil, err
	}
	return tree.Snapshot(address.String(), digest), nil
}

// resolve finds the digest of a revision: a digest as it is; a tag; or a
// constraint, which the newest of the tags that are versions meets. What is
// both (1.2 may be a tag that moves, or mean 1.2.x) is a tag where there is one.
func resolve(ctx context.Context, a *registry.Artifact, revision string, age time.Duration) (string, error) {
	if revision == "" {
		revision = "latest"
	}
	if registry.IsDigest(revision) {
		return revision, nil
	}
	wish, bad := registry.ParseWish(revision)
	tag := registry.TagOf(revision)
	if _, err := semver.NewVersion(revision); bad != nil || err == nil {
		if bad != nil && !registry.IsTag(tag) {
			return "", rutter.Errorf(rutter.CodeInvalid, "%s: revision %q is no tag, no digest and no constraint on versions", a.Name(), revision)
		}
		digest, err := a.Digest(ctx, tag, age)
		if bad != nil || len(wish.Exact()) > 0 || rutter.CodeOf(err) != rutter.CodeNotFound {
			return digest, err
		}
	}
	newest, err := a.Newest(ctx, wish, age)
	if err == nil {
		return a.Digest(ctx, newest, age)
	}
	if rutter.CodeOf(err) == rutter.CodeNotFound && registry.IsTag(tag) {
		if digest, literal := a.Digest(ctx, tag, age); literal == nil {
			return digest, nil
		}
	}
	return "", err
}
