package cluster

import (
	"context"
	stdjson "encoding/json"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter"
)

// Mark implements rutter.Cluster. The server itself makes sure that it is still
// that object and that unit's.
func (m *member) Mark(ctx context.Context, gvk rutter.GVK, namespace, name string, mark rutter.Mark) (*unstructured.Unstructured, error) {
	answer, err := m.patchJSON(ctx, gvk, namespace, name, []patchOp{
		{"test", "/metadata/uid", mark.UID}, {"test", labelPath, mark.From},
		{"add", labelPath, mark.To}, {"add", trackingPath, mark.Tracking},
	})
	if err == nil {
		return decode(answer)
	}
	return nil, m.whose(ctx, gvk, namespace, name, mark, err)
}

// Unmark implements rutter.Cluster. An object without the annotation is tried
// once more without it.
func (m *member) Unmark(ctx context.Context, gvk rutter.GVK, namespace, name string, mark rutter.Mark) error {
	ops := []patchOp{{"test", "/metadata/uid", mark.UID}, {"test", labelPath, mark.From}, {Op: "remove", Path: labelPath}}
	_, err := m.patchJSON(ctx, gvk, namespace, name, append(slices.Clip(ops), patchOp{Op: "remove", Path: trackingPath}))
	if rutter.CodeOf(err) == rutter.CodeInvalid {
		_, err = m.patchJSON(ctx, gvk, namespace, name, ops)
	}
	if err == nil {
		return nil
	}
	return m.whose(ctx, gvk, namespace, name, mark, err)
}

const (
	labelPath    = "/metadata/labels/rutter.dev~1unit"
	trackingPath = "/metadata/annotations/argocd.argoproj.io~1tracking-id"
)

// patchOp is one operation of a JSON patch.
type patchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value,omitempty"`
}

func (m *member) patchJSON(ctx context.Context, gvk rutter.GVK, namespace, name string, ops []patchOp) ([]byte, error) {
	path, err := m.path(ctx, gvk, namespace, name)
	if err != nil {
		return nil, err
	}
	patch, err := stdjson.Marshal(ops)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "encode a patch of %s: %w", describe(gvk, namespace, name), err)
	}
	release, err := m.writers.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	m.requests.patch.Add(1)
	return m.do(ctx, request{method: http.MethodPatch, path: path, body: patch, contentType: string(types.JSONPatchType),
		query: map[string][]string{"fieldManager": {rutter.FieldManager}}})
}

// whose makes a refusal of a patch a conflict where the object is another one, or
// another unit's.
func (m *member) whose(ctx context.Context, gvk rutter.GVK, namespace, name string, mark rutter.Mark, refused error) error {
	if rutter.CodeOf(refused) != rutter.CodeInvalid {
		return refused
	}
	live, errLive := m.Get(ctx, gvk, namespace, name)
	switch {
	case errLive != nil:
		return errLive
	case string(live.GetUID()) != mark.UID || live.GetLabels()[rutter.LabelUnit] != mark.From:
		return rutter.Errorf(rutter.CodeConflict, "%s is another object, or another unit's, by now", describe(gvk, namespace, name))
	}
	return refused
}
