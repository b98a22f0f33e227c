package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestWithoutUnknown takes out what a server's refusal names, and nothing else.
func TestWithoutUnknown(t *testing.T) {
	const head = "failed to create typed patch object (ns/web; apps/v1, Kind=Deployment): "
	for _, tc := range []struct {
		name, refusal string
		want          map[string]any
	}{
		{"one", head + ".spec.extra: field not declared in schema",
			map[string]any{"replicas": int64(1), "list": []any{map[string]any{"name": "a b", "more": "x"}, map[string]any{"name": "c", "more": "y"}}}},
		{"several", head + `errors: .spec.extra: field not declared in schema .spec.list[name="a b"].more: field not declared in schema`,
			map[string]any{"replicas": int64(1), "list": []any{map[string]any{"name": "a b"}, map[string]any{"name": "c", "more": "y"}}}},
		{"by place", head + ".spec.list[1].more: field not declared in schema",
			map[string]any{"replicas": int64(1), "extra": true, "list": []any{map[string]any{"name": "a b", "more": "x"}, map[string]any{"name": "c"}}}},
		{"another refusal", "field is immutable", nil},
		{"what is not there", head + ".spec.nothing: field not declared in schema", nil},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(1), "extra": true, "list": []any{
			map[string]any{"name": "a b", "more": "x"}, map[string]any{"name": "c", "more": "y"}}}}}
		before := obj.DeepCopy()
		got, ok := WithoutUnknown(obj, tc.refusal)
		if ok != (tc.want != nil) {
			t.Errorf("%s: %v", tc.name, ok)
		} else if ok {
			if diff := cmp.Diff(tc.want, got.Object["spec"]); diff != "" {
				t.Errorf("%s\n%s", tc.name, diff)
			}
		}
		if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
			t.Errorf("%s: the shared object was changed\n%s", tc.name, diff)
		}
	}
}
