package render

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/plugin"
	"github.com/rutterhq/rutter/internal/render/record"
)

// job is one render, decided but not run yet.
type job struct {
	tool     string
	reason   string // why this tool
	path     string
	source   rutter.Source // with the repository's overrides
	settings rutter.RenderSettings
	req      rutter.RenderRequest
	refs     refs
	plugin   plugin.Definition // of toolPlugin
	env      *buildenv.Env
	key      string         // of the declaration
	own      string         // of the declaration by this application
	look     []rutter.Input // what deciding looked at
}

// prepare decides what is rendered by which tool.
func (r *Renderer) prepare(ctx context.Context, repo *record.FS, req rutter.RenderRequest, env *buildenv.Env) (job, error) {
	j := job{source: req.Source, req: req, refs: newRefs(req.Refs), env: env, settings: *r.settings.Load()}
	var err error
	if len(req.Source.Unsupported) > 0 {
		return j, rutter.Errorf(rutter.CodeUnsupported, "%s: not acted on yet, and without it the result would be another: remove it from the source", strings.Join(req.Source.Unsupported, ", "))
	}
	if j.path, err = appPath(repo, req.Source.Path); err != nil {
		return j, err
	}
	if j.source, err = override(repo, j.path, req.Instance, j.source); err != nil {
		return j, err
	}
	if j.tool, j.reason, err = r.detect(ctx, repo, &j); err != nil {
		return j, err
	}
	j.look = repo.Inputs()
	j.key, j.own = r.key(j)
	return j, nil
}

// environment is the build environment of a request, and what else a result
// may depend on. What the cluster serves is a long list; its digest is computed
// once a list. What a key has opened is for its project, and for as long as the
// project has the key.
func (r *Renderer) environment(req rutter.RenderRequest) *buildenv.Env {
	env := buildenv.New(req)
	env.Note(buildenv.Capabilities, func() string { return r.capabilities.of(req.KubeVersion, req.APIVersions) })
	env.Note(buildenv.Keys, func() string { return req.Project + " " + r.generation() })
	env.Note(buildenv.Owner, func() string { return req.Project + " " + req.Instance + " " + req.Namespace })
	env.Note(buildenv.Hour, func() string { return r.opts.Now().UTC().Truncate(time.Hour).Format(time.RFC3339) })
	return env
}

// appPath checks the source's path (reference 1.2, repository safety).
func appPath(repo *record.FS, p string) (string, error) {
	if path.IsAbs(p) {
		return "", rutter.Errorf(rutter.CodeInvalid, "path: %q must be relative to the root of the repository", p)
	}
	clean, err := record.Clean(path.Clean(p))
	if err != nil {
		return "", rutter.Errorf(rutter.CodeInvalid, "path: %w", err)
	}
	info, err := repo.Stat(clean)
	switch {
	case err == nil && info.IsDir():
		return clean, nil
	case err == nil:
		return "", rutter.Errorf(rutter.CodeInvalid, "path: %s: app path is not a directory", clean)
	case record.IsAbsent(err):
		return "", rutter.Errorf(rutter.CodeNotFound, "path: %s: app path does not exist", clean)
	}
	return "", fmt.Errorf("look up path %s: %w", clean, err)
}
