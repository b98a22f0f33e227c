package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/health"
	"github.com/rutterhq/rutter/internal/plan"
)

// Options configure an Engine. All ports are required.
type Options struct {
	Sources  rutter.Sources
	Renderer rutter.Renderer
	Clusters rutter.Clusters
	// Changed is called when the report of a unit may have changed; it must be
	// quick. The report itself is fetched with Engine.Report when it is wanted,
	// so that many changes cost one report. minor is true when nothing but the
	// recorded revision moved: such a report may wait for a quiet moment.
	Changed func(id rutter.UnitID, minor bool)
	// Permit says whether the unit may manage an object there, and if not why.
	Permit func(unit rutter.Unit, cluster rutter.ClusterInfo, ref rutter.Ref, namespaced bool) error
	// Orphan says whether an object that nobody declares counts as one in the unit's
	// project. Nil counts none.
	Orphan func(unit rutter.Unit, cluster rutter.ClusterInfo, ref rutter.Ref) bool
	// Identity is the user with whose rights the unit's calls are made; empty means
	// the engine's own. An error says why none may be. Nil is the engine's own always.
	Identity func(unit rutter.Unit, cluster rutter.ClusterInfo) (user string, err error)
	// Verify says why a unit's project does not take what a source is at, for lack
	// of a signature that it demands. Without a snapshot it is asked about objects
	// that come from nowhere. Nil demands none.
	Verify func(unit rutter.Unit, source rutter.Source, snap rutter.Snapshot) error
	// PermitRepo says whether a project may read a repository that one of its
	// sources names: a chart's dependency, a remote base, a values file.
	PermitRepo func(project string, repo rutter.Repo) error
	// Lookup gives a unit's charts a view of its cluster, as the tenant; nil, or
	// a nil answer, means that lookup finds nothing.
	Lookup func(unit rutter.Unit, c rutter.Cluster) rutter.Lookup
	Logger *slog.Logger
	Now    func() time.Time
	// Types are what is known of the types of objects; nil leaves more to the
	// members' dry runs.
	Types *compare.Types

	// Workers process units in parallel; default 4.
	Workers int
	// PollInterval is how often sources are asked for new commits, with
	// PollJitter added at random; 0 means never.
	PollInterval time.Duration
	PollJitter   time.Duration
}

// Engine keeps units equal to their sources.
type Engine struct {
	opts  Options
	queue *queue[rutter.UnitID]
	repos *Repos

	mu     sync.RWMutex
	units  map[rutter.UnitID]*state
	byHash map[string]*state
	strays map[string]map[strayKey]entry
	claims *claims
	// unsettled are the units that are about to be rendered, and waiters those
	// that wait to know what they declare.
	unsettled map[*state]unsettled
	waiters   map[rutter.UnitID]bool
	quiet     chan struct{} // closed and replaced whenever one has settled

	reachMu     sync.Mutex
	unreachable map[string]outage // server → cause
	tainted     map[kindKey]error

	comparing    atomic.Pointer[comparing]           // what is set for all comparisons
	health       atomic.Pointer[health.Assessor]     // how an operator has health assessed
	syncing      atomic.Pointer[rutter.SyncSettings] // what is set for all syncs
	descriptions *descriptions
	tools        *tools

	plain plan.Meta     // never changed
	warm  chan struct{} // closed when the first round of renders is over
	stats Stats
	wg    sync.WaitGroup
}

type outage struct {
	err   error
	since time.Time
}

type kindKey struct {
	server string
	gvk    rutter.GVK
}

// Stats are counters since the start.
type Stats struct {
	Processed atomic.Int64 // units looked at
	Renders   atomic.Int64 // renders in which a tool ran
	RenderHit atomic.Int64 // renders answered by the store
	Applies   atomic.Int64 // objects sent
	Prunes    atomic.Int64 // objects removed
	Passed    atomic.Int64 // objects that became another unit's
	Heals     atomic.Int64 // objects put back
	DryRuns   atomic.Int64 // server-side comparisons
	Syncs     atomic.Int64 // operations
}

// New returns an Engine; Run starts it.
func New(opts Options) *Engine {
	if opts.Workers <= 0 {
		opts.Workers = 4
	}
	e := &Engine{
		opts: opts, queue: newQueue[rutter.UnitID](),
		units: map[rutter.UnitID]*state{}, byHash: map[string]*state{}, strays: map[string]map[strayKey]entry{}, claims: newClaims(),
		unsettled: map[*state]unsettled{}, waiters: map[rutter.UnitID]bool{}, quiet: make(chan struct{}),
		unreachable: map[string]outage{}, tainted: map[kindKey]error{},
		warm: make(chan struct{}),
	}
	e.comparing.Store(&comparing{})
	e.descriptions, e.tools = newDescriptions(), newTools()
	e.repos = newRepos(opts)
	return e
}

// Repos is the watcher of Git repositories, shared with the generators.
func (e *Engine) Repos() *Repos { return e.repos }

// Stats returns the counters.
func (e *Engine) Stats() *Stats { return &e.stats }

// Run works until ctx ends and every worker and sync has stopped. Units that
// were given before Run are all rendered before the first watch starts, so
// that the first listing finds the desired objects to compare with.
func (e *Engine) Run(ctx context.Context) {
	for range e.opts.Workers {
		e.wg.Go(func() { e.work(ctx) })
	}
	e.wg.Go(func() { e.repos.run(ctx) })
	e.wg.Go(func() { e.warmUp(ctx) })
	<-ctx.Done()
	e.wg.Wait()
}

func (e *Engine) work(ctx context.Context) {
	for {
		id, ok := e.queue.next(ctx)
		if !ok {
			return
		}
		if u := e.unit(id); u != nil {
			e.stats.Processed.Add(1)
			e.process(rutter.OnBehalf(ctx, id), u)
		}
		e.queue.done(id)
	}
}

// warmUp waits for the first round of renders, then lets the watches begin.
func (e *Engine) warmUp(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := e.opts.Now().Add(time.Minute)
	for !e.queue.idle() && e.opts.Now().Before(deadline) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	close(e.warm)
	for _, u := range e.all() {
		e.queue.add(u.id)
	}
}

func (e *Engine) warmed() bool {
	select {
	case <-e.warm:
		return true
	default:
		return false
	}
}

// member is the unit's cluster, spoken to with the rights that the unit has there.
func (e *Engine) member(unit rutter.Unit) (rutter.Cluster, error) {
	c, err := e.opts.Clusters.Lookup(unit.Target)
	if err != nil || e.opts.Identity == nil {
		return c, err //nolint:wrapcheck // it names the cluster
	}
	user, err := e.opts.Identity(unit, c.Info())
	if err != nil {
		return nil, err
	}
	return c.As(user), nil
}

func (e *Engine) unit(id rutter.UnitID) *state {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.units[id]
}

// all returns every unit. No unit is locked while e.mu is held: the order of
// locks is unit, then engine.
func (e *Engine) all() []*state {
	e.mu.RLock()
	defer e.mu.RUnlock()
	units := make([]*state, 0, len(e.units))
	for _, u := range e.units {
		units = append(units, u)
	}
	return units
}

func (e *Engine) now() time.Time { return e.opts.Now() }
