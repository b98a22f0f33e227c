package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/apply"
	"github.com/rutterhq/rutter/internal/plan"
)

// approved reports whether a person has confirmed what asks for it since the
// operation began. Times are compared as they are written, in seconds; u.mu is held.
func (u *state) approved() bool {
	return u.op != nil && !u.unit.Approved.IsZero() && !u.unit.Approved.Before(u.op.report.StartedAt.Truncate(time.Second))
}

// confirm carries out what waits for a person (Prune=confirm, reference 2.5), after
// everything else has been done: what else is to happen does not wait for that.
func (e *Engine) confirm(ctx context.Context, u *state, op *operation, d *desired, t apply.Task, results []rutter.StepResult) ([]rutter.StepResult, error) {
	waiting := t.Plan.Confirm
	if t.DryRun {
		for _, s := range waiting {
			results = append(results, rutter.StepResult{Step: s, Status: apply.StatusPruneSkipped, Message: "would wait for a confirmation of its pruning (dry run)"})
		}
		return results, nil
	}
	u.mu.Lock()
	op.report.Results = results
	u.mu.Unlock()
	if err := e.awaitConfirmation(ctx, u, op, waiting); err != nil {
		for _, s := range waiting {
			results = append(results, rutter.StepResult{Step: s, Status: apply.StatusPruneSkipped, Message: "ignored (its pruning was not confirmed)"})
		}
		return results, err
	}
	req := op.report.Request
	req.Resources = nil
	for _, s := range waiting {
		req.Resources = append(req.Resources, s.Ref)
	}
	u.mu.Lock()
	in := e.planInput(u, d, req)
	u.mu.Unlock()
	for i := range in.Extras {
		in.Extras[i].Waits = "" // that is looked at when its turn comes
	}
	t.Plan = plan.Compute(in)
	// What was declared again meanwhile is no extra; whatever else differs by now is
	// the next sync's.
	for i := range t.Plan.Groups {
		g := &t.Plan.Groups[i]
		for j := range g.Batches {
			g.Batches[j] = slices.DeleteFunc(slices.Clone(g.Batches[j]), func(s rutter.Step) bool { return s.Action != rutter.ActionPrune })
		}
	}
	out := apply.Run(ctx, t)
	return slices.Concat(results, out.Results), out.Err
}

// awaitConfirmation returns when a person has confirmed.
func (e *Engine) awaitConfirmation(ctx context.Context, u *state, op *operation, waiting []rutter.Step) error {
	names := make([]string, 0, len(waiting))
	for _, s := range waiting {
		names = append(names, s.Ref.String())
	}
	e.progress(u, op, fmt.Sprintf("waiting for pruning confirmation of %s: 'rutter app confirm-deletion %s'", strings.Join(names, ", "), u.id.Name))
	for {
		u.mu.Lock()
		ok, changed, superseded := u.op == op && u.approved(), u.changed, op.superseded
		u.mu.Unlock()
		switch {
		case ok:
			return nil
		case superseded:
			return apply.ErrSuperseded
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errors.Join(errors.New("stopped while a pruning waited for its confirmation"), context.Cause(ctx))
		}
	}
}
