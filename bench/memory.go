package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// phaseMemory stands for the phases of memory and cost, a bench of its own.
const phaseMemory = "memory"

const (
	// perApp is how many objects an application of a load has.
	perApp = 100
	// churnRate is how many foreign objects change in a second.
	churnRate = 100
	// memoryWindows are how often foreign objects rest and change by turns.
	memoryWindows = 6
)

// memoryBench shows what Rutter needs for what it manages, and for what it does
// not: each figure is the difference of two controllers in the same run, which
// differ in nothing but the objects.
type memoryBench struct {
	bench

	w io.Writer
}

// memoryRow is what one controller needs at rest.
type memoryRow struct {
	Phase   string `json:"phase"`
	Managed int    `json:"managed"`
	Foreign int    `json:"foreign"`
	// Heap is what is reachable after a garbage collection, RSS what the system
	// counts before it, Peak its most.
	Heap float64 `json:"heap_mb"`
	RSS  float64 `json:"rss_mb"`
	Peak float64 `json:"peak_rss_mb"`
	// PerObject is by how many bytes of the heap an object more than before costs.
	PerObject float64 `json:"bytes_per_object,omitempty"`
	// CPU is in percent of one core; Quiet the same in the same run without what
	// the phase adds, and Spread the standard deviation between windows of Quiet.
	CPU    float64 `json:"cpu_percent"`
	Quiet  float64 `json:"quiet_cpu_percent,omitempty"`
	Spread float64 `json:"quiet_spread_percent,omitempty"`
	// Changes are those of foreign objects while CPU was counted.
	Changes int64   `json:"foreign_changes,omitempty"`
	Others  float64 `json:"others_cpu_s"`

	heap float64 // exact
}

func (b *memoryBench) run(ctx context.Context) error {
	return b.inFolder(ctx, b.stages)
}

func (b *memoryBench) stages(ctx context.Context) error {
	apps := map[string]int{"base": len(mixedKinds)}
	for i := range b.objects / perApp {
		apps[appName(i)] = perApp
		b.names = append(b.names, appName(i))
	}
	var err error
	if b.fleet, err = newLoad(ctx, b.dir, apps); err != nil {
		return fmt.Errorf("make the repository: %w", err)
	}
	if err := b.start(ctx); err != nil {
		return err
	}
	heal := func(string) bool { return true }
	if err := b.declareAll(ctx, []string{"base"}, heal); err != nil {
		return err
	}
	base, err := b.fresh(ctx, memoryRow{Phase: "memory-base", Managed: len(mixedKinds)}, nil)
	if err != nil {
		return err
	}
	if err := b.declareAll(ctx, b.names, heal); err != nil {
		return err
	}
	managed := memoryRow{Managed: b.objects + len(mixedKinds)}
	managed.Phase = "memory-synced"
	if _, err := b.look(ctx, managed, &base); err != nil {
		return err
	}
	managed.Phase = "memory-managed"
	if managed, err = b.fresh(ctx, managed, &base); err != nil {
		return err
	}
	return b.amongForeign(ctx, managed)
}

// amongForeign adds the foreign objects: first while a controller runs, then with
// one that finds them, then while they change.
func (b *memoryBench) amongForeign(ctx context.Context, managed memoryRow) error {
	f := &foreigners{client: b.client, n: b.foreign}
	if err := f.create(ctx); err != nil {
		return err
	}
	row := memoryRow{Phase: "memory-foreign-came", Managed: managed.Managed, Foreign: f.n}
	if _, err := b.look(ctx, row, &managed); err != nil {
		return err
	}
	row.Phase = "memory-foreign"
	row, err := b.fresh(ctx, row, &managed)
	if err != nil {
		return err
	}
	return b.churned(ctx, row, f)
}

// fresh starts a controller anew and looks at it.
func (b *memoryBench) fresh(ctx context.Context, r memoryRow, before *memoryRow) (memoryRow, error) {
	if err := b.restart(ctx); err != nil {
		return r, err
	}
	for { // it has compared everything anew
		commit, err := b.fleet.git(ctx, "rev-parse", "HEAD")
		if err != nil {
			return r, err
		}
		n, err := b.unitsAt(ctx, commit)
		if err != nil {
			return r, err
		}
		if n == r.Managed/perApp+1 {
			break
		}
		if err := b.child.pause(ctx, 100*time.Millisecond); err != nil {
			return r, fmt.Errorf("wait until all are looked at: %w", err)
		}
	}
	return b.look(ctx, r, before)
}

// look takes the figures of the controller at rest, and prints them.
func (b *memoryBench) look(ctx context.Context, r memoryRow, before *memoryRow) (memoryRow, error) {
	if err := b.rest(ctx); err != nil {
		return r, err
	}
	var err error
	if r.CPU, r.Others, err = b.cpu(ctx, b.quiet); err != nil {
		return r, err
	}
	if _, r.RSS, r.Peak, err = usage(b.child.pid); err != nil {
		return r, err
	}
	file := ""
	if b.profile != "" {
		if file, err = b.profileFile(r.Phase + "-heap"); err != nil {
			return r, err
		}
	}
	if r.heap, err = b.child.heap(file); err != nil {
		return r, err
	}
	if before != nil {
		r.PerObject = (r.heap - before.heap) / float64(r.Managed+r.Foreign-before.Managed-before.Foreign)
	}
	return r, b.print(r)
}

// cpu counts the controller's processor time for a while, in percent of one
// core, and that of what does not belong here.
func (b *memoryBench) cpu(ctx context.Context, d time.Duration) (percent, others float64, err error) {
	var began, ended counters
	if err := began.read(b.child.pid, b.server.PID); err != nil {
		return 0, 0, err
	}
	from, err := running(b.child.pid)
	if err != nil {
		return 0, 0, err
	}
	if err := b.child.pause(ctx, d); err != nil {
		return 0, 0, fmt.Errorf("count the processor time: %w", err)
	}
	if err := ended.read(b.child.pid, b.server.PID); err != nil {
		return 0, 0, err
	}
	to, err := running(b.child.pid)
	if err != nil {
		return 0, 0, err
	}
	return 100 * (to - from).Seconds() / ended.at.Sub(began.at).Seconds(), ended.since(began).others(), nil
}

// churned counts in windows by turns, with changes and without.
func (b *memoryBench) churned(ctx context.Context, r memoryRow, f *foreigners) error {
	r.Phase, r.PerObject, r.Others = "memory-churn", 0, 0
	var with, without []float64
	for range memoryWindows {
		quiet, others, err := b.cpu(ctx, b.quiet/memoryWindows*2)
		if err != nil {
			return err
		}
		changing, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- f.churn(changing, churnRate) }()
		busy, more, err := b.cpu(ctx, b.quiet/memoryWindows*2)
		stop()
		if churnErr := <-ended; err == nil {
			err = churnErr
		}
		if err != nil {
			return err
		}
		without, with, r.Others = append(without, quiet), append(with, busy), r.Others+others+more
	}
	r.Changes = f.changes.Load()
	r.CPU, _ = meanAndSpread(with)
	r.Quiet, r.Spread = meanAndSpread(without)
	var err error
	if _, r.RSS, r.Peak, err = usage(b.child.pid); err != nil {
		return err
	}
	if r.heap, err = b.child.heap(""); err != nil {
		return err
	}
	return b.print(r)
}

// profileFile is where a profile is written.
func (o options) profileFile(name string) (string, error) {
	if err := os.MkdirAll(o.profile, 0o750); err != nil {
		return "", fmt.Errorf("make the folder of the profiles: %w", err)
	}
	folder, err := filepath.Abs(o.profile)
	if err != nil {
		return "", fmt.Errorf("find the folder of the profiles: %w", err)
	}
	return filepath.Join(folder, name+".pprof"), nil
}

func (b *memoryBench) print(r memoryRow) error {
	for _, f := range []*float64{&r.RSS, &r.Peak, &r.PerObject, &r.CPU, &r.Quiet, &r.Spread, &r.Others} {
		*f = round(*f)
	}
	r.Heap = round(r.heap / (1 << 20))
	if b.json {
		if err := json.NewEncoder(b.w).Encode(r); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		return nil
	}
	_, err := fmt.Fprintf(b.w, "%-20s managed %5d  foreign %6d  heap %6.1f MB  resident %5.0f MB (peak %.0f)  %8.1f bytes an object more  cpu %.2f %% of a core%s  (others %.1fs)\n",
		r.Phase, r.Managed, r.Foreign, r.Heap, r.RSS, r.Peak, r.PerObject, r.CPU, r.quiet(), r.Others)
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func (r memoryRow) quiet() string {
	if r.Changes == 0 {
		return ""
	}
	return fmt.Sprintf(" during %d changes, without them %.2f ± %.2f", r.Changes, r.Quiet, r.Spread)
}
