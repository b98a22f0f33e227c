package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/chart"
	"github.com/rutterhq/rutter/internal/source/git"
	"github.com/rutterhq/rutter/internal/source/oci"
	"github.com/rutterhq/rutter/internal/source/web"
)

// sources are the adapters of all kinds of repository, behind one port.
type sources struct {
	git    *git.Fetcher
	others map[string]source // by kind
	closes []func() error
}

// source is what the adapters have in common.
type source interface {
	rutter.Sources
	SetCredentials(creds []rutter.RepoCredential, trust rutter.RepoTrust)
	Close() error
}

var (
	_ rutter.Sources = (*sources)(nil)
	_ resolver       = (*sources)(nil)
	_ resolver       = noFiles{}
	_ resolver       = localFirst{}
	_ resolver       = Local(nil)
)

// sourceConfig is what the adapters need to know.
type sourceConfig struct {
	// dir holds mirrors and caches; all of it can be fetched again.
	dir        string
	submodules bool
	// permit says whether a project may read a submodule; nil allows all.
	permit func(project string, repo rutter.Repo) error
	logger *slog.Logger
}

// openSources opens all adapters. Close releases them.
func openSources(cfg sourceConfig) (*sources, error) {
	s := &sources{others: map[string]source{}}
	opts := git.Options{Dir: filepath.Join(cfg.dir, "git"), Submodules: cfg.submodules, Logger: cfg.logger}
	if cfg.permit != nil {
		opts.Permit = func(_, sub rutter.Repo) error { return cfg.permit(sub.Project, sub) }
	}
	var err error
	if s.git, err = git.New(opts); err != nil {
		return nil, fmt.Errorf("open the Git mirrors: %w", err)
	}
	s.closes = append(s.closes, s.git.Close)
	for kind, open := range map[string]func() (source, error){
		rutter.RepoHelm: func() (source, error) {
			return chart.New(chart.Options{Dir: filepath.Join(cfg.dir, "charts"), Logger: cfg.logger})
		},
		rutter.RepoOCI: func() (source, error) {
			return oci.New(oci.Options{Dir: filepath.Join(cfg.dir, "artifacts"), Logger: cfg.logger})
		},
		rutter.RepoFile: func() (source, error) {
			return web.New(web.Options{Dir: filepath.Join(cfg.dir, "files"), Logger: cfg.logger})
		},
	} {
		o, err := open()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open the cache of %s sources: %w", kind, err), s.Close())
		}
		s.others[kind] = o
		s.closes = append(s.closes, o.Close)
	}
	return s, nil
}

// Snapshot implements rutter.Sources.
func (s *sources) Snapshot(ctx context.Context, repo rutter.Repo, opts rutter.ResolveOptions) (rutter.Snapshot, error) {
	if other, ok := s.others[repo.Kind()]; ok {
		return other.Snapshot(ctx, repo, opts) //nolint:wrapcheck // it names the repository
	}
	return s.git.Snapshot(ctx, repo, opts) // it names the repository
}

// resolver is what knows the URLs that names of repositories stand for.
type resolver interface {
	Resolve(repo rutter.Repo) (rutter.Repo, error)
}

// Resolve implements resolver: it asks the adapter that would fetch.
func (s *sources) Resolve(repo rutter.Repo) (rutter.Repo, error) {
	if r, ok := s.others[repo.Kind()].(resolver); ok {
		return r.Resolve(repo)
	}
	return repo, nil // it has no names but its URL
}

// resolve asks sources that stand behind others.
func resolve(behind rutter.Sources, repo rutter.Repo) (rutter.Repo, error) {
	if r, ok := behind.(resolver); ok {
		return r.Resolve(repo)
	}
	return repo, nil
}

// SetCredentials gives all of them what the control plane declares.
func (s *sources) SetCredentials(creds []rutter.RepoCredential, trust rutter.RepoTrust) {
	s.git.SetCredentials(creds, trust)
	for _, o := range s.others {
		o.SetCredentials(creds, trust)
	}
}

// Close releases what the adapters hold.
func (s *sources) Close() error {
	var errs []error
	for _, c := range s.closes {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
