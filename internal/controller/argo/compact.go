package argo

import (
	"slices"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// Compact makes what the cache keeps of an Application small: the lists of its
// objects are most of it, and say the same few words of each. It is the transform
// of the cache, and alone has the object then.
func Compact(obj any) (any, error) {
	app, ok := obj.(*v1alpha1.Application)
	if !ok {
		return obj, nil // the last that was heard of one that is gone
	}
	app.ManagedFields = nil
	words, healths := words{}, map[v1alpha1.HealthStatus]*v1alpha1.HealthStatus{}
	app.Status.Resources = slices.Clip(slices.Clone(app.Status.Resources)) // what decoding has left free goes
	for i := range app.Status.Resources {
		r := &app.Status.Resources[i]
		words.hold(&r.Group, &r.Version, &r.Kind, &r.Namespace, &r.Name, &r.Status)
		if r.Health != nil {
			words.hold(&r.Health.Status, &r.Health.Message)
			if known := healths[*r.Health]; known != nil {
				r.Health = known // whoever reads the cache gets a copy
			}
			healths[*r.Health] = r.Health
		}
	}
	if op := app.Status.OperationState; op != nil && op.SyncResult != nil {
		op.SyncResult.Resources = slices.Clip(slices.Clone(op.SyncResult.Resources))
		for i := range op.SyncResult.Resources {
			r := &op.SyncResult.Resources[i]
			words.hold(&r.Group, &r.Version, &r.Kind, &r.Namespace, &r.Name, &r.Status, &r.Message, &r.HookType, &r.HookPhase, &r.SyncPhase)
		}
	}
	return app, nil
}

// words holds each text once.
type words map[string]string

func (w words) hold(texts ...*string) {
	for _, s := range texts {
		if known, ok := w[*s]; ok {
			*s = known
		} else {
			w[*s] = *s
		}
	}
}
