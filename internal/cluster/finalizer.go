package cluster

import (
	"context"
	stdjson "encoding/json"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter"
)

// finalizerTries is how often the finalizers are read anew when somebody else
// changes them at the same time.
const finalizerTries = 5

// Unfinalize implements rutter.Cluster. The server itself makes sure that the list
// is still the one that was read, so that nobody else's finalizer is lost.
func (m *member) Unfinalize(ctx context.Context, gvk rutter.GVK, namespace, name, uid string, finalizers ...string) error {
	path, err := m.path(ctx, gvk, namespace, name)
	if err != nil {
		return notGone(err)
	}
	for try := 1; ; try++ {
		live, err := m.Get(ctx, gvk, namespace, name)
		if err != nil {
			return notGone(err)
		}
		before := live.GetFinalizers()
		after := slices.DeleteFunc(slices.Clone(before), func(f string) bool { return slices.Contains(finalizers, f) })
		if string(live.GetUID()) != uid || len(after) == len(before) {
			return nil
		}
		if err = m.setFinalizers(ctx, path, uid, before, after); notGone(err) == nil {
			return nil
		}
		if rutter.CodeOf(err) != rutter.CodeInvalid && rutter.CodeOf(err) != rutter.CodeConflict || try == finalizerTries {
			return err
		}
	}
}

func (m *member) setFinalizers(ctx context.Context, path, uid string, before, after []string) error {
	type op struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	const list = "/metadata/finalizers"
	ops := []op{{"test", "/metadata/uid", uid}, {"test", list, before}, {"replace", list, after}}
	if len(after) == 0 {
		ops[2] = op{Op: "remove", Path: list}
	}
	body, err := stdjson.Marshal(ops)
	if err != nil {
		return rutter.Errorf(rutter.CodeInternal, "encode the finalizers: %w", err)
	}
	release, err := m.writers.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	m.requests.patch.Add(1)
	_, err = m.do(ctx, request{method: http.MethodPatch, path: path, body: body, contentType: string(types.JSONPatchType),
		query: map[string][]string{"fieldManager": {rutter.FieldManager}}})
	return err
}

// notGone is the error, but for one that says that the object, or its kind, is no more.
func notGone(err error) error {
	if rutter.CodeOf(err) == rutter.CodeNotFound {
		return nil
	}
	return err
}
