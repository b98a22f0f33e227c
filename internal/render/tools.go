package render

import (
	"context"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/directory"
	"github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/record"
)

func (r *Renderer) runKustomize(_ context.Context, repo *record.FS, j job) ([]rutter.Object, []string, error) {
	var opts rutter.KustomizeOptions
	if j.source.Kustomize != nil {
		opts = *j.source.Kustomize
	}
	return r.kustomize.Render(repo, j.path, opts, j.env)
}

func (r *Renderer) runHelm(ctx context.Context, repo *record.FS, j job) ([]rutter.Object, []string, error) {
	j.env.UseCapabilities()
	return r.helm.Render(ctx, r.helmInput(repo, j))
}

// helmInput is what Helm is given.
func (r *Renderer) helmInput(repo *record.FS, j job) helm.Input {
	in := helm.Input{Repo: repo, Path: j.path, Env: j.env, AppName: j.req.AppName, Namespace: j.req.Namespace,
		KubeVersion: j.req.KubeVersion, APIVersions: j.req.APIVersions, Refs: map[string]*record.FS{}}
	if j.source.Helm != nil {
		in.Options = *j.source.Helm
	}
	for i, name := range j.refs.names {
		in.Refs[name] = repo.Beside(j.refs.snaps[i], i+1)
	}
	return in
}

func (r *Renderer) runDirectory(_ context.Context, repo *record.FS, j job) ([]rutter.Object, []string, error) {
	in := directory.Input{Repo: repo, Path: j.path, Env: j.env, MaxBytes: max(r.opts.MaxDirectoryBytes, 0), JsonnetDisabled: j.settings.JsonnetDisabled}
	if j.source.Directory != nil {
		in.Options = *j.source.Directory
	}
	return directory.Render(in)
}

func (r *Renderer) runPlugin(_ context.Context, _ *record.FS, j job) ([]rutter.Object, []string, error) {
	return nil, nil, noPlugin(j.source.Plugin.Name)
}

func (r *Renderer) runCue(context.Context, *record.FS, job) ([]rutter.Object, []string, error) {
	return nil, nil, noPlugin(cueName)
}
