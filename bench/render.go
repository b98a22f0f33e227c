package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render"
	"github.com/rutterhq/rutter/internal/render/store"
	"github.com/rutterhq/rutter/internal/source/git"
)

// The phases of rendering, which need no API server.
const (
	phaseRenderFirst  = "render-first"
	phaseRenderOne    = "render-one"
	phaseRenderBase   = "render-base"
	phaseRenderReadme = "render-readme"
)

// perBase is how many applications share a base.
const perBase = 50

// renderBench is one run over a monorepo of applications with two sources each:
// an overlay of a shared base, and a shared chart with values of its own.
type renderBench struct {
	options

	out      io.Writer
	mono     *fleet
	fetcher  *git.Fetcher
	renderer *render.Renderer
	tools    tools
}

// renderRow is one phase's figures.
type renderRow struct {
	Phase string `json:"phase"`
	MS    int64  `json:"ms"`
	// Renders are the applications for which a tool ran, Runs how often one did.
	Renders int64 `json:"renders"`
	Runs    int64 `json:"tool_runs"`
	// Lookups and Fetches are what was asked of the Git server.
	Lookups int64   `json:"ref_lookups"`
	Fetches int64   `json:"fetches"`
	Peak    float64 `json:"peak_rss_mb"`
	// ProcessMS is what one run of kustomize and one of helm an application would
	// take as processes, measured on a sample in the same run; Ratio is to it.
	ProcessMS int64   `json:"process_ms,omitempty"`
	Sample    int     `json:"sample,omitempty"`
	Ratio     float64 `json:"times_as_fast,omitempty"`
}

func (b *renderBench) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "rutter-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := b.open(ctx, dir); err != nil {
		return err
	}
	defer b.fetcher.Close()
	for _, p := range []struct{ phase, file, content string }{
		{phase: phaseRenderFirst},
		{phaseRenderOne, monoOverlay(0), overlayOf(0, 2)},
		{phaseRenderBase, monoBase(1) + "/all.yaml", baseOf(secondVersion)},
		{phaseRenderReadme, "README.md", "changed\n"},
	} {
		if err := b.phase(ctx, p.phase, p.file, p.content); err != nil {
			return fmt.Errorf("%s: %w", p.phase, err)
		}
	}
	return nil
}

func (b *renderBench) open(ctx context.Context, dir string) error {
	var err error
	if b.tools, err = findTools(); err != nil {
		return err
	}
	if b.mono, err = newMonorepo(ctx, dir, b.apps); err != nil {
		return fmt.Errorf("make the repository: %w", err)
	}
	if b.fetcher, err = git.New(git.Options{Dir: filepath.Join(dir, "mirrors")}); err != nil {
		return fmt.Errorf("open the mirrors: %w", err)
	}
	s, err := store.Open(filepath.Join(dir, "renders"), store.Options{})
	if err != nil {
		return fmt.Errorf("open the render store: %w", err)
	}
	b.renderer = render.New(render.Options{Store: s})
	return nil
}

// phase pushes a change and times what a push costs: the look-up, the fetch,
// and finding out for every application whether it is concerned.
func (b *renderBench) phase(ctx context.Context, phase, file, content string) error {
	if file != "" {
		if err := b.mono.write(file, content); err != nil {
			return err
		}
		if _, err := b.mono.push(ctx, phase); err != nil {
			return err
		}
	}
	stop, err := b.startProfile(phase)
	if err != nil {
		return err
	}
	resetPeak()
	runs, git := b.renderer.Stats().Runs, b.fetcher.Stats()
	began := time.Now()
	snap, err := b.fetcher.Snapshot(ctx, rutter.Repo{URL: b.mono.url(), Revision: "main"}, rutter.ResolveOptions{})
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	concerned, err := b.renderAll(ctx, snap)
	stop()
	if err != nil {
		return err
	}
	took, now := time.Since(began), b.fetcher.Stats()
	r := renderRow{Phase: phase, MS: took.Milliseconds(), Renders: concerned, Runs: b.renderer.Stats().Runs - runs,
		Lookups: now.Lookups - git.Lookups, Fetches: now.Fetches - git.Fetches, Peak: peakMB()}
	if phase == phaseRenderFirst {
		if err := b.compare(ctx, &r, took); err != nil {
			return err
		}
	}
	return b.print(r)
}

// renderAll asks for both sources of every application, as the engine does, and
// returns for how many a tool ran.
func (b *renderBench) renderAll(ctx context.Context, snap rutter.Snapshot) (int64, error) {
	var next, concerned atomic.Int64
	errs := make([]error, runtime.GOMAXPROCS(0)*2)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= b.apps {
					return
				}
				var ran bool
				if ran, errs[w] = b.renderApp(ctx, snap, i); ran {
					concerned.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return concerned.Load(), errors.Join(errs...)
}

func (b *renderBench) renderApp(ctx context.Context, snap rutter.Snapshot, i int) (bool, error) {
	ran := false
	for _, src := range monoSources(i) {
		src.RepoURL, src.TargetRevision = b.mono.url(), "main"
		res, err := b.renderer.Render(ctx, rutter.RenderRequest{Source: src, Snapshot: snap, AppName: appName(i), Instance: appName(i),
			Project: "default", Namespace: appName(i), KubeVersion: "v1.37.2", APIVersions: monoAPIs, Lazy: true})
		if err != nil {
			return ran, err
		}
		ran = ran || !res.Cached
	}
	return ran, nil
}

// compare runs the two tools as processes, once for each application of a sample.
func (b *renderBench) compare(ctx context.Context, r *renderRow, took time.Duration) error {
	r.Sample = min(40, b.apps)
	var total time.Duration
	for k := range r.Sample {
		i := k * b.apps / r.Sample
		began := time.Now()
		if err := b.tools.render(ctx, b.mono.dir, i); err != nil {
			return err
		}
		total += time.Since(began)
	}
	// As many at a time as there are processors, at best.
	all := total.Seconds() * float64(b.apps) / float64(r.Sample) / b.tools.parallel(ctx, b.mono.dir, r.Sample, total)
	r.ProcessMS, r.Ratio = int64(all*1000), round(all/took.Seconds())
	return nil
}

func (b *renderBench) print(r renderRow) error {
	var err error
	if b.json {
		err = json.NewEncoder(b.out).Encode(r)
	} else {
		_, err = fmt.Fprintf(b.out, "%-14s %8.3fs  renders %d (tool runs %d)  ref look-ups %d  fetches %d  peak %.0f MB%s\n", r.Phase, float64(r.MS)/1000,
			r.Renders, r.Runs, r.Lookups, r.Fetches, r.Peak, r.processes())
	}
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func (r renderRow) processes() string {
	if r.Sample == 0 {
		return ""
	}
	return fmt.Sprintf("\n%14s %.1f times as fast as kustomize and helm as processes (%.1fs by a sample of %d)", "", r.Ratio, float64(r.ProcessMS)/1000, r.Sample)
}

// startProfile begins a CPU profile of a phase, where one is asked for.
func (b *renderBench) startProfile(phase string) (stop func(), err error) {
	if b.profile == "" {
		return func() {}, nil
	}
	f, err := os.Create(filepath.Join(b.profile, phase+".pprof"))
	if err != nil {
		return nil, fmt.Errorf("make the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("start the profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close() // a profile that is not whole shows when it is read
	}, nil
}

// resetPeak makes the kernel measure the peak of memory anew.
func resetPeak() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200) // elsewhere the peak is that of the whole run
}

// peakMB is the largest resident size since resetPeak.
func peakMB() float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmHWM:" {
			kb, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				return 0
			}
			return round(kb / 1024)
		}
	}
	return 0
}
