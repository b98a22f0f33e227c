package render

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/directory"
	"github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/store"
)

var errTimeout = errors.New("it took too long")

// run lets the tool render, and keeps the result. It does not end with the
// first caller's context, because others may wait for the same render.
func (r *Renderer) run(parent context.Context, j job, req rutter.RenderRequest, refs refs, limits record.Options) (rutter.Manifests, error) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(parent), r.opts.Timeout, errTimeout)
	defer cancel()
	if err := r.slots.Acquire(ctx, 1); err != nil {
		return rutter.Manifests{}, rutter.Errorf(rutter.CodeUnavailable, "render %s: too many renders are waiting: %w", j.path, err)
	}
	r.runs.Add(1)
	repo := record.New(ctx, req.Snapshot, limits)
	env := buildenv.New(req)
	type outcome struct {
		objs     []rutter.Object
		warnings []string
		err      error
	}
	done := make(chan outcome, 1)
	go func() {
		defer r.slots.Release(1)
		var o outcome
		o.objs, o.warnings, o.err = r.tool(ctx, repo, j, req, refs, env)
		done <- o
	}()
	select {
	case <-ctx.Done():
		return rutter.Manifests{}, rutter.Errorf(rutter.CodeInvalid, "render %s with %s: stopped after %s: %w", j.path, j.tool, r.opts.Timeout, context.Cause(ctx))
	case o := <-done:
		if o.err == nil {
			o.err = repo.Err()
		}
		if o.err != nil {
			if stop := repo.Err(); stop != nil {
				o.err = stop // what the tool made of it is of no interest
			}
			return rutter.Manifests{}, failure(j, o.err)
		}
		return r.keep(j, repo.Inputs(), env.Used(), o.objs, o.warnings)
	}
}

// failure says which tool failed where, unless the error names a file itself.
func failure(j job, err error) error {
	if e := (*rutter.Error)(nil); errors.As(err, &e) && e.File != "" {
		return err
	}
	return rutter.Errorf(codeOr(err, rutter.CodeInvalid), "render %s with %s: %w", j.path, j.tool, err)
}

// tool runs one tool; a panic of it is its failure, not ours.
func (r *Renderer) tool(ctx context.Context, repo *record.FS, j job, req rutter.RenderRequest, refs refs, env *buildenv.Env) (objs []rutter.Object, warnings []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.opts.Logger.Error("a render tool panicked", "tool", j.tool, "path", j.path, "panic", p, "stack", string(debug.Stack()))
			err = rutter.Errorf(rutter.CodeInternal, "the tool failed unexpectedly: %v", p)
		}
	}()
	switch j.tool {
	case toolKustomize:
		var opts rutter.KustomizeOptions
		if j.source.Kustomize != nil {
			opts = *j.source.Kustomize
		}
		return r.kustomize.Render(repo, j.path, opts, env)
	case toolHelm:
		in := helm.Input{Repo: repo, Path: j.path, Env: env, AppName: req.AppName, Namespace: req.Namespace,
			KubeVersion: req.KubeVersion, APIVersions: req.APIVersions, Refs: map[string]*record.FS{}}
		if j.source.Helm != nil {
			in.Options = *j.source.Helm
		}
		for i, name := range refs.names {
			in.Refs[name] = repo.Beside(refs.snaps[i], i+1)
		}
		return r.helm.Render(ctx, in)
	}
	opts := directory.Options{MaxBytes: max(r.opts.MaxDirectoryBytes, 0)}
	if j.source.Directory != nil {
		opts.DirectoryOptions = *j.source.Directory
	}
	return directory.Render(repo, j.path, opts)
}

// keep stores a render and returns it.
func (r *Renderer) keep(j job, inputs []rutter.Input, env map[string]string, objs []rutter.Object, warnings []string) (rutter.Manifests, error) {
	blob, err := encode(objs)
	if err != nil {
		return rutter.Manifests{}, fmt.Errorf("encode what %s rendered: %w", j.path, err)
	}
	if int64(len(blob)) > r.opts.MaxOutputBytes {
		return rutter.Manifests{}, rutter.Errorf(rutter.CodeInvalid, "render %s with %s: the objects are larger than %d MiB together", j.path, j.tool, r.opts.MaxOutputBytes>>20)
	}
	inputs = withLook(inputs, j.look)
	m := rutter.Manifests{Objects: objs, Inputs: inputs, SourceType: j.tool, Warnings: slices.Concat(j.warnings, warnings), Digest: store.Digest(blob)}
	r.parsed.put(m.Digest, objs, int64(len(blob)))
	if r.opts.Store != nil {
		r.opts.Store.Put(j.key, store.Render{Inputs: inputs, Env: env, SourceType: j.tool, Warnings: warnings, Digest: m.Digest}, blob)
	}
	return m, nil
}

// withLook adds what deciding on the tool looked at.
func withLook(inputs, look []rutter.Input) []rutter.Input {
	seen := make(map[rutter.Input]bool, len(inputs))
	for _, in := range inputs {
		seen[in] = true
	}
	for _, in := range look {
		if !seen[in] {
			inputs = append(inputs, in)
		}
	}
	return inputs
}
