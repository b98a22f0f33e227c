// Command bench times Rutter against the limit of the same machine in the same
// run: a bare loop that sends the same objects to the same kind of API server.
// It prints figures and ratios; how long something may take it doesn't judge.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/rutterhq/rutter/internal/render"
)

// childArgument makes the binary the controller that is measured.
const childArgument = "controller-under-measurement"

func main() {
	os.Exit(mainCode())
}

func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	render.MaybeChild()
	var err error
	if len(os.Args) == 4 && os.Args[1] == childArgument {
		err = controller(ctx, os.Args[2], os.Args[3])
	} else {
		err = measure(ctx, os.Args[1:])
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 2
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// options are the command line.
type options struct {
	apps    int
	render  bool
	plan    bool
	gen     bool
	memory  bool
	edit    bool
	shapes  bool
	objects int
	foreign int
	edits   int
	quiet   time.Duration
	phases  []string
	json    bool
	keep    bool
	profile string
	timeout time.Duration
}

func measure(ctx context.Context, args []string) error {
	ctrl.SetLogger(logr.Discard())
	opts, err := parse(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, opts.timeout, fmt.Errorf("not done after %s (--timeout)", opts.timeout))
	defer cancel()
	if opts.render {
		return (&renderBench{options: opts, out: os.Stdout}).run(ctx)
	}
	if opts.gen {
		return (&generateBench{options: opts, out: os.Stdout}).run(ctx)
	}
	if opts.memory {
		return (&memoryBench{bench: bench{options: opts}, w: os.Stdout}).run(ctx)
	}
	if opts.edit {
		return (&editBench{bench: bench{options: opts}, w: os.Stdout}).run(ctx)
	}
	if opts.shapes {
		return (&shapesBench{bench: bench{options: opts}, w: os.Stdout}).run(ctx)
	}
	if opts.plan {
		return (&planBench{options: opts, out: os.Stdout}).run(ctx)
	}
	return (&bench{options: opts, out: &printer{w: os.Stdout, json: opts.json, apps: opts.apps}}).run(ctx)
}

func parse(args []string) (options, error) {
	var opts options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.IntVar(&opts.apps, "apps", -1, "applications: of three objects each (default 1000), or with --phases render and plan of two sources each (default 2000); with generate they are not synced (default 50000, 100 for each cluster)")
	phases := fs.String("phases", "all", "comma list of "+strings.Join(phaseNames, ", ")+"; all and sync mean all of these; render, plan, generate, memory, edit and shapes are benches of their own")
	fs.IntVar(&opts.objects, "objects", 5000, "with --phases memory and edit: managed objects, in hundreds")
	fs.IntVar(&opts.foreign, "foreign", 100_000, "with --phases memory: objects that Rutter does not manage")
	fs.DurationVar(&opts.quiet, "quiet", time.Minute, "with --phases memory: how long processor time is counted")
	fs.IntVar(&opts.edits, "edits", 200, "with --phases edit: live edits of each sort")
	output := fs.String("o", "table", "table, or json: one line a phase")
	fs.BoolVar(&opts.keep, "keep", false, "keep the folder with the repository, the mirrors, the render store and the API server's data")
	fs.StringVar(&opts.profile, "profile", "", "folder for one CPU profile of the controller a phase, until rest")
	fs.DurationVar(&opts.timeout, "timeout", 30*time.Minute, "give up after this time")
	if err := fs.Parse(args); err != nil {
		return opts, err
	}
	if fs.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q: there are only flags", fs.Arg(0))
	}
	opts.render, opts.plan, opts.gen = *phases == phaseRender, *phases == phasePlan, *phases == phaseGenerate
	opts.memory, opts.edit, opts.shapes = *phases == phaseMemory, *phases == phaseEdit, *phases == phaseShapes
	most := 9999
	if opts.gen {
		most = 100_000
	}
	if opts.apps == -1 { // not said
		switch {
		case opts.gen:
			opts.apps = 50_000
		case opts.render || opts.plan:
			opts.apps = 2000
		default:
			opts.apps = 1000
		}
	}
	if opts.apps < 1 || opts.apps > most || opts.gen && opts.apps%generateDirectories != 0 {
		return opts, fmt.Errorf("--apps %d: from 1 to %d are possible, with generate in hundreds", opts.apps, most)
	}
	if opts.objects < perApp || opts.objects > 100_000 || opts.objects%perApp != 0 || opts.foreign < 1 || opts.foreign > 1_000_000 || opts.edits < 1 || opts.quiet <= 0 {
		return opts, fmt.Errorf("--objects %d --foreign %d --edits %d --quiet %s: objects come in hundreds, and there must be some of each", opts.objects, opts.foreign, opts.edits, opts.quiet)
	}
	if *output != "table" && *output != "json" {
		return opts, fmt.Errorf("-o %s: table and json are possible", *output)
	}
	opts.json = *output == "json"
	if opts.render || opts.plan || opts.gen || opts.memory || opts.edit || opts.shapes {
		return opts, nil
	}
	var err error
	opts.phases, err = parsePhases(*phases)
	return opts, err
}

// The phases, in the order in which they run. Each needs those before it; what
// was not asked for is run and not shown.
const (
	phaseLimit     = "limit"
	phaseSet       = "set-to-applications"
	phaseFirst     = "first-sync"
	phaseChangeOne = "change-one"
	phaseChangeAll = "change-all"
	phaseNoChange  = "no-change"
	// phaseRender stands for the phases of rendering.
	phaseRender = "render"
)

var phaseNames = []string{phaseLimit, phaseSet, phaseFirst, phaseChangeOne, phaseChangeAll, phaseNoChange}

func parsePhases(s string) ([]string, error) {
	var want []string
	for p := range strings.SplitSeq(s, ",") {
		switch p = strings.TrimSpace(p); {
		case p == "all", p == "sync":
			want = append(want, phaseNames...)
		case slices.Contains(phaseNames, p):
			want = append(want, p)
		default:
			return nil, fmt.Errorf("--phases: %q is none of all, sync, render, plan, generate, memory, edit or shapes (alone), %s", p, strings.Join(phaseNames, ", "))
		}
	}
	return want, nil
}

// last tells whether nothing after the phase was asked for.
func (o options) last(phase string) bool {
	return !slices.ContainsFunc(o.phases, func(p string) bool { return slices.Index(phaseNames, p) > slices.Index(phaseNames, phase) })
}
