package cluster

import (
	"context"
	stdjson "encoding/json"
	"maps"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter"
)

var _ rutter.Amender = (*member)(nil)

// Amend implements rutter.Amender. What changes the status goes to the status first,
// where the kind has it apart; what is left goes to the object as it is then.
func (m *member) Amend(ctx context.Context, live *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error) {
	gvk := rutter.GVKOf(live)
	path, err := m.path(ctx, gvk, live.GetNamespace(), live.GetName())
	if err != nil {
		return nil, err
	}
	release, err := m.writers.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	rest := maps.Clone(patch)
	if status, ok := rest["status"]; ok {
		told, err := m.mergePatch(ctx, path+"/status", live, map[string]any{"status": status})
		switch {
		case rutter.CodeOf(err) == rutter.CodeNotFound: // the kind has no status apart
		case err != nil:
			return nil, err
		default:
			live = told
			delete(rest, "status")
		}
	}
	if len(rest) == 0 {
		return live, nil
	}
	return m.mergePatch(ctx, path, live, rest)
}

// mergePatch changes an object only in the version that was looked at.
func (m *member) mergePatch(ctx context.Context, path string, live *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error) {
	meta, _ := patch["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["resourceVersion"], meta["uid"] = live.GetResourceVersion(), string(live.GetUID())
	patch = maps.Clone(patch)
	patch["metadata"] = meta
	body, err := stdjson.Marshal(patch)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "encode a patch of %s: %w", describe(rutter.GVKOf(live), live.GetNamespace(), live.GetName()), err)
	}
	m.requests.patch.Add(1)
	answer, err := m.do(ctx, request{method: http.MethodPatch, path: path, body: body, contentType: string(types.MergePatchType), query: byPerson(), once: true})
	if err != nil {
		return nil, withoutSecrets(err, live)
	}
	return decode(answer)
}

// Create implements rutter.Amender.
func (m *member) Create(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk := rutter.GVKOf(obj)
	path, err := m.path(ctx, gvk, obj.GetNamespace(), "")
	if err != nil {
		return nil, err
	}
	body, err := obj.MarshalJSON()
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "encode %s: %w", describe(gvk, obj.GetNamespace(), obj.GetName()), err)
	}
	release, err := m.writers.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	m.requests.other.Add(1)
	answer, err := m.do(ctx, request{method: http.MethodPost, path: path, body: body, contentType: jsonType, query: byPerson(), once: true})
	if err != nil {
		return nil, withoutSecrets(err, obj)
	}
	return decode(answer)
}

// byPerson says that it is no sync that writes: what a sync owns stays known.
func byPerson() url.Values {
	return url.Values{"fieldManager": {rutter.ActionManager}, "fieldValidation": {"Strict"}}
}
