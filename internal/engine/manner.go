package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// manner is how a declared object is sent in a sync.
func (u *state) manner(policy rutter.SyncPolicy, req rutter.SyncRequest, d *desired, i int) plan.Manner {
	o := &d.objects[i]
	var live plan.Meta
	u.mu.Lock()
	if x := u.live[o.Ref]; x != nil && x.meta != nil {
		live = *x.meta
	}
	u.mu.Unlock()
	return plan.MannerOf(policy, req, o.Meta, live)
}

// predicted asks the server what it would make of an object. Fields that it does
// not know are left out where the object is sent without validation.
func (e *Engine) predicted(ctx context.Context, u *state, c rutter.Cluster, d *desired, i int, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	u.mu.Lock()
	policy := u.unit.Policy
	u.mu.Unlock()
	opts := rutter.ApplyOptions{DryRun: true}
	opts.Unvalidated = u.manner(policy, rutter.SyncRequest{}, d, i).Unvalidated
	told, err := c.Apply(ctx, obj, opts)
	if err != nil && opts.Unvalidated {
		if less, ok := plan.WithoutUnknown(obj, err.Error()); ok {
			told, err = c.Apply(ctx, less, opts)
		}
	}
	return told, err //nolint:wrapcheck // the caller says what for
}
