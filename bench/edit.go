package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// phaseEdit stands for the phases of live edits, a bench of its own.
const phaseEdit = "edit"

// bigObjects are those of the application that is synced beside the edits.
const bigObjects = 500

const bigApp = "big"

// editBench edits live objects by hand, one at a time, and times what a user sees
// of it: the Application turns OutOfSync, or the object is put back. Beside it runs
// a bare loop, in the same run and at the same server, that watches, and patches at
// once what it sees.
type editBench struct {
	bench

	w       io.Writer
	heals   []string // applications that heal themselves
	shows   []string // those that only show
	version int      // of the big application
	syncs   atomic.Int64
	bare    map[string]quantiles
	bigSeen *follower // one of its own: each wakes one waiter
}

// editRow is what the edits of a phase took.
type editRow struct {
	Phase   string `json:"phase"`
	Edits   int    `json:"edits"`
	Objects int    `json:"objects"`
	quantiles
	// Ratio is the median to that of the bare loop in the same circumstances.
	Ratio float64 `json:"ratio_to_bare,omitempty"`
	// Syncs are those of the big application meanwhile.
	Syncs int64 `json:"syncs_meanwhile,omitempty"`
	// CPU is the controller's while the edits went on.
	CPU    float64 `json:"cpu_s"`
	Others float64 `json:"others_cpu_s"`
}

// quantiles are in milliseconds.
type quantiles struct {
	P50 float64 `json:"p50_ms"`
	P90 float64 `json:"p90_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

func quantilesOf(took []time.Duration) quantiles {
	took = slices.Sorted(slices.Values(took))
	at := func(q float64) float64 {
		return round(1000 * took[min(len(took)-1, int(q*float64(len(took))))].Seconds())
	}
	return quantiles{P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: at(1)}
}

func (b *editBench) run(ctx context.Context) error {
	return b.inFolder(ctx, b.stages)
}

func (b *editBench) stages(ctx context.Context) error {
	apps, names := map[string]int{bigApp: bigObjects}, []string{bigApp}
	for i := range b.objects / perApp {
		name := appName(i)
		apps[name], names = perApp, append(names, name)
		if i%2 == 0 {
			b.heals = append(b.heals, name)
		} else {
			b.shows = append(b.shows, name)
		}
	}
	if len(b.shows) == 0 {
		b.shows = b.heals
	}
	var err error
	if b.fleet, err = newLoad(ctx, b.dir, apps); err != nil {
		return fmt.Errorf("make the repository: %w", err)
	}
	if err := b.start(ctx); err != nil {
		return err
	}
	if err := b.declareAll(ctx, names, func(name string) bool { return !slices.Contains(b.shows, name) }); err != nil {
		return err
	}
	b.bigSeen = follow(ctx, b.client)
	loop, err := b.newMirror(ctx)
	if err != nil {
		return err
	}
	b.bare = map[string]quantiles{}
	for _, during := range []string{"idle", "busy"} {
		if err := b.during(ctx, during, loop); err != nil {
			return fmt.Errorf("edits, %s: %w", during, err)
		}
	}
	return nil
}

// during runs the four sorts of edits, in quiet or beside syncs.
func (b *editBench) during(ctx context.Context, circumstances string, loop *mirror) error {
	ended := make(chan error, 1)
	syncing, stop := context.WithCancel(ctx)
	defer stop()
	if circumstances == "busy" {
		go func() { ended <- b.syncOn(syncing) }()
	} else {
		ended <- nil
	}
	for _, sort := range []struct {
		name string
		edit func(ctx context.Context, i int) (time.Duration, error)
	}{
		{"bare-verdict", loop.verdict}, {"edit-verdict", b.verdict}, {"bare-repair", loop.repair}, {"edit-repair", b.repair},
	} {
		if err := b.edits(ctx, sort.name, circumstances, sort.edit); err != nil {
			return fmt.Errorf("%s: %w", sort.name, err)
		}
	}
	stop()
	return <-ended
}

// editPause lies between two edits, so that each finds what was before it done.
const editPause = 50 * time.Millisecond

func (b *editBench) edits(ctx context.Context, name, circumstances string, edit func(context.Context, int) (time.Duration, error)) error {
	began, err := b.begin(ctx, name+"-"+circumstances)
	if err != nil {
		return err
	}
	syncs := b.syncs.Load()
	var took []time.Duration
	for i := range b.bench.edits {
		d, err := edit(ctx, i)
		if err != nil {
			return err
		}
		took = append(took, d)
		if err := b.child.pause(ctx, editPause); err != nil {
			return fmt.Errorf("edit: %w", err)
		}
	}
	now, err := b.count(ctx)
	if err != nil {
		return err
	}
	if b.profile != "" {
		if err := b.child.profile(""); err != nil {
			return err
		}
	}
	r := editRow{Phase: name + "-" + circumstances, Edits: len(took), Objects: b.objects, quantiles: quantilesOf(took), Syncs: b.syncs.Load() - syncs,
		CPU: round(now.cpu - began.cpu), Others: round(now.since(began).others())}
	if sort, ok := strings.CutPrefix(name, "bare-"); ok {
		b.bare[sort] = r.quantiles
	} else if bare := b.bare[strings.TrimPrefix(name, "edit-")]; bare.P50 > 0 {
		r.Ratio = round(r.P50 / bare.P50)
	}
	return b.print(r)
}

// verdict edits an object of an application that does not heal itself, times until
// its Application says so, and undoes the edit.
func (b *editBench) verdict(ctx context.Context, i int) (time.Duration, error) {
	o := b.editedOf(b.shows, i)
	began := time.Now()
	if err := o.patch(ctx, b.client, o.edited); err != nil {
		return 0, err
	}
	if err := b.seen.await(ctx, b.child, []string{o.app}, func(s seen) bool { return s.sync == "OutOfSync" }); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if err := o.patch(ctx, b.client, o.declared); err != nil {
		return 0, err
	}
	return took, b.seen.await(ctx, b.child, []string{o.app}, func(s seen) bool { return s.sync == "Synced" })
}

// repair edits an object of an application that heals itself, and times until it
// is as declared again.
func (b *editBench) repair(ctx context.Context, i int) (time.Duration, error) {
	return b.editedOf(b.heals, i).repaired(ctx, b.client)
}

// syncOn changes all objects of the big application again and again until ctx
// ends, and waits each time until it is Synced. The last sync is carried to its end.
func (b *editBench) syncOn(ctx context.Context) error {
	whole := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		b.version++
		content := strings.NewReplacer("level: info", fmt.Sprintf("level: info%d", b.version), "value: info", fmt.Sprintf("value: info%d", b.version),
			"port: 80", fmt.Sprintf("port: %d", 80+b.version)).Replace(mixed(bigApp, bigObjects))
		if err := b.fleet.write("apps/"+bigApp+"/all.yaml", content); err != nil {
			return err
		}
		commit, err := b.fleet.push(whole, fmt.Sprint("version ", b.version))
		if err != nil {
			return err
		}
		if err := b.child.pushed(whole, b.fleet.url()); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(whole, 5*time.Minute)
		err = b.bigSeen.await(limited, b.child, []string{bigApp}, func(s seen) bool { return s.syncedAt(commit) })
		cancel()
		if err != nil {
			return err
		}
		b.syncs.Add(1)
	}
	return nil
}

func (b *editBench) print(r editRow) error {
	var err error
	if b.json {
		err = json.NewEncoder(b.w).Encode(r)
	} else {
		more := ""
		if r.Ratio > 0 {
			more = fmt.Sprintf("  %.2f times the bare loop", r.Ratio)
		}
		if r.Syncs > 0 {
			more += fmt.Sprintf("  during %d syncs of %d objects", r.Syncs, bigObjects)
		}
		_, err = fmt.Fprintf(b.w, "%-18s %d edits among %d objects  p50 %7.1f  p90 %7.1f  p99 %7.1f  max %7.1f ms%s  (cpu %.1fs, others %.1fs)\n",
			r.Phase, r.Edits, r.Objects, r.P50, r.P90, r.P99, r.Max, more, r.CPU, r.Others)
	}
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
