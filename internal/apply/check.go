package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// checked is what the server said to one step.
type checked struct {
	step rutter.Step
	err  error
}

// check asks the server about everything that will be sent, side by side, before
// anything is: nothing is applied where a part is refused. What cannot be asked yet,
// because this very sync makes what it needs, is left to its turn. A namespace that
// others wait for is made first, so that they can be asked; alone it does no harm.
func (r *run) check(ctx context.Context) error {
	steps := r.toCheck()
	if len(steps) == 0 || r.single() {
		return nil // it is the whole sync: refused, nothing is applied either
	}
	makes := r.makes()
	var inNamespace []rutter.Step
	refused := r.ask(ctx, steps)
	refused = filter(refused, func(c checked) bool {
		needs, deferred := r.deferred(c, makes)
		if needs != nil && needs.Ref.Kind == "Namespace" {
			inNamespace = append(inNamespace, c.step)
		}
		return !deferred
	})
	if len(refused) == 0 && len(inNamespace) > 0 {
		if err := r.namespacesFirst(ctx, inNamespace); err != nil {
			return err
		}
		refused = filter(r.ask(ctx, inNamespace), func(c checked) bool { _, deferred := r.deferred(c, makes); return !deferred })
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sync stopped before anything was applied: %w", context.Cause(ctx))
	}
	if len(refused) == 0 {
		return nil
	}
	if r.stopped() {
		return ErrSuperseded
	}
	for _, c := range refused {
		r.results = append(r.results, failed(rutter.StepResult{Step: c.step}, c.err))
	}
	return rutter.Errorf(rutter.CodeInvalid, "one or more objects failed to apply (dry run), and nothing was applied: %s", r.firstFailure())
}

// toCheck are the steps that send something that the server has not seen yet.
func (r *run) toCheck() []rutter.Step {
	var steps []rutter.Step
	for s := range r.Plan.Steps() {
		if s.Action == rutter.ActionApply && (r.Checked == nil || !r.Checked(s.Index)) {
			steps = append(steps, s)
		}
	}
	return steps
}

// ask sends steps as a dry run, and returns those that were refused.
func (r *run) ask(ctx context.Context, steps []rutter.Step) []checked {
	var mu sync.Mutex
	var refused []checked
	together(len(steps), atOnce, func(i int) {
		if err := r.askOne(ctx, steps[i]); err != nil {
			mu.Lock()
			refused = append(refused, checked{steps[i], err})
			mu.Unlock()
		}
	})
	return refused
}

func (r *run) askOne(ctx context.Context, s rutter.Step) error {
	obj, err := r.Object(s.Index)
	if rutter.CodeOf(err) == rutter.CodeConflict {
		return nil // it is left to somebody else, which is no reason to stop the others
	}
	if err != nil {
		return fmt.Errorf("load the desired object: %w", err)
	}
	if s.Hook {
		r.asHook(s, obj)
	}
	manner := r.Manner(s.Index)
	_, err = r.put(ctx, obj, rutter.ApplyOptions{DryRun: true, Manner: manner.Manner})
	switch {
	case err == nil, ctx.Err() != nil:
		return nil //nolint:nilerr // what was stopped says nothing of the object
	case s.Hook && immutable(err), manner.Force && !plan.Kept(s.Ref) && mustBeNew(err):
		return nil // it is made anew
	case strings.Contains(err.Error(), "does not support dry run"):
		return nil // a webhook that has other effects is not asked
	}
	return err
}

// single reports whether the plan is one step.
func (r *run) single() bool {
	n := 0
	for range r.Plan.Steps() {
		n++
	}
	return n == 1
}

// makes are the objects that the plan sends, by name.
func (r *run) makes() map[string][]rutter.Step {
	all := map[string][]rutter.Step{}
	for s := range r.Plan.Steps() {
		if s.Action == rutter.ActionApply {
			all[s.Ref.Name] = append(all[s.Ref.Name], s)
		}
	}
	return all
}

// deferred reports whether a refusal is for the want of something that this sync
// makes: the kind, or an object that the message says is not found. needs is that object.
func (r *run) deferred(c checked, makes map[string][]rutter.Step) (needs *rutter.Step, deferred bool) {
	if r.kindMissing(c.step) || r.definedHere(c.step) {
		return nil, true
	}
	text := c.err.Error()
	if !strings.Contains(text, "not found") {
		return nil, false
	}
	for name, all := range makes {
		if !strings.Contains(text, `"`+name+`" not found`) {
			continue
		}
		if i := slices.IndexFunc(all, func(m rutter.Step) bool { return m.Ref != c.step.Ref }); i >= 0 {
			return &all[i], true
		}
	}
	return nil, false
}

// definedHere reports whether this sync changes the definition of the step's kind:
// what the old one refuses the new one may allow.
func (r *run) definedHere(s rutter.Step) bool {
	for d := range r.Plan.Steps() {
		if d.Action == rutter.ActionApply && d.Ref.Kind == "CustomResourceDefinition" && strings.HasSuffix(d.Ref.Name, "."+s.Ref.Group) && s.Ref.Group != "" {
			return true
		}
	}
	return false
}

// namespacesFirst makes the namespaces of steps; their groups find them made.
func (r *run) namespacesFirst(ctx context.Context, steps []rutter.Step) error {
	wanted := map[string]bool{}
	for _, s := range steps {
		wanted[s.Ref.Namespace] = true
	}
	var namespaces []rutter.Step
	for s := range r.Plan.Steps() {
		if s.Action == rutter.ActionApply && s.Ref.Kind == "Namespace" && s.Ref.Group == "" && wanted[s.Ref.Name] {
			namespaces = append(namespaces, s)
		}
	}
	n, _ := r.batch(ctx, namespaces)
	for _, s := range namespaces {
		r.done[stepKey{s.Index, s.Phase}] = true
	}
	if n > 0 {
		return rutter.Errorf(rutter.CodeInvalid, "one or more objects failed to apply: %s", r.firstFailure())
	}
	return nil
}

func filter(all []checked, keep func(checked) bool) []checked {
	var out []checked
	for _, c := range all {
		if keep(c) {
			out = append(out, c)
		}
	}
	return out
}
