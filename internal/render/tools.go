package render

import (
	"context"
	"io/fs"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/cue"
	"github.com/rutterhq/rutter/internal/render/directory"
	"github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/plugin"
	"github.com/rutterhq/rutter/internal/render/record"
)

func (r *Renderer) runKustomize(ctx context.Context, repo *record.FS, j job) ([]rutter.Object, []string, error) {
	in := kustomize.Input{Repo: repo, Path: j.path, Build: j.settings.Kustomize[j.version()], Env: j.env, Project: j.req.Project,
		KubeVersion: j.req.KubeVersion, APIVersions: j.req.APIVersions,
		Inflate: func(ctx context.Context, c kustomize.Chart) ([]rutter.Object, error) { return r.inflate(ctx, j, c) }}
	if j.source.Kustomize != nil {
		in.Options = *j.source.Kustomize
	}
	return r.kustomize.Render(ctx, in)
}

func (r *Renderer) runHelm(ctx context.Context, repo *record.FS, j job) ([]rutter.Object, []string, error) {
	return r.helm.Render(ctx, r.helmInput(repo, j))
}

// helmInput is what Helm is given.
func (r *Renderer) helmInput(repo *record.FS, j job) helm.Input {
	in := helm.Input{Repo: repo, Path: j.path, Env: j.env, Project: j.req.Project, AppName: j.req.AppName, Namespace: j.req.Namespace,
		KubeVersion: j.req.KubeVersion, APIVersions: j.req.APIVersions, ValuesFileSchemes: j.settings.ValuesFileSchemes, Refs: map[string]*record.FS{}}
	if j.source.Helm != nil {
		in.Options = *j.source.Helm
	}
	for i, name := range j.refs.names {
		in.Refs[name] = repo.Beside(j.refs.snaps[i], i+1)
	}
	return in
}

func (r *Renderer) runDirectory(_ context.Context, repo *record.FS, j job) ([]rutter.Object, []string, error) {
	in := directory.Input{Repo: repo, Path: j.path, Env: j.env, MaxBytes: max(r.directoryLimit(j), 0), JsonnetDisabled: j.settings.JsonnetDisabled, Pool: r.opts.Isolated}
	if j.source.Directory != nil {
		in.Options = *j.source.Directory
	}
	return directory.Render(in) //nolint:contextcheck // the repository of in carries it
}

func (r *Renderer) runPlugin(ctx context.Context, repo *record.FS, j job) ([]rutter.Object, []string, error) {
	if j.plugin.Network {
		j.env.Use(buildenv.Hour) // what the network answers is no input, and not the same for ever
	}
	return r.opts.Plugins.Render(ctx, j.plugin, pluginInput(repo, j))
}

func pluginInput(repo *record.FS, j job) plugin.Input {
	links, _ := j.req.Snapshot.(fs.ReadLinkFS)
	return plugin.Input{Repo: repo, Links: links, Path: j.path, Options: j.source.Plugin, Env: j.env, KubeVersion: j.req.KubeVersion, APIVersions: j.req.APIVersions}
}

func (r *Renderer) runCue(_ context.Context, repo *record.FS, j job) ([]rutter.Object, []string, error) {
	in := cue.Input{Repo: repo, Path: j.path, Env: j.env, Pool: r.opts.Isolated}
	if j.source.Plugin != nil {
		in.Options = *j.source.Plugin
	}
	return cue.Render(in)
}
