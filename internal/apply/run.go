package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// Results of a step (reference 2.1).
const (
	StatusSynced       = "Synced"
	StatusFailed       = "SyncFailed"
	StatusPruned       = "Pruned"
	StatusPruneSkipped = "PruneSkipped"
)

// statusWaiting is the result of a step whose kind the cluster does not serve yet.
const statusWaiting = "WaitingForKind"

// ErrSuperseded ends a run at a safe point because a newer desired state waits.
var ErrSuperseded = errors.New("superseded by a newer revision")

// Awaited is an object that a run waits for.
type Awaited struct {
	Ref rutter.Ref
	// UID is empty for one that needed no sending.
	UID  string
	Hook bool

	gvk rutter.GVK
}

// MissingError is the error of Await for an object that the watches do not show.
type MissingError struct{ Ref rutter.Ref }

// Error implements error.
func (m *MissingError) Error() string {
	return m.Ref.String() + " is missing, it might have been deleted"
}

// Live is what the run needs of the live side: to record the server's answers
// and to wait for what the watches see.
type Live interface {
	// Applied records the object that the server returned for a step.
	Applied(step rutter.Step, obj *unstructured.Unstructured)
	// Removed records that a deletion was accepted.
	Removed(step rutter.Step)
	// Health is how an object is.
	Health(obj *unstructured.Unstructured) rutter.Health
	// Await returns when all are healthy, and the hooks have succeeded; with an error
	// when one is degraded, or a hook failed, and a *MissingError when one is not there. A
	// hook that vanished ended as it was last seen. The healths are those of all, in
	// order, as far as is known.
	Await(ctx context.Context, want []Awaited) ([]rutter.Health, error)
	// AwaitGone returns when none of the refs is there any more.
	AwaitGone(ctx context.Context, refs []rutter.Ref) error
	// AwaitKind returns when the kind of a step's object is served.
	AwaitKind(ctx context.Context, index int) error
}

// Task is one sync.
type Task struct {
	Cluster rutter.Cluster
	Plan    rutter.Plan
	// Object returns the object to send for a step's index, complete with
	// namespace, marker label and tracking annotation.
	Object func(index int) (*unstructured.Unstructured, error)
	// Takeover returns what makes an object ours that another tool has applied; nil
	// where there was none.
	Takeover func(index int) rutter.Takeover
	// HookRun names the run of a hook, and Revision is in the names of those that
	// leave theirs to be generated.
	HookRun  func(s rutter.Step) plan.HookRun
	Revision string
	// Checked reports whether the server has said already that it takes the object;
	// Missing whether it does not serve its kind. Both may be nil.
	Checked, Missing func(index int) bool
	Live             Live
	// Propagation is the deletion propagation of prunes.
	Propagation string
	// Delay is a pause between two groups; none by default.
	Delay time.Duration
	// Manner is how the object of an index is sent.
	Manner func(index int) plan.Manner
	// DryRun asks the server only.
	DryRun bool
	// Progress is called with a one-line message when the run starts to wait.
	Progress func(message string)
	// Superseded reports at safe points whether the run should end for a newer state.
	Superseded func() bool
	// Mark is the value of the marker label of objects that are this unit's: a prune
	// makes sure of it before it deletes.
	Mark string
	// Spare says at the last moment why an object is not to be pruned after all,
	// and may wait until that is known; nil, or an empty answer, lets it go.
	Spare func(ctx context.Context, ref rutter.Ref) string
}

// Outcome is what a run did.
type Outcome struct {
	Results []rutter.StepResult
	Err     error
}

// Run carries out the plan. The first failed group ends it after its SyncFail
// hooks; steps of the same group are all tried, so that one bad object does
// not hide the next. The hooks are left as they are: how they ended is to be
// recorded before they go.
func Run(ctx context.Context, t Task) Outcome {
	r := &run{Task: t, sent: map[stepKey]Awaited{}, done: map[stepKey]bool{}}
	if !t.DryRun {
		if err := r.check(ctx); err != nil {
			return Outcome{Results: r.results, Err: err}
		}
	}
	var failHooks []rutter.Group
	groups := slices.Clone(t.Plan.Groups)
	groups = slices.DeleteFunc(groups, func(g rutter.Group) bool {
		if g.Phase == rutter.PhaseSyncFail {
			failHooks = append(failHooks, g)
			return true
		}
		return false
	})
	err := r.groups(ctx, groups)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrSuperseded) {
		if hookErr := r.groups(ctx, failHooks); hookErr != nil {
			err = fmt.Errorf("%w; SyncFail hook: %w", err, hookErr)
		}
	}
	return Outcome{Results: r.results, Err: err}
}

type run struct {
	Task

	mu      sync.Mutex
	results []rutter.StepResult
	// sent is what each step put there, and done are steps that came before their turn.
	sent map[stepKey]Awaited
	done map[stepKey]bool
}

// stepKey names a step: an object may be a hook of several phases.
type stepKey struct {
	index int
	phase rutter.Phase
}

func (r *run) groups(ctx context.Context, groups []rutter.Group) error {
	for i, g := range groups {
		if r.stopped() {
			return ErrSuperseded
		}
		if i > 0 && r.Delay > 0 {
			if err := pause(ctx, r.Delay); err != nil {
				return err
			}
		}
		if err := r.group(ctx, g, i == len(groups)-1); err != nil {
			return err
		}
	}
	return nil
}

// group applies one phase and wave. The last group is waited for only if it
// holds hooks or the plan has several groups (reference 2.4).
func (r *run) group(ctx context.Context, g rutter.Group, last bool) error {
	if err := r.send(ctx, g); err != nil {
		return err
	}
	if r.DryRun || !r.Plan.WaitHealth && !hasHooks(g) {
		return nil
	}
	if last && !hasHooks(g) && len(r.Plan.Groups) == 1 {
		return nil
	}
	return r.await(ctx, g)
}

// send carries out the batches of a group, and then, as each appears, what waits
// for its kind.
func (r *run) send(ctx context.Context, g rutter.Group) error {
	failed, batches := 0, g.Batches
	for len(batches) > 0 {
		var waiting []rutter.Step
		for _, batch := range batches {
			n, wait := r.batch(ctx, batch)
			failed += n
			waiting = append(waiting, wait...)
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("sync stopped in wave %d: %w", g.Wave, context.Cause(ctx))
			}
		}
		if failed > 0 {
			if r.stopped() {
				return ErrSuperseded
			}
			r.awaitHooks(ctx, g)
			return rutter.Errorf(rutter.CodeInvalid, "one or more objects failed to apply: %s", r.firstFailure())
		}
		if batches = nil; len(waiting) > 0 && !r.DryRun {
			if err := r.awaitKind(ctx, g, waiting); err != nil {
				return err
			}
			batches = [][]rutter.Step{waiting}
		}
	}
	return nil
}

// awaitKind waits until the kind of the first of the waiting steps is served.
func (r *run) awaitKind(ctx context.Context, g rutter.Group, waiting []rutter.Step) error {
	names := make([]string, 0, len(waiting))
	for _, s := range waiting {
		names = append(names, s.Ref.String())
	}
	r.progress(fmt.Sprintf("%s wave %d: WaitingForKind: the cluster does not serve %s.%s yet; %d objects wait: %s",
		g.Phase, g.Wave, waiting[0].Ref.Kind, waiting[0].Ref.Group, len(names), shortList(names)))
	if err := r.Live.AwaitKind(ctx, waiting[0].Index); err != nil {
		return fmt.Errorf("wait for kind %s: %w", waiting[0].Ref.Kind, err)
	}
	return nil
}

// shortList is at most the first three of a list.
func shortList(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// awaited is what a group waits for.
func (r *run) awaited(g rutter.Group) []Awaited {
	r.mu.Lock()
	defer r.mu.Unlock()
	var want []Awaited
	for _, ref := range g.Await {
		want = append(want, Awaited{Ref: ref})
	}
	for s := range g.Steps() {
		if w, ok := r.sent[stepKey{s.Index, s.Phase}]; ok && s.Action != rutter.ActionPrune {
			want = append(want, w)
		}
	}
	return want
}

func (r *run) await(ctx context.Context, g rutter.Group) error {
	var gone []rutter.Ref
	for s := range g.Steps() {
		if s.Action == rutter.ActionPrune {
			gone = append(gone, s.Ref)
		}
	}
	want := r.awaited(g)
	r.progress(fmt.Sprintf("waiting for healthy state of %s wave %d (%d objects)", g.Phase, g.Wave, len(want)))
	if err := r.Live.AwaitGone(ctx, gone); err != nil {
		return fmt.Errorf("wait for the removal of what wave %d pruned: %w", g.Wave, err)
	}
	for {
		healths, err := r.Live.Await(ctx, want)
		r.settleHooks(want, healths)
		var lost *MissingError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &lost) && r.isThere(ctx, want, lost.Ref):
			continue // the watches were behind
		}
		if ctx.Err() == nil && !errors.Is(err, ErrSuperseded) {
			r.awaitHooks(ctx, g)
		}
		return fmt.Errorf("%s wave %d: %w", g.Phase, g.Wave, err)
	}
}

// isThere asks the server for an object that the watches do not show, and records it.
func (r *run) isThere(ctx context.Context, want []Awaited, ref rutter.Ref) bool {
	i := slices.IndexFunc(want, func(w Awaited) bool { return w.Ref == ref && w.UID != "" })
	if i < 0 {
		return false
	}
	live, err := r.Cluster.Get(ctx, want[i].gvk, ref.Namespace, ref.Name)
	if err != nil || string(live.GetUID()) != want[i].UID {
		return false
	}
	for key, w := range r.sent {
		if w.UID == want[i].UID {
			r.Live.Applied(rutter.Step{Ref: ref, Phase: key.phase, Index: key.index, Hook: w.Hook}, live)
			return true
		}
	}
	return false
}

// pause is the fixed delay between waves that a setting brings back.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopped between two waves: %w", context.Cause(ctx))
	}
}

// batch runs steps in parallel and returns how many failed, and those that wait for
// their kind.
func (r *run) batch(ctx context.Context, steps []rutter.Step) (failed int, waiting []rutter.Step) {
	steps = slices.DeleteFunc(slices.Clone(steps), func(s rutter.Step) bool { return r.done[stepKey{s.Index, s.Phase}] && s.Index >= 0 })
	results := make([]rutter.StepResult, len(steps))
	if len(steps) == 1 {
		results[0] = r.step(ctx, steps[0])
	} else {
		together(len(steps), sideBySide(steps), func(i int) { results[i] = r.step(ctx, steps[i]) })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, res := range results {
		switch {
		case res.Status == statusWaiting && !r.DryRun:
			waiting = append(waiting, steps[i])
			continue
		case res.Status == statusWaiting:
			res.Status = StatusSynced
		case res.Status == StatusFailed:
			failed++
		}
		r.results = append(r.results, res)
	}
	return failed, waiting
}

func (r *run) firstFailure() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, res := range r.results {
		if res.Status == StatusFailed {
			return res.Ref.String() + ": " + res.Message
		}
	}
	return ""
}

// stopped reports whether a newer state waits, so that a failure of what it
// replaces is no failure.
func (r *run) stopped() bool { return r.Superseded != nil && r.Superseded() }

func hasHooks(g rutter.Group) bool {
	return slices.ContainsFunc(g.Batches, func(b []rutter.Step) bool {
		return slices.ContainsFunc(b, func(s rutter.Step) bool { return s.Hook })
	})
}

func (r *run) progress(m string) {
	if r.Progress != nil {
		r.Progress(m)
	}
}
