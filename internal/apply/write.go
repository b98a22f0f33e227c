package apply

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// write sends the object of a step in the manner that it asks for.
func (r *run) write(ctx context.Context, s rutter.Step, gvk rutter.GVK, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	manner := r.Manner(s.Index)
	force := manner.Force && !r.DryRun && !s.Hook && !plan.Kept(s.Ref)
	opts := rutter.ApplyOptions{DryRun: r.DryRun, Manner: manner.Manner}
	if force && manner.Replace { // together they ask for a new object each time
		return r.recreate(ctx, s, gvk, obj, opts)
	}
	if r.Takeover != nil && !s.Hook {
		opts.Takeover = r.Takeover(s.Index)
	}
	live, err := r.put(ctx, obj, opts)
	switch {
	case err != nil && force && mustBeNew(err):
		opts.Takeover = nil
		return r.recreate(ctx, s, gvk, obj, opts)
	case err != nil && manner.Force && plan.Kept(s.Ref) && mustBeNew(err):
		return nil, fmt.Errorf("%w (a %s is not deleted by Force: everything in it, or of its kind, would go with it)", err, s.Ref.Kind)
	}
	return live, err
}

// mostUnknown bounds how often an object is sent again without fields that the
// server does not know: one refusal need not name all of them.
const mostUnknown = 20

// put is Cluster.Apply, and again without the fields that the server does not know
// where no validation is asked for.
func (r *run) put(ctx context.Context, obj *unstructured.Unstructured, opts rutter.ApplyOptions) (*unstructured.Unstructured, error) {
	live, err := r.Cluster.Apply(ctx, obj, opts)
	for range mostUnknown {
		if err == nil || !opts.Unvalidated {
			break
		}
		less, ok := plan.WithoutUnknown(obj, err.Error())
		if !ok {
			break
		}
		obj = less
		live, err = r.Cluster.Apply(ctx, obj, opts)
	}
	return live, err //nolint:wrapcheck // it names the object
}

// immutable reports whether the server refused a change that only a new object
// can have.
func immutable(err error) bool {
	text := err.Error()
	for _, words := range []string{"immutable", "updates to", "updates may not change", "may not change", "may not be changed", "cannot be changed", "can not be changed"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// mustBeNew reports whether Force deletes the object for that refusal: a conflict,
// or a change that cannot be made. A mistake in the object is none: it would not be
// taken either once the old one is gone.
func mustBeNew(err error) bool {
	code := rutter.CodeOf(err)
	return code == rutter.CodeConflict || code == rutter.CodeInvalid && immutable(err)
}

// recreate deletes the object and creates it again when it is gone.
func (r *run) recreate(ctx context.Context, s rutter.Step, gvk rutter.GVK, obj *unstructured.Unstructured, opts rutter.ApplyOptions) (*unstructured.Unstructured, error) {
	old, err := r.Cluster.Get(ctx, gvk, s.Ref.Namespace, s.Ref.Name)
	switch {
	case rutter.CodeOf(err) == rutter.CodeNotFound:
	case err != nil:
		return nil, fmt.Errorf("force: read what is to be created again: %w", err)
	default:
		if err := r.Cluster.Delete(ctx, gvk, s.Ref.Namespace, s.Ref.Name, rutter.DeleteOptions{UID: string(old.GetUID()), Propagation: r.Propagation}); err != nil {
			return nil, fmt.Errorf("force: delete before creating again: %w", err)
		}
		r.Live.Removed(s)
		if err := r.gone(ctx, gvk, old); err != nil {
			return nil, fmt.Errorf("force: wait for the deletion: %w", err)
		}
	}
	opts.Replace = false // there is nothing to replace
	live, err := r.put(ctx, obj, opts)
	if err != nil {
		return nil, fmt.Errorf("force: create again: %w", err)
	}
	return live, nil
}
