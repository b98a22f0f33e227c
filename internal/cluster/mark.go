package cluster

import (
	"context"
	stdjson "encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter"
)

// Mark implements rutter.Cluster. The server itself makes sure that it is still
// that object and that unit's.
func (m *member) Mark(ctx context.Context, gvk rutter.GVK, namespace, name string, mark rutter.Mark) (*unstructured.Unstructured, error) {
	path, err := m.path(ctx, gvk, namespace, name)
	if err != nil {
		return nil, err
	}
	patch, err := marking(mark)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "encode the marks of %s: %w", describe(gvk, namespace, name), err)
	}
	release, err := m.writers.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	m.requests.patch.Add(1)
	answer, err := m.do(ctx, request{method: http.MethodPatch, path: path, body: patch, contentType: string(types.JSONPatchType),
		query: map[string][]string{"fieldManager": {rutter.FieldManager}}})
	if err == nil {
		return decode(answer)
	}
	if rutter.CodeOf(err) != rutter.CodeInvalid {
		return nil, err
	}
	live, errLive := m.Get(ctx, gvk, namespace, name)
	switch {
	case errLive != nil:
		return nil, errLive
	case string(live.GetUID()) != mark.UID || live.GetLabels()[rutter.LabelUnit] != mark.From:
		return nil, rutter.Errorf(rutter.CodeConflict, "%s is another object, or another unit's, by now", describe(gvk, namespace, name))
	}
	return nil, err
}

// marking is a JSON patch that fails where the object is not as the mark says.
func marking(mark rutter.Mark) ([]byte, error) {
	const label, annotation = "/metadata/labels/rutter.dev~1unit", "/metadata/annotations/argocd.argoproj.io~1tracking-id"
	type op struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value"`
	}
	return stdjson.Marshal([]op{ //nolint:wrapcheck // the caller says what it was
		{"test", "/metadata/uid", mark.UID}, {"test", label, mark.From},
		{"add", label, mark.To}, {"add", annotation, mark.Tracking},
	})
}
