package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/render"
	"github.com/rutterhq/rutter/internal/render/osdir"
	"github.com/rutterhq/rutter/internal/source/git"
)

// Local stands local folders and bare repositories in for URLs, by the
// normalised URL. It implements rutter.Sources and contacts nobody.
type Local map[string]string

var _ rutter.Sources = Local(nil)

// Snapshot implements rutter.Sources. A bare repository is read at its
// revision; an ordinary folder as it is.
func (l Local) Snapshot(ctx context.Context, repo rutter.Repo, opts rutter.ResolveOptions) (rutter.Snapshot, error) {
	dir, ok := l[rutter.NormalizeGitURL(repo.URL)]
	if !ok {
		return nil, rutter.Errorf(rutter.CodeNotFound, "repository %q is not given: add --repo %s=DIR", repo.URL, repo.URL)
	}
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err != nil {
		return osdir.Open(dir)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", dir, err)
	}
	tmp, err := os.MkdirTemp("", "rutter-offline-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the mirror: %w", err)
	}
	context.AfterFunc(ctx, func() { os.RemoveAll(tmp) })
	f, err := git.New(git.Options{Dir: tmp})
	if err != nil {
		return nil, fmt.Errorf("open the repository: %w", err)
	}
	return f.Snapshot(ctx, rutter.Repo{URL: "file://" + abs, Revision: repo.Revision}, opts)
}

// RenderConfig is what RenderApp needs.
type RenderConfig struct {
	App         *v1alpha1.Application
	Sources     rutter.Sources
	KubeVersion string
	APIVersions []string
	Logger      *slog.Logger
}

// RenderApp renders an Application's sources without a control plane.
func RenderApp(ctx context.Context, cfg RenderConfig) (rutter.Manifests, error) {
	var out rutter.Manifests
	unit, conditions := argo.ToUnit(cfg.App, argo.Config{Namespace: cfg.App.Namespace}, func(string) (*v1alpha1.AppProject, bool) { return nil, false })
	for _, c := range conditions {
		out.Warnings = append(out.Warnings, c.Message)
	}
	if len(unit.Sources) == 0 {
		return out, unit.Problem
	}
	logger := cfg.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	r := render.New(render.Options{Logger: logger})
	var err error
	snaps, refs := make([]rutter.Snapshot, len(unit.Sources)), map[string]rutter.Snapshot{}
	for i, s := range unit.Sources {
		snaps[i], err = cfg.Sources.Snapshot(ctx, rutter.Repo{URL: s.RepoURL, Revision: s.TargetRevision}, rutter.ResolveOptions{})
		if err != nil {
			return out, err //nolint:wrapcheck // it names the repository
		}
		if s.Ref != "" {
			refs[s.Ref] = snaps[i]
		}
	}
	for i, s := range unit.Sources {
		if s.Ref != "" && s.Path == "" {
			continue
		}
		res, err := r.Render(ctx, rutter.RenderRequest{Source: s, Snapshot: snaps[i], Refs: refs, AppName: unit.ID.Name, Instance: unit.Instance,
			Project: unit.Project, Namespace: unit.Target.Namespace, KubeVersion: strings.TrimSpace(cfg.KubeVersion), APIVersions: cfg.APIVersions})
		if err != nil {
			return out, err
		}
		out.Objects = append(out.Objects, res.Objects...)
		out.Warnings = append(out.Warnings, res.Warnings...)
	}
	return out, nil
}
