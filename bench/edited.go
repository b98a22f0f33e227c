package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// edited is one live object and the edit of one of its fields.
type edited struct {
	app, name string
	namespace string
	kind      schema.GroupVersionKind
	field     []string
	edited    any
	declared  any
}

// editedOf picks an object for edit i: another application each time, its kinds
// in turn, and never one twice as long as there are others.
func (b *editBench) editedOf(apps []string, i int) edited {
	app := apps[i%len(apps)]
	n := (i/len(apps)*7 + i) % perApp
	return editOf(app, n)
}

// editOf is the edit of the nth of the mixed objects of an application.
func editOf(app string, n int) edited {
	o := edited{app: app, name: fmt.Sprintf("%s-%04d", app, n), namespace: destination}
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	switch n % len(mixedKinds) {
	case 0:
		o.kind, o.field, o.edited, o.declared = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, []string{"data", "level"}, "edited", "info"
	case 1:
		o.kind, o.field, o.edited, o.declared = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, []string{"data", "level"}, encoded("edited"), encoded("info")
	case 2:
		o.kind, o.field, o.edited, o.declared = schema.GroupVersionKind{Version: "v1", Kind: "Service"}, []string{"spec", "selector", "app"}, "edited", o.name
	default:
		o.kind, o.field, o.edited, o.declared = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, []string{"spec", "replicas"}, int64(3), int64(1)
	}
	return o
}

// live is the object as it can be read into and watched.
func (o edited) live() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.kind)
	u.SetNamespace(o.namespace)
	u.SetName(o.name)
	return u
}

// patch sets the field, as a person does.
func (o edited) patch(ctx context.Context, c client.Client, value any) error {
	body := map[string]any{}
	if err := unstructured.SetNestedField(body, value, o.field...); err != nil {
		return fmt.Errorf("describe an edit of %s: %w", o.name, err)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode an edit of %s: %w", o.name, err)
	}
	if err := c.Patch(ctx, o.live(), client.RawPatch(types.MergePatchType, data), client.FieldOwner("somebody")); err != nil {
		return fmt.Errorf("edit %s %s: %w", o.kind.Kind, o.name, err)
	}
	return nil
}

func (o edited) shows(u *unstructured.Unstructured, value any) bool {
	got, _, _ := unstructured.NestedFieldNoCopy(u.Object, o.field...)
	return got == value
}

// mostRepair is how long a repair is waited for at most.
const mostRepair = 2 * time.Minute

// repaired edits the object and times until a watch shows it as declared again.
func (o edited) repaired(ctx context.Context, c client.WithWatch) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, mostRepair, fmt.Errorf("%s %s is not put back after %s", o.kind.Kind, o.name, mostRepair))
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(o.kind.GroupVersion().WithKind(o.kind.Kind + "List"))
	w, err := c.Watch(ctx, list, client.InNamespace(o.namespace), client.MatchingFields{"metadata.name": o.name})
	if err != nil {
		return 0, fmt.Errorf("watch %s %s: %w", o.kind.Kind, o.name, err)
	}
	defer w.Stop()
	began := time.Now()
	if err := o.patch(ctx, c, o.edited); err != nil {
		return 0, err
	}
	for wrong := false; ; {
		select {
		case ev, open := <-w.ResultChan():
			u, ok := ev.Object.(*unstructured.Unstructured)
			switch {
			case !open || !ok:
				return 0, fmt.Errorf("the watch of %s %s ends with %v", o.kind.Kind, o.name, ev.Object)
			case o.shows(u, o.edited):
				wrong = true
			case wrong && o.shows(u, o.declared):
				return time.Since(began), nil
			}
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}
