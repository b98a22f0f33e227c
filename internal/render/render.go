// Package render turns a source into objects. It finds out which tool renders
// it, runs the tool on a recording view of the snapshot, and keeps the result
// with the inputs it was made from; where all inputs of a known render are
// unchanged, no tool runs.
//
// Ring: adapter (render). It is the only package that knows all render tools;
// they do not know each other.
package render

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/isolate"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/plugin"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/store"
)

// Options adjusts a Renderer. Zero values mean the defaults.
type Options struct {
	// Store keeps renders between runs; nil means that only memory is used.
	Store  *store.Store
	Logger *slog.Logger
	// Sources finds what a source names elsewhere: a chart's dependency, a remote
	// base, a values file. Nil means that nothing is fetched.
	Sources rutter.Sources
	// Decrypter opens what SOPS has sealed; nil means that it stays an error.
	Decrypter rutter.Decrypter

	// Plugins render what the built-in tools do not; nil means that there are none.
	Plugins *plugin.Renderer
	// Isolated evaluates Jsonnet and CUE in children; nil evaluates in this process,
	// where a hostile program cannot be stopped. See MaybeChild.
	Isolated *isolate.Pool

	// Timeout ends one render; default 60 s.
	Timeout time.Duration
	// MaxReads and MaxReadBytes bound what one render reads; defaults 50,000 and 256 MiB.
	MaxReads     int
	MaxReadBytes int64
	// MaxOutputBytes bounds what one render makes; default 64 MiB.
	MaxOutputBytes int64
	// MaxDirectoryBytes bounds the files of a plain directory; default 10 MB,
	// negative means no limit (reference 1.4).
	MaxDirectoryBytes int64
	// MaxParsedBytes bounds the manifests that are kept parsed in memory,
	// measured as JSON; default 8 MiB, which is several times that in memory.
	MaxParsedBytes int64
	// Now is the time; default time.Now.
	Now func() time.Time
	// Parallel is how many tools run at one time; default one a processor.
	Parallel int
}

// Stats counts since the start.
type Stats struct {
	// Runs is how often a tool ran, Hits how often a known render answered.
	Runs, Hits int64
}

// Renderer implements rutter.Renderer. It is safe for concurrent use.
//
// The objects in what it returns are shared by all who ask for the same
// manifests and must not be changed: copy first.
type Renderer struct {
	opts      Options
	tools     string // the versions of the tools, a part of every key
	parsed    *parsedCache
	failures  *failures
	settings  atomic.Pointer[rutter.RenderSettings]
	digestKey []byte

	capabilities digests

	flights   singleflight.Group
	slots     *semaphore.Weighted
	orphans   orphans
	kustomize *kustomize.Renderer
	helm      *helm.Renderer

	runs, hits atomic.Int64
}

var _ rutter.Renderer = (*Renderer)(nil)

// New returns a Renderer.
func New(opts Options) *Renderer {
	def(&opts.Timeout, time.Minute)
	def(&opts.MaxReads, 50_000)
	def(&opts.MaxReadBytes, 256<<20)
	def(&opts.MaxOutputBytes, 64<<20)
	def(&opts.MaxDirectoryBytes, 10_000_000)
	def(&opts.MaxParsedBytes, 8<<20)
	def(&opts.Parallel, runtime.GOMAXPROCS(0))
	if opts.Now == nil {
		opts.Now = time.Now //nolint:forbidigo // the default of what is injected
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Renderer{
		opts:      opts,
		tools:     toolVersions(),
		parsed:    newParsedCache(opts.MaxParsedBytes),
		failures:  newFailures(opts.Now),
		digestKey: newDigestKey(),
		slots:     semaphore.NewWeighted(int64(opts.Parallel)),
		kustomize: kustomize.New(),
		helm:      helm.New(helm.Limits{MaxOutputBytes: opts.MaxOutputBytes}),
	}
	r.settings.Store(&rutter.RenderSettings{})
	return r
}

// Set replaces what the operator sets for all renders. What was rendered under
// other settings is not used any more where they matter.
func (r *Renderer) Set(s rutter.RenderSettings) { r.settings.Store(&s) }

// generation is that of the decryption keys.
func (r *Renderer) generation() string {
	if r.opts.Decrypter == nil {
		return ""
	}
	return r.opts.Decrypter.Generation()
}

func def[T int | int64 | time.Duration](v *T, fallback T) {
	if *v == 0 {
		*v = fallback
	}
}

// Stats returns the counters.
func (r *Renderer) Stats() Stats { return Stats{Runs: r.runs.Load(), Hits: r.hits.Load()} }

// Render implements rutter.Renderer. A panic of a library, wherever it happens,
// is that one render's failure.
func (r *Renderer) Render(ctx context.Context, req rutter.RenderRequest) (res rutter.RenderResult, err error) {
	defer r.recovered(req, &err)
	env := r.environment(req)
	job, err := r.prepare(ctx, record.New(ctx, req.Snapshot, r.reach(req, env, nil)), req, env)
	if err != nil {
		return rutter.RenderResult{}, err
	}
	if m, ok := r.known(ctx, job); ok {
		r.hits.Add(1)
		return rutter.RenderResult{Manifests: m, Cached: true}, nil
	}
	if err := r.failures.get(job.own, func(f failed) bool { return r.failsAgain(ctx, job, f) }); err != nil {
		r.hits.Add(1)
		return rutter.RenderResult{}, err
	}
	ran := false
	done := r.flights.DoChan(job.flight(r), func() (m any, err error) {
		defer r.recovered(req, &err)
		ran = true
		return r.run(ctx, job)
	})
	select {
	case <-ctx.Done():
		return rutter.RenderResult{}, rutter.Errorf(rutter.CodeUnavailable, "render %s: %w", job.path, context.Cause(ctx))
	case res := <-done:
		if res.Err != nil {
			return rutter.RenderResult{}, res.Err
		}
		m, _ := res.Val.(rutter.Manifests)
		return rutter.RenderResult{Manifests: m, Cached: !ran}, nil
	}
}

// recovered turns a panic into the error of the one render.
func (r *Renderer) recovered(req rutter.RenderRequest, err *error) {
	if p := recover(); p != nil {
		r.opts.Logger.Error("a render panicked", "path", req.Source.Path, "panic", p, "stack", string(debug.Stack()))
		*err = rutter.Errorf(rutter.CodeInternal, "render %s: failed unexpectedly: %v", req.Source.Path, p)
	}
}

// Load returns the manifests with a digest, as an earlier Render returned
// them; only Objects and Digest are set. CodeNotFound when they are no longer
// kept: render again.
func (r *Renderer) Load(digest string) (rutter.Manifests, error) {
	objs, err := r.objects(digest)
	if err != nil {
		return rutter.Manifests{}, err
	}
	return rutter.Manifests{Objects: objs, Digest: digest}, nil
}
