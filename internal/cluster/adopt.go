package cluster

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/rutterhq/rutter"
)

// adoptTries is how often the fields of an object that changes at the same
// moment are taken over.
const adoptTries = 3

// hasFormer looks only at who the managers are: it runs after every apply. also is
// one more that counts, empty for none.
func hasFormer(live *unstructured.Unstructured, also string) bool {
	meta, _ := live.Object["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		e, _ := e.(map[string]any)
		manager, _ := e["manager"].(string)
		operation, _ := e["operation"].(string)
		subresource, _ := e["subresource"].(string)
		if former(manager, operation, subresource, also) {
			return true
		}
	}
	return false
}

func former(manager, operation, subresource, also string) bool {
	return rutter.FormerManager(manager, operation, subresource) || also != "" && manager == also && subresource == ""
}

// adopt takes over what a former manager owns and applies once more, so that
// what Git does not declare goes. It is done once for an object.
func (m *member) adopt(ctx context.Context, path string, obj *unstructured.Unstructured, body []byte, live *unstructured.Unstructured, opts rutter.ApplyOptions) (*unstructured.Unstructured, error) {
	gvk := rutter.GVKOf(obj)
	for try := 1; ; try++ {
		patch, err := adoption(live, opts.Former)
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInternal, "read who owns the fields of %s: %w", describe(gvk, obj.GetNamespace(), obj.GetName()), err)
		}
		m.requests.patch.Add(1)
		_, err = m.do(ctx, request{method: http.MethodPatch, path: path, body: patch, contentType: string(types.JSONPatchType),
			query: map[string][]string{"fieldManager": {rutter.FieldManager}}})
		if err == nil {
			break
		}
		if code := rutter.CodeOf(err); try == adoptTries || code != rutter.CodeConflict && code != rutter.CodeInvalid {
			return nil, rutter.Errorf(rutter.CodeOf(err), "take over the fields of %s from a former manager: %w", describe(gvk, obj.GetNamespace(), obj.GetName()), withoutSecrets(err, obj))
		}
		if live, err = m.Get(ctx, gvk, obj.GetNamespace(), obj.GetName()); err != nil {
			return nil, err
		}
		if !hasFormer(live, opts.Former) {
			break
		}
	}
	again, _, err := m.patchApply(ctx, gvk, obj, body, rutter.ApplyOptions{Manner: opts.Manner})
	if err != nil {
		return nil, withoutSecrets(err, obj)
	}
	return again, nil
}

// takeOver makes an object ours with a single write, where nothing but its marks
// and its owners is to change; takeover knows. Whatever stands in the way is no
// error: then it is applied as usual.
func (m *member) takeOver(ctx context.Context, obj *unstructured.Unstructured, body []byte, takeover rutter.Takeover) (*unstructured.Unstructured, bool) {
	gvk := rutter.GVKOf(obj)
	live, err := m.Get(ctx, gvk, obj.GetNamespace(), obj.GetName())
	if err != nil || !hasFormer(live, "") {
		return nil, false
	}
	told, path, err := m.patchApply(ctx, gvk, obj, body, rutter.ApplyOptions{DryRun: true})
	if err != nil {
		return nil, false
	}
	patch, ok := takeover(live, told)
	if !ok {
		return nil, false
	}
	m.requests.patch.Add(1)
	answer, err := m.do(ctx, request{method: http.MethodPatch, path: path, body: patch, contentType: string(types.JSONPatchType),
		query: map[string][]string{"fieldManager": {rutter.FieldManager}}})
	if err != nil {
		return nil, false
	}
	if live, err = decode(answer); err != nil {
		return nil, false
	}
	return live, true
}

// adoption is a JSON patch that gives the fields of former managers to Rutter,
// if the object is still the one that was seen.
func adoption(live *unstructured.Unstructured, also string) ([]byte, error) {
	var kept []metav1.ManagedFieldsEntry
	own, taken := -1, &fieldpath.Set{}
	for _, e := range live.GetManagedFields() {
		switch {
		case former(e.Manager, string(e.Operation), e.Subresource, also):
			fields, err := fieldsOf(e)
			if err != nil {
				return nil, err
			}
			taken = taken.Union(fields)
			continue
		case e.Manager == rutter.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "":
			own = len(kept)
		}
		kept = append(kept, e)
	}
	if own < 0 {
		return nil, rutter.Errorf(rutter.CodeInternal, "the object has no entry of %s although it was just applied", rutter.FieldManager)
	}
	fields, err := fieldsOf(kept[own])
	if err != nil {
		return nil, err
	}
	raw, err := taken.Union(fields).ToJSON()
	if err != nil {
		return nil, err //nolint:wrapcheck // adopt says what failed
	}
	kept[own].FieldsV1 = &metav1.FieldsV1{Raw: raw} //nolint:staticcheck // written back as it was read
	return stdjson.Marshal([]map[string]any{        //nolint:wrapcheck // likewise
		{"op": "replace", "path": "/metadata/managedFields", "value": kept},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
}

func fieldsOf(e metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if e.FieldsV1 == nil || strings.TrimSpace(string(e.FieldsV1.Raw)) == "" { //nolint:staticcheck // written back as it was read
		return set, nil
	}
	return set, set.FromJSON(bytes.NewReader(e.FieldsV1.Raw)) //nolint:staticcheck,wrapcheck // written back as it was read; adopt says what failed
}
