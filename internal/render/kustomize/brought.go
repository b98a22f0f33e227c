package kustomize

import (
	"context"
	"errors"
	"path"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
)

// errLater stops a build that asks for something which is not brought in yet.
var errLater = errors.New("it has to be brought in first")

// brought is what one render has brought in, or what came of trying. While the
// library builds, it only answers from memory and notes what is wanted; that is
// brought in between two builds.
type brought struct {
	in     *Input
	views  map[string]outcome[*record.FS]
	charts map[string]outcome[[]rutter.Object]
	// wanted are what the last build has asked for in vain.
	wanted []func(ctx context.Context)
	// asked are the keys of wanted.
	asked map[string]bool
}

type outcome[T any] struct {
	value T
	err   error
}

func newBrought(in *Input) *brought {
	return &brought{in: in, views: map[string]outcome[*record.FS]{}, charts: map[string]outcome[[]rutter.Object]{}, asked: map[string]bool{}}
}

// wanting reports whether the last build has asked in vain.
func (b *brought) wanting() bool { return len(b.wanted) > 0 }

// bring brings in what is wanted.
func (b *brought) bring(ctx context.Context) {
	wanted := b.wanted
	b.wanted = nil
	clear(b.asked)
	for _, get := range wanted {
		get(ctx)
	}
}

func (b *brought) want(key string, get func(ctx context.Context)) {
	if !b.asked[key] {
		b.asked[key] = true
		b.wanted = append(b.wanted, get)
	}
}

// repository returns a view of another repository, or errLater.
func (b *brought) repository(repo rutter.Repo) (*record.FS, error) {
	key := repo.Key()
	if o, ok := b.views[key]; ok {
		return o.value, o.err
	}
	b.want("repository "+key, func(context.Context) { _, _ = b.fetch(repo) })
	return nil, errLater
}

// fetch is the only way to another repository.
func (b *brought) fetch(repo rutter.Repo) (*record.FS, error) {
	key := repo.Key()
	o, ok := b.views[key]
	switch {
	case ok:
		return o.value, o.err
	case b.in.Flux != nil && b.in.Flux.NoRemoteBases:
		o.err = rutter.Errorf(rutter.CodeForbidden, "remote bases are off (--no-remote-bases): copy it into the repository and name its path")
	case len(b.views) >= maxRemotes:
		o.err = rutter.Errorf(rutter.CodeInvalid, "more than %d repositories and files are fetched for one kustomization", maxRemotes)
	default:
		o.value, o.err = b.in.Repo.Remote(repo)
	}
	b.views[key] = o
	return o.value, o.err
}

// objects returns what a chart renders, or errLater.
func (b *brought) objects(key string, c Chart) ([]rutter.Object, error) {
	if o, ok := b.charts[key]; ok {
		return o.value, o.err
	}
	b.want("chart "+key, func(ctx context.Context) {
		objs, err := b.in.Inflate(ctx, c)
		b.charts[key] = outcome[[]rutter.Object]{objs, err}
	})
	return nil, errLater
}

// download returns a file on the web at once.
func (b *brought) download(address string) ([]byte, error) {
	view, err := b.fetch(webFile(address, b.in.Project))
	if err != nil {
		return nil, err
	}
	return onlyFile(view, address)
}

// webFile names a file on the web.
func webFile(address, project string) rutter.Repo {
	return rutter.Repo{URL: address, File: true, Project: project}
}

// onlyFile reads the one file that a view of a file on the web holds.
func onlyFile(view *record.FS, address string) ([]byte, error) {
	found, err := view.ReadDir(".")
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "read %s: %w", printable(address), err)
	}
	for _, e := range found {
		if e.IsDir() {
			continue
		}
		data, err := view.ReadFile(e.Name())
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeUnavailable, "read %s: %w", path.Base(address), err)
		}
		return data, nil
	}
	return nil, rutter.Errorf(rutter.CodeNotFound, "%s is empty", printable(address))
}
