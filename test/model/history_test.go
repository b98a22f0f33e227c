package model

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/engine"
)

// event is something that befalls a sync.
type event struct {
	Do   string
	N    int
	Wait time.Duration // before it
}

func (e event) String() string { return fmt.Sprintf("%s %d after %s", e.Do, e.N, e.Wait) }

var doings = []string{"push", "push", "push", "push", "edit", "delete", "restart", "restart", "outage", "sync", "fail", "stick", "bad", "late", "window"}

// history makes a random one.
func history(rnd *rand.Rand) []event {
	events := []event{{Do: "push", N: rnd.Int()}}
	for range 3 + rnd.IntN(10) {
		wait := time.Duration(rnd.IntN(200)) * time.Millisecond
		if rnd.IntN(3) == 0 {
			wait = time.Duration(rnd.IntN(15000)) * time.Millisecond
		}
		events = append(events, event{doings[rnd.IntN(len(doings))], rnd.Int(), wait})
	}
	return events
}

// world is one run of a history.
type world struct {
	git     *git
	spy     *monitor
	cluster *cluster

	mu     sync.Mutex
	stored *rutter.OperationReport // as the status has it
	status rutter.Report           // as it is stored
	kinds  []rutter.GVK
	asked  bool
	closed bool // the sync window

	engine *engine.Engine
	stop   func()

	bad, late, failing, stuck bool
}

var id = rutter.UnitID{Dialect: "argo", Namespace: "argocd", Name: "app"}

func newWorld(seed uint64) *world {
	g := &git{}
	spy := newMonitor(g)
	return &world{git: g, spy: spy, cluster: newCluster(seed, spy)}
}

func (w *world) unit() rutter.Unit {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := rutter.Unit{ID: id, Instance: "app", Project: "default", Sources: []rutter.Source{{RepoURL: "https://git/repo", Path: "."}},
		Target: rutter.Target{Server: server, Namespace: "ns"}, KnownKinds: slices.Clone(w.kinds), Asked: w.asked,
		Policy: rutter.SyncPolicy{Automated: true, Prune: true, SelfHeal: true, AllowEmpty: true, Retry: rutter.Retry{Limit: 2}}}
	if w.closed {
		u.Windows = []rutter.SyncWindow{{Name: "closed", Deny: true, Problem: "it is closed for the test", Zone: time.UTC}}
	}
	if len(w.status.Revisions) > 0 {
		u.Declared = &rutter.Declaration{Stamp: rutter.Stamp(w.status.Revisions, u.SourcesDigest()), Undeclared: map[rutter.Ref]string{}}
		for _, r := range w.status.Resources {
			if r.RequiresPruning {
				u.Declared.Undeclared[r.Ref] = r.DeclaredAt
			} else {
				u.Declared.Refs = append(u.Declared.Refs, r.Ref)
			}
		}
	}
	if w.stored != nil { // times are in seconds there
		last := *w.stored
		last.StartedAt, last.FinishedAt = last.StartedAt.Truncate(time.Second), last.FinishedAt.Truncate(time.Second)
		u.Last = &last
	}
	return u
}

// begin starts a controller.
func (w *world) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	changed := make(chan struct{}, 1)
	e := engine.New(engine.Options{Sources: w.git, Renderer: w.git, Clusters: w.cluster, Workers: 2, Now: time.Now, Logger: slog.New(slog.NewTextHandler(logs(), nil)),
		Permit:     func(rutter.Unit, rutter.ClusterInfo, rutter.Ref, bool) error { return nil },
		PermitRepo: func(string, rutter.Repo) error { return nil },
		Changed: func(rutter.UnitID, bool) {
			select {
			case changed <- struct{}{}:
			default:
			}
		}})
	w.cluster.attach(ctx, e)
	w.engine = e
	e.Upsert(w.unit())
	w.mu.Lock()
	if w.asked {
		e.Sync(id, rutter.SyncRequest{InitiatedBy: "ada", Prune: true})
	}
	w.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { e.Run(ctx) })
	wg.Go(func() { w.write(ctx, e, changed) })
	w.stop = func() { cancel(); wg.Wait() }
}

// write is the status writer.
func (w *world) write(ctx context.Context, e *engine.Engine, changed <-chan struct{}) {
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		r, ok := e.Report(id)
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return
		}
		if !ok {
			continue
		}
		w.mu.Lock()
		w.status, w.kinds = r, nil
		for _, res := range r.Resources {
			w.kinds = append(w.kinds, rutter.GVK{Group: res.Group, Version: res.Version, Kind: res.Kind})
		}
		if r.Operation != nil {
			w.stored = r.Operation
			if r.Operation.Phase.Completed() && !r.Operation.Request.Automated {
				w.asked = false
			}
		}
		w.mu.Unlock()
		e.Recorded(r)
		e.Upsert(w.unit())
	}
}

// run carries a history out, and says what was wrong with it.
func run(seed uint64, events []event) (problem string, w *world) {
	w = newWorld(seed)
	w.git.push(nil)
	w.begin()
	for _, ev := range events {
		time.Sleep(ev.Wait)
		w.do(ev)
	}
	// The trouble ends; one more commit, and everything comes to be in sync.
	w.cluster.trouble(false, false)
	w.cluster.outage(false)
	w.cluster.serve(boats)
	w.setWindow(false)
	w.bad = false
	w.push(rand.New(rand.NewPCG(seed, 99)))
	for range 60 {
		time.Sleep(time.Minute)
		if problem = w.unsettled(); problem == "" {
			break
		}
	}
	w.stop()
	if breaches := w.spy.broken(); len(breaches) > 0 {
		problem = strings.Join(breaches, "; ")
	}
	return problem, w
}

// unsettled says what is not as it should be in the end.
func (w *world) unsettled() string {
	r, ok := w.engine.Report(id)
	switch {
	case !ok:
		return "no report"
	case r.Sync != rutter.Synced || r.Health.Status != rutter.Healthy:
		return fmt.Sprintf("it ends %s and %s: %+v, operation %+v", r.Sync, r.Health.Status, r.Conditions, r.Operation)
	case r.Operation != nil && !r.Operation.Phase.Completed():
		return fmt.Sprintf("the operation ends %+v", r.Operation)
	}
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	for _, x := range w.git.at(w.git.head()) {
		if o := w.cluster.objects[x.ref()]; !x.Hook && (o == nil || text(o, "spec", "run") != x.Run) {
			return x.Name + " is not as Git has it"
		}
	}
	for ref, o := range w.cluster.objects {
		if _, declared := w.git.at(w.git.head()).find(ref); !declared && o.GetAnnotations()[rutter.AnnotationHookRun] == "" {
			return ref.String() + " is left over"
		}
		if slices.Contains(o.GetFinalizers(), rutter.FinalizerHook) {
			return "hook " + ref.String() + " is kept for ever"
		}
	}
	return ""
}

func (w *world) do(ev event) {
	rnd := rand.New(rand.NewPCG(uint64(ev.N), 3))
	switch ev.Do {
	case "push":
		w.push(rnd)
	case "edit", "delete":
		w.cluster.edit(ev.N, ev.Do == "delete")
	case "restart":
		w.stop()
		w.begin()
	case "outage":
		w.cluster.outage(true)
		time.Sleep(time.Duration(1+rnd.IntN(30)) * time.Second)
		w.cluster.outage(false)
	case "sync":
		w.mu.Lock()
		w.asked = true
		w.mu.Unlock()
		w.engine.Upsert(w.unit())
		w.engine.Sync(id, rutter.SyncRequest{InitiatedBy: "ada", Prune: true})
	case "fail", "stick":
		w.failing, w.stuck = w.failing != (ev.Do == "fail"), w.stuck != (ev.Do == "stick")
		w.cluster.trouble(w.failing, w.stuck)
	case "bad":
		w.bad = !w.bad
	case "late":
		w.late = true
		if rnd.IntN(2) == 0 {
			w.cluster.serve(boats)
		}
	case "window":
		w.setWindow(!w.closed)
	}
}

func (w *world) setWindow(closed bool) {
	w.mu.Lock()
	w.closed = closed
	w.mu.Unlock()
	w.engine.Upsert(w.unit())
}

// push commits a random state.
func (w *world) push(rnd *rand.Rand) {
	var c commit
	kinds := []rutter.GVK{configMaps, configMaps, deployments}
	if w.late {
		kinds = append(kinds, boats)
	}
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range names[:rnd.IntN(len(names)+1)] {
		c = append(c, thing{Kind: kinds[rnd.IntN(len(kinds))], Name: name, Run: fmt.Sprint(rnd.IntN(3)), Wave: rnd.IntN(3) - 1})
	}
	for _, phase := range []rutter.Phase{rutter.PhasePreSync, rutter.PhasePostSync} {
		if rnd.IntN(3) == 0 {
			c = append(c, thing{Kind: jobs, Name: strings.ToLower(string(phase)), Run: fmt.Sprint(rnd.IntN(3)), Phase: phase, Hook: true, Wave: rnd.IntN(2)})
		}
	}
	if w.bad && len(c) > 0 {
		c[rnd.IntN(len(c))].Bad = true
	}
	w.git.push(c)
	w.engine.Refresh(id, true)
}

// logs is where the engine's go: RUTTER_MODEL_LOG=1 shows them.
func logs() io.Writer {
	if os.Getenv("RUTTER_MODEL_LOG") != "" {
		return os.Stderr
	}
	return io.Discard
}
