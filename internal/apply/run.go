package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// Results of a step (reference 2.1).
const (
	StatusSynced       = "Synced"
	StatusFailed       = "SyncFailed"
	StatusPruned       = "Pruned"
	StatusPruneSkipped = "PruneSkipped"
)

// ErrSuperseded ends a run at a safe point because a newer desired state waits.
var ErrSuperseded = errors.New("superseded by a newer revision")

// Live is what the run needs of the live side: to record the server's answers
// and to wait for what the watches see.
type Live interface {
	// Applied records the object that the server returned for a step.
	Applied(step rutter.Step, obj *unstructured.Unstructured)
	// Removed records that a deletion was accepted.
	Removed(step rutter.Step)
	// Await returns when every ref is present, up to date and healthy; with an
	// error when one is degraded or ctx ends. Each is waited for separately.
	Await(ctx context.Context, refs []rutter.Ref) error
	// AwaitGone returns when none of the refs is there any more.
	AwaitGone(ctx context.Context, refs []rutter.Ref) error
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
	// HookPolicies returns the delete policies of a hook.
	HookPolicies func(index int) []string
	Live         Live
	// Propagation is the deletion propagation of prunes.
	Propagation string
	// Force deletes and creates again what cannot be changed in place.
	Force bool
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
// not hide the next.
func Run(ctx context.Context, t Task) Outcome {
	r := &run{Task: t}
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
	if ctx.Err() == nil {
		r.cleanHooks(ctx, err == nil)
	}
	return Outcome{Results: r.results, Err: err}
}

type run struct {
	Task

	mu      sync.Mutex
	results []rutter.StepResult
	hooks   []ranHook
}

type ranHook struct {
	step rutter.Step
	gvk  rutter.GVK
	uid  string
}

func (r *run) groups(ctx context.Context, groups []rutter.Group) error {
	for i, g := range groups {
		if r.stopped() {
			return ErrSuperseded
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
	var failed int
	for _, batch := range g.Batches {
		failed += r.batch(ctx, batch)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("sync stopped in wave %d: %w", g.Wave, err)
		}
	}
	if failed > 0 {
		if r.stopped() {
			return ErrSuperseded
		}
		return rutter.Errorf(rutter.CodeInvalid, "one or more objects failed to apply: %s", r.firstFailure())
	}
	if r.DryRun || !r.Plan.WaitHealth && !hasHooks(g) {
		return nil
	}
	if last && !hasHooks(g) && len(r.Plan.Groups) == 1 {
		return nil
	}
	return r.await(ctx, g)
}

func (r *run) await(ctx context.Context, g rutter.Group) error {
	refs, gone := slices.Clone(g.Await), []rutter.Ref(nil)
	for _, batch := range g.Batches {
		for _, s := range batch {
			if s.Action == rutter.ActionPrune {
				gone = append(gone, s.Ref)
			} else {
				refs = append(refs, r.nameOf(s))
			}
		}
	}
	if r.Progress != nil {
		r.Progress(fmt.Sprintf("waiting for healthy state of %s wave %d (%d objects)", g.Phase, g.Wave, len(refs)))
	}
	if err := r.Live.AwaitGone(ctx, gone); err != nil {
		return fmt.Errorf("wait for the removal of what wave %d pruned: %w", g.Wave, err)
	}
	err := r.Live.Await(ctx, refs)
	r.settleHooks(g, err)
	if err != nil {
		return fmt.Errorf("%s wave %d: %w", g.Phase, g.Wave, err)
	}
	return nil
}

// batch runs steps in parallel and returns how many failed.
func (r *run) batch(ctx context.Context, steps []rutter.Step) int {
	results := make([]rutter.StepResult, len(steps))
	if len(steps) == 1 {
		results[0] = r.step(ctx, steps[0])
	} else {
		var wg sync.WaitGroup
		for i := range steps {
			wg.Go(func() { results[i] = r.step(ctx, steps[i]) })
		}
		wg.Wait()
	}
	failed := 0
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, res := range results {
		if res.Status == StatusFailed {
			failed++
		}
		r.results = append(r.results, res)
	}
	return failed
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
