package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cluster"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/policy"
	"github.com/rutterhq/rutter/internal/source/git"
)

// RenderConfig is what RenderApp needs.
type RenderConfig struct {
	App *v1alpha1.Application
	// Local stands folders in for repositories; Offline fetches nothing else.
	Local   Local
	Offline bool
	// KubeVersion and APIVersions are what charts see, unless Cluster names a
	// registered member, by name or server.
	KubeVersion string
	APIVersions []string
	// REST reaches the control plane, for credentials, keys, settings and
	// projects; nil means that there is none.
	REST      *rest.Config
	Namespace string
	Cluster   string
	// Plugins is a folder of ConfigManagementPlugin files, PluginTools are folders
	// with programs for them.
	Plugins     string
	PluginTools []string
	// Explain asks for explanations.
	Explain bool
	Logger  *slog.Logger
}

// RenderApp renders an Application's sources as the controller does, with a
// control plane or without. The explanations are one a source, where asked for.
func RenderApp(ctx context.Context, cfg RenderConfig) (rutter.Manifests, []rutter.Explanation, error) {
	tmp, err := os.MkdirTemp("", "rutter-render-")
	if err != nil {
		return rutter.Manifests{}, nil, fmt.Errorf("make a folder for what is fetched: %w", err)
	}
	defer os.RemoveAll(tmp)
	r := &appRender{cfg: cfg, projects: func(string) (*policy.Project, bool) { return nil, false }}
	if cfg.Logger == nil {
		r.cfg.Logger = slog.New(slog.DiscardHandler)
	}
	defer r.close()
	if err := r.open(ctx, tmp); err != nil {
		return rutter.Manifests{}, nil, err
	}
	return r.render(ctx)
}

// appRender is one call of RenderApp.
type appRender struct {
	cfg       RenderConfig
	rendering *rendering
	// bare reads the bare repositories that stand in for URLs.
	bare     *git.Fetcher
	sources  rutter.Sources
	projects argo.Projects
}

func (r *appRender) open(ctx context.Context, dir string) error {
	rc := renderingConfig{plugins: r.cfg.Plugins, pluginTools: r.cfg.PluginTools, sourceConfig: sourceConfig{dir: dir, submodules: true, logger: r.cfg.Logger},
		fetch: func(s rutter.Sources) rutter.Sources {
			local := localOnly{r.cfg.Local, r.bare}
			if r.cfg.Offline {
				return local
			}
			return localFirst{local, s}
		}}
	var err error
	if r.bare, err = git.New(git.Options{Dir: filepath.Join(dir, "bare"), Logger: r.cfg.Logger}); err != nil {
		return fmt.Errorf("open the mirrors of bare repositories: %w", err)
	}
	if r.rendering, r.sources, err = openRendering(rc); err != nil {
		return err
	}
	if r.cfg.REST == nil {
		return nil
	}
	c, err := NewClient(r.cfg.REST)
	if err != nil {
		return err
	}
	if err := r.rendering.declare(ctx, c, r.cfg.Namespace, r.cfg.Logger); err != nil {
		return err
	}
	if r.projects, err = readProjects(ctx, c, r.cfg.Namespace); err != nil {
		return err
	}
	return r.capabilities(ctx, c)
}

// close releases what open has opened, however far that came.
func (r *appRender) close() {
	if r.rendering != nil {
		_ = r.rendering.Close() // it is thrown away
	}
	if r.bare != nil {
		_ = r.bare.Close() // likewise
	}
}

// capabilities asks the cluster that was named what it serves.
func (r *appRender) capabilities(ctx context.Context, c client.Client) error {
	if r.cfg.Cluster == "" {
		return nil
	}
	members := cluster.New(cluster.Options{Logger: r.cfg.Logger, Sink: deafSink{}})
	defer members.Close()
	if err := errors.Join(members.SetLocal(r.cfg.REST), declareClusters(ctx, c, r.cfg.Namespace, members)); err != nil {
		return err
	}
	target := rutter.Target{Name: r.cfg.Cluster}
	if strings.Contains(r.cfg.Cluster, "://") {
		target = rutter.Target{Server: r.cfg.Cluster}
	}
	member, err := members.Lookup(target)
	if err != nil {
		return fmt.Errorf("find cluster %q: %w", r.cfg.Cluster, err)
	}
	if r.cfg.KubeVersion, r.cfg.APIVersions, err = member.Version(ctx); err != nil {
		return fmt.Errorf("ask cluster %q for its version: %w", r.cfg.Cluster, err)
	}
	return nil
}

func (r *appRender) render(ctx context.Context) (rutter.Manifests, []rutter.Explanation, error) {
	var out rutter.Manifests
	namespace := r.cfg.Namespace
	if namespace == "" || r.cfg.REST == nil {
		namespace = r.cfg.App.Namespace
	}
	projects := r.projects
	if r.cfg.REST == nil {
		projects = nil // there are none to ask
	}
	unit, conditions := argo.ToUnit(r.cfg.App, argo.Config{Namespace: namespace}, projects)
	for _, c := range conditions {
		out.Warnings = append(out.Warnings, c.Message)
	}
	if len(unit.Sources) == 0 {
		return out, nil, unit.Problem
	}
	requests, err := r.requests(ctx, unit)
	if err != nil {
		return out, nil, err
	}
	var explanations []rutter.Explanation
	for i, s := range unit.Sources {
		if s.OnlyRef() {
			continue
		}
		res, err := r.rendering.renderer.Render(ctx, requests[i])
		if err != nil {
			return out, nil, err // it names the place
		}
		out.Objects = append(out.Objects, res.Objects...)
		out.Warnings = append(out.Warnings, res.Warnings...)
		if !r.cfg.Explain {
			continue
		}
		e, err := r.rendering.renderer.Explain(ctx, requests[i], res.Manifests)
		if err != nil {
			return out, nil, err // it names the place
		}
		e.Source = unit.SourceField(i)
		explanations = append(explanations, e)
	}
	return out, explanations, nil
}

// requests resolves all sources and says what is asked of the renderer.
func (r *appRender) requests(ctx context.Context, unit rutter.Unit) ([]rutter.RenderRequest, error) {
	snaps, err := unit.Snapshots(func(repo rutter.Repo) (rutter.Snapshot, error) {
		return r.sources.Snapshot(ctx, repo, rutter.ResolveOptions{}) // it names the repository
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the source
	}
	permit := permitRepo(r.projects)
	out := make([]rutter.RenderRequest, len(unit.Sources))
	for i := range unit.Sources {
		out[i] = unit.Request(i, snaps)
		out[i].KubeVersion, out[i].APIVersions = strings.TrimSpace(r.cfg.KubeVersion), r.cfg.APIVersions
		out[i].Permit = func(repo rutter.Repo) error { return permit(unit.Project, repo) }
	}
	return out, nil
}
