package render

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/store"
)

var errTimeout = errors.New("it took too long")

// pluginTimeout is more than the sum of the limits of a plugin's commands, each
// of which the sandbox ends by itself.
const pluginTimeout = 5 * time.Minute

// reach is what a render may read. sh is nil while nothing runs yet.
func (r *Renderer) reach(req rutter.RenderRequest, env *buildenv.Env, sh *shift) record.Options {
	o := record.Options{
		Limits: record.Limits{Reads: r.opts.MaxReads, Bytes: r.opts.MaxReadBytes},
		Fetch:  r.fetcher(req), Lookup: req.Lookup, HashKey: r.digestKey,
	}
	if sh != nil {
		fetch := o.Fetch
		o.Fetch = func(ctx context.Context, repo rutter.Repo) (snap rutter.Snapshot, err error) {
			if stopped := sh.aside(ctx, func() { snap, err = fetch(ctx, repo) }); stopped != nil && err == nil {
				err = rutter.Errorf(rutter.CodeUnavailable, "fetch %s: %w", repo.Key(), stopped)
			}
			return snap, err
		}
	}
	if d := r.opts.Decrypter; d != nil {
		o.Decrypt = func(ctx context.Context, name string, data []byte) ([]byte, bool, error) {
			plain, sealed, err := d.Decrypt(ctx, req.Project, name, data)
			if sealed || err != nil {
				env.Use(buildenv.Keys)
			}
			return plain, sealed, err //nolint:wrapcheck // it names the file
		}
	}
	return o
}

// run lets the tool render, and keeps the result. It does not end with the
// first caller's context, because others may wait for the same render.
func (r *Renderer) run(parent context.Context, j job) (rutter.Manifests, error) {
	if !r.orphans.enter(j.own) {
		return rutter.Manifests{}, rutter.Errorf(rutter.CodeUnavailable, "render %s with %s: the last run was stopped and has not ended yet", j.path, j.tool)
	}
	limit := r.opts.Timeout
	if j.tool == toolPlugin {
		limit = max(limit, pluginTimeout)
	}
	ctx, sh, err := begin(context.WithoutCancel(parent), r.slots, limit)
	if err != nil {
		r.orphans.leave(j.own)
		return rutter.Manifests{}, rutter.Errorf(rutter.CodeUnavailable, "render %s: too many renders are waiting: %w", j.path, err)
	}
	r.runs.Add(1)
	repo := record.New(ctx, j.req.Snapshot, r.reach(j.req, j.env, sh))
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		o.objs, o.warnings, o.err = r.tool(ctx, repo, j)
		r.orphans.leave(j.own)
		done <- o
		sh.stop(context.Canceled)
	}()
	select {
	case o := <-done:
		return r.settle(ctx, j, repo, o)
	case <-ctx.Done():
	}
	select {
	case o := <-done: // it has ended in the same moment
		return r.settle(ctx, j, repo, o)
	default:
	}
	if sh.fetching() || repo.Passing() {
		return rutter.Manifests{}, rutter.Errorf(rutter.CodeUnavailable, "render %s with %s: stopped after %s, while it waited for others: %w", j.path, j.tool, limit, context.Cause(ctx))
	}
	err = rutter.Errorf(rutter.CodeInvalid, "render %s with %s: stopped after %s: %w", j.path, j.tool, limit, context.Cause(ctx))
	// What the tool read so far is being written still; the revision stands for it.
	r.failures.put(j.own, failed{env: j.revision(), until: r.opts.Now().Add(timeoutCache), err: err})
	return rutter.Manifests{}, err
}

// outcome is what a tool has made.
type outcome struct {
	objs     []rutter.Object
	warnings []string
	err      error
}

// settle keeps what came out, or why nothing did when that lies in the inputs.
func (r *Renderer) settle(ctx context.Context, j job, repo *record.FS, o outcome) (rutter.Manifests, error) {
	if stop := repo.Err(); stop != nil {
		o.err = stop // what the tool made of it is of no interest
	}
	if o.err == nil {
		o.objs, o.err = r.unseal(context.WithoutCancel(ctx), repo, j, o.objs)
	}
	if o.err == nil {
		return r.keep(j, repo, o.objs, o.warnings)
	}
	err := failure(j, o.err)
	if ofInput(o.err) && !repo.Passing() {
		r.failures.put(j.own, failed{inputs: withLook(repo.Inputs(), j.look), env: j.env.Used(), err: err})
	}
	return rutter.Manifests{}, err
}

// failure says which tool failed where, unless the error names a file itself.
func failure(j job, err error) error {
	if e := (*rutter.Error)(nil); errors.As(err, &e) && e.File != "" {
		return err
	}
	return rutter.Errorf(codeOr(err, rutter.CodeInvalid), "render %s with %s: %w", j.path, j.tool, err)
}

// tool runs one tool; a panic of it is its failure, not ours.
func (r *Renderer) tool(ctx context.Context, repo *record.FS, j job) (objs []rutter.Object, warnings []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.opts.Logger.Error("a render tool panicked", "tool", j.tool, "path", j.path, "panic", p, "stack", string(debug.Stack()))
			err = rutter.Errorf(rutter.CodeInternal, "the tool failed unexpectedly: %v", p)
		}
	}()
	switch j.tool {
	case toolKustomize:
		return r.runKustomize(ctx, repo, j)
	case toolHelm:
		return r.runHelm(ctx, repo, j)
	case toolPlugin:
		return r.runPlugin(ctx, repo, j)
	case toolCue:
		return r.runCue(ctx, repo, j)
	}
	return r.runDirectory(ctx, repo, j)
}

// keep stores a render and returns it.
func (r *Renderer) keep(j job, repo *record.FS, objs []rutter.Object, warnings []string) (rutter.Manifests, error) {
	blob, err := encode(objs)
	if err != nil {
		return rutter.Manifests{}, fmt.Errorf("encode what %s rendered: %w", j.path, err)
	}
	if int64(len(blob)) > r.opts.MaxOutputBytes {
		return rutter.Manifests{}, rutter.Errorf(rutter.CodeInvalid, "render %s with %s: the objects are larger than %d MiB together", j.path, j.tool, r.opts.MaxOutputBytes>>20)
	}
	secret := repo.IsSecret()
	if secret { // a password that chance has made for one application is no other's
		j.env.Use(buildenv.Owner)
	}
	m := rutter.Manifests{Objects: objs, Inputs: withLook(repo.Inputs(), j.look), SourceType: j.tool, Warnings: warnings, Digest: r.digest(blob, secret)}
	r.parsed.Put(m.Digest, objs, int64(len(blob)))
	r.failures.drop(j.own)
	if r.opts.Store != nil {
		known := store.Render{Inputs: m.Inputs, Env: j.env.Used(), SourceType: j.tool, Warnings: warnings, Digest: m.Digest, Sealed: secret}
		if variants := r.opts.Store.Put(j.key, known, blob); variants > 1 { // those of others must not push it out
			r.opts.Store.Remember(j.own, known)
		}
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
