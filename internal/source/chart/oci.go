package chart

import (
	"context"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/registry"
	"github.com/rutterhq/rutter/internal/source/remote"
)

// fromRegistry reads a chart whose versions are the tags of a repository.
func (r request) fromRegistry(ctx context.Context) (rutter.Snapshot, error) {
	group, err := remote.ParseRegistry(r.repo.URL)
	if err != nil {
		return nil, err
	}
	// In a registry a chart may lie deeper: each part of its name is one.
	for part := range strings.SplitSeq(r.repo.Chart, "/") {
		if err := checkName(part); err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s: %w", group, err)
		}
	}
	address, err := remote.ParseRegistry(group.Join(r.repo.Chart).String())
	if err != nil {
		return nil, err
	}
	a, err := r.registry.Open(r.keys, address, r.repo.Project)
	if err != nil {
		return nil, err
	}
	tag, digest, err := r.find(ctx, a)
	if err != nil {
		return nil, err
	}
	return pull(ctx, a, digest, registry.VersionOf(tag), r.age)
}

// find returns the tag of the version that is wished for, and what it names. An
// exact version needs no list.
func (r request) find(ctx context.Context, a *registry.Artifact) (tag, digest string, err error) {
	exact := r.wish.Exact()
	for i, version := range exact {
		tag = registry.TagOf(version)
		digest, err = a.Digest(ctx, tag, r.age)
		if err == nil || rutter.CodeOf(err) != rutter.CodeNotFound || i == len(exact)-1 {
			return tag, digest, err
		}
	}
	if tag, err = a.Newest(ctx, r.wish, r.age); err != nil {
		return "", "", err
	}
	digest, err = a.Digest(ctx, tag, r.age)
	return tag, digest, err
}

func pull(ctx context.Context, a *registry.Artifact, digest, version string, age time.Duration) (rutter.Snapshot, error) {
	tree, err := a.Tree(ctx, digest, age, func(what string, m registry.Manifest) (registry.Wanted, error) {
		want, err := registry.ChartLayer(what, m)
		want.Check = checkChart
		return want, err
	})
	if err != nil {
		return nil, err
	}
	return tree.Snapshot("chart "+a.Name(), version), nil
}

// fromLink reads a chart that an index says is in a registry: oci://host/path:tag.
// The login is the one registered for that registry, not the index's.
func (r request) fromLink(ctx context.Context, link, version string) (rutter.Snapshot, error) {
	at := strings.LastIndexByte(link, ':')
	if at <= strings.LastIndexByte(link, '/') {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: the index has %q as its address, which has no tag", r.title(version), remote.Conceal(link))
	}
	address, err := remote.ParseRegistry(link[:at])
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: the index has an address that cannot be used: %w", r.title(version), err)
	}
	a, err := r.registry.Open(r.keys, address, r.repo.Project)
	if err != nil {
		return nil, err
	}
	digest, err := a.Digest(ctx, link[at+1:], r.age)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeOf(err), "%s: %w", r.title(version), err)
	}
	return pull(ctx, a, digest, version, r.age)
}
