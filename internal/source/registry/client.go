package registry

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/fresh"
	"github.com/rutterhq/rutter/internal/source/remote"
	"github.com/rutterhq/rutter/internal/source/unpack"
)

// Options configure a Client. Store is required.
type Options struct {
	Store *unpack.Store
	// LookupTimeout and DownloadTimeout end what a registry does not answer.
	LookupTimeout   time.Duration
	DownloadTimeout time.Duration
	// MaxBytes bounds a layer as it is downloaded.
	MaxBytes int64
}

// Client keeps what is known of repositories, so that each is asked as seldom
// as the askers allow, and puts what is fetched into a store. Safe for
// concurrent use.
type Client struct {
	opts      Options
	known     fresh.Table[*repositoryState]
	flights   fresh.Flight[*unpack.Tree]
	lookups   atomic.Int64
	downloads atomic.Int64
}

// NewClient prepares a client.
func NewClient(opts Options) *Client {
	if opts.LookupTimeout <= 0 {
		opts.LookupTimeout = time.Minute
	}
	if opts.DownloadTimeout <= 0 {
		opts.DownloadTimeout = 10 * time.Minute
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 256 << 20
	}
	c := &Client{opts: opts}
	c.known.Most = mostRepositories
	return c
}

// Lookups is how often a registry was asked for tags, or for what one names.
func (c *Client) Lookups() int64 { return c.lookups.Load() }

// Downloads is how many layers were fetched.
func (c *Client) Downloads() int64 { return c.downloads.Load() }

// repositoryState is what is known of a repository as one login sees it.
type repositoryState struct {
	repo      *Repository
	tags      fresh.Answer[[]string]
	refs      fresh.Table[*fresh.Answer[string]]
	manifests fresh.Table[*fresh.Answer[Manifest]]
}

const (
	mostRepositories = 1024
	mostRefs         = 256
)

// Artifact is a repository of a registry for one asker.
type Artifact struct {
	client *Client
	state  *repositoryState
}

// Open finds the credential for a repository. Nothing is asked yet.
func (c *Client) Open(keys *remote.Keyring, address remote.Address, project string) (*Artifact, error) {
	access := keys.Choose(address, project)
	repo, err := Open(keys, address, access)
	if err != nil {
		return nil, err
	}
	state := c.known.Get(address.Identity()+"\x00"+access.Scope()+"\x00"+access.Digest(), func() *repositoryState {
		s := &repositoryState{repo: repo}
		s.refs.Most, s.manifests.Most = mostRefs, mostRefs
		return s
	})
	return &Artifact{client: c, state: state}, nil
}

// Name is the repository for people.
func (a *Artifact) Name() string { return a.state.repo.Address.String() }

// Tags lists the tags, as they were at most age ago.
func (a *Artifact) Tags(ctx context.Context, age time.Duration) ([]string, error) {
	return a.state.tags.Ask(ctx, age, func(ctx context.Context, _ []string, _ bool) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, a.client.opts.LookupTimeout)
		defer cancel()
		a.client.lookups.Add(1)
		return a.state.repo.Tags(ctx)
	})
}

// Digest returns what a tag names, as it was at most age ago.
func (a *Artifact) Digest(ctx context.Context, tag string, age time.Duration) (string, error) {
	answer := a.state.refs.Get(tag, func() *fresh.Answer[string] { return &fresh.Answer[string]{} })
	return answer.Ask(ctx, age, func(ctx context.Context, _ string, _ bool) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, a.client.opts.LookupTimeout)
		defer cancel()
		a.client.lookups.Add(1)
		return a.state.repo.Resolve(ctx, tag)
	})
}

// Newest returns the tag of the version that is wished for, among tags as they
// were at most age ago.
func (a *Artifact) Newest(ctx context.Context, wish Wish, age time.Duration) (string, error) {
	tags, err := a.Tags(ctx, age)
	if err != nil {
		return "", err
	}
	i := wish.Choose(func(yield func(int, string) bool) {
		for i, tag := range tags {
			if !yield(i, VersionOf(tag)) {
				return
			}
		}
	})
	if i < 0 || !IsTag(tags[i]) {
		return "", rutter.Errorf(rutter.CodeNotFound, "%s: none of its %d tags is %s; pre-releases are only taken by a constraint that has one (such as >=1.0.0-0)", a.Name(), len(tags), wish)
	}
	return tags[i], nil
}

// Wanted is the layer of a manifest that is wanted.
type Wanted struct {
	Layer Descriptor
	// Strip leaves out the folder that all of it lies in.
	Strip bool
	// Check, which may be nil, looks at what was unpacked before it is stored.
	Check func(*unpack.Tree) error
}

// Choice picks what is wanted of a manifest; what names that, for errors.
type Choice func(what string, m Manifest) (Wanted, error)

// Tree returns the unfolded layer of the manifest with a digest, or why there
// was none at most age ago.
func (a *Artifact) Tree(ctx context.Context, digest string, age time.Duration, choose Choice) (*unpack.Tree, error) {
	m, err := a.manifest(ctx, digest, age)
	if err != nil {
		return nil, err
	}
	want, err := choose(a.Name()+"@"+digest, m)
	if err != nil {
		return nil, err
	}
	repo := a.state.repo
	form := "whole"
	if want.Strip {
		form = "stripped"
	}
	// The place is part of the key: a registry can name any digest, and must not
	// be handed what another one keeps under it.
	key := strings.Join([]string{"layer", repo.Address.Identity(), repo.access.Scope(), form, want.Layer.Digest}, "\x00")
	if t, ok := a.client.opts.Store.Get(key); ok {
		return t, nil
	}
	return a.client.flights.Do(ctx, key, age, func(ctx context.Context) (*unpack.Tree, error) {
		if t, ok := a.client.opts.Store.Get(key); ok {
			return t, nil
		}
		ctx, cancel := context.WithTimeout(ctx, a.client.opts.DownloadTimeout)
		defer cancel()
		a.client.downloads.Add(1)
		return repo.Unpack(ctx, a.client.opts.Store, key, want, a.client.opts.MaxBytes)
	})
}

// manifest returns the manifest of a digest, which never changes.
func (a *Artifact) manifest(ctx context.Context, digest string, age time.Duration) (Manifest, error) {
	answer := a.state.manifests.Get(digest, func() *fresh.Answer[Manifest] { return &fresh.Answer[Manifest]{} })
	if m, ok := answer.Last(); ok {
		return m, nil
	}
	return answer.Ask(ctx, age, func(ctx context.Context, _ Manifest, _ bool) (Manifest, error) {
		ctx, cancel := context.WithTimeout(ctx, a.client.opts.LookupTimeout)
		defer cancel()
		return a.state.repo.Manifest(ctx, digest)
	})
}

// ChartLayer is the Choice for charts.
func ChartLayer(what string, m Manifest) (Wanted, error) {
	if m.Config.MediaType != HelmConfig {
		return Wanted{}, rutter.Errorf(rutter.CodeInvalid, "%s is no chart: its config is of type %q and not %s", what, m.Config.MediaType, HelmConfig)
	}
	layer, err := m.Pick(what, HelmChart)
	return Wanted{Layer: layer, Strip: true}, err
}

// AnyLayer is the Choice for artifacts: what Argo CD and Flux publish, or a chart.
func AnyLayer(what string, m Manifest) (Wanted, error) {
	if m.Config.MediaType == HelmConfig || slices.ContainsFunc(m.Layers, func(l Descriptor) bool { return l.MediaType == HelmChart }) {
		layer, err := m.Pick(what, HelmChart)
		return Wanted{Layer: layer, Strip: true}, err
	}
	layer, err := m.Pick(what, LayerGzip, Layer, FluxContent)
	return Wanted{Layer: layer}, err
}
