package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/osdir"
	"github.com/rutterhq/rutter/internal/source/git"
)

// Local stands local folders and bare repositories in for URLs, by the
// normalised URL. It implements rutter.Sources and contacts nobody.
type Local map[string]string

var _ rutter.Sources = Local(nil)

// Snapshot implements rutter.Sources. A bare repository is read at its
// revision until ctx ends, an ordinary folder as it is.
func (l Local) Snapshot(ctx context.Context, repo rutter.Repo, opts rutter.ResolveOptions) (rutter.Snapshot, error) {
	dir, ok := l.dir(repo)
	if !ok {
		return nil, rutter.Errorf(rutter.CodeNotFound, "repository %q is not given, and nothing is fetched offline: add --repo %s=DIR", repo.URL, repo.URL)
	}
	if !isBare(dir) {
		return osdir.Open(dir)
	}
	tmp, err := os.MkdirTemp("", "rutter-offline-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the mirror: %w", err)
	}
	f, err := git.New(git.Options{Dir: tmp})
	if err != nil {
		_ = os.RemoveAll(tmp) // it is empty
		return nil, fmt.Errorf("open the repository: %w", err)
	}
	drop := func() {
		_ = f.Close() // nobody reads it any more
		_ = os.RemoveAll(tmp)
	}
	snap, err := bareSnapshot(ctx, f, dir, repo, opts)
	if err != nil {
		drop()
		return nil, err
	}
	context.AfterFunc(ctx, drop)
	return snap, nil
}

// bareSnapshot reads a bare repository through a fetcher.
func bareSnapshot(ctx context.Context, f *git.Fetcher, dir string, repo rutter.Repo, opts rutter.ResolveOptions) (rutter.Snapshot, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", dir, err)
	}
	return f.Snapshot(ctx, rutter.Repo{URL: "file://" + abs, Revision: repo.Revision, TagPrefix: repo.TagPrefix}, opts) // it names the repository
}

// dir is the folder that stands in for a repository.
func (l Local) dir(repo rutter.Repo) (string, bool) {
	dir, ok := l[rutter.NormalizeGitURL(repo.URL)]
	return dir, ok && repo.Kind() == rutter.RepoGit
}

// isBare tells a bare repository from a folder of files.
func isBare(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "HEAD"))
	return err == nil
}

// localOnly is Local with one fetcher for all bare repositories of a run.
type localOnly struct {
	Local

	git *git.Fetcher
}

// Snapshot implements rutter.Sources.
func (s localOnly) Snapshot(ctx context.Context, repo rutter.Repo, opts rutter.ResolveOptions) (rutter.Snapshot, error) {
	dir, ok := s.dir(repo)
	if !ok || !isBare(dir) {
		return s.Local.Snapshot(ctx, repo, opts)
	}
	return bareSnapshot(ctx, s.git, dir, repo, opts)
}

// localFirst reads from folders where they are given, and fetches the rest.
type localFirst struct {
	local localOnly
	rest  rutter.Sources
}

// Snapshot implements rutter.Sources.
func (s localFirst) Snapshot(ctx context.Context, repo rutter.Repo, opts rutter.ResolveOptions) (rutter.Snapshot, error) {
	if _, ok := s.local.dir(repo); ok {
		return s.local.Snapshot(ctx, repo, opts)
	}
	return s.rest.Snapshot(ctx, repo, opts) //nolint:wrapcheck // a pass-through
}

// Resolve implements resolver.
func (s localFirst) Resolve(repo rutter.Repo) (rutter.Repo, error) { return resolve(s.rest, repo) }

// Resolve implements resolver: folders have no names but the URLs they stand for.
func (l Local) Resolve(repo rutter.Repo) (rutter.Repo, error) { return repo, nil }
