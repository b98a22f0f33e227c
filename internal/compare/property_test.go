package compare_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

// decodeFloats decodes like encoding/json: every number a float64, every map anew.
func decodeFloats(t testing.TB, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	b, err := json.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := json.Unmarshal(b, &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

// Neither the order of maps nor the form of numbers nor the order of the
// entries of managedFields changes any answer.
func TestAnswersDontDependOnForm(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t) {
		want, _ := compare.OwnedHash(s.live, rutter.FieldManager, nil)
		wantHash := compare.Hash(s.desired)
		for range 20 {
			live, desired := decodeFloats(t, s.live), decodeFloats(t, s.desired)
			foreign(t, live, "other", "Apply", "", `{"f:spec":{"f:x":{}}}`)
			foreign(t, live, rutter.FieldManager, "Update", "", `{"f:spec":{"f:replicas":{}}}`)
			foreign(t, live, rutter.FieldManager, "Apply", "status", `{"f:status":{"f:replicas":{}}}`)
			if got, ok := compare.OwnedHash(live, rutter.FieldManager, nil); !ok || got != want {
				t.Fatalf("%s: OwnedHash %s, want %s", s.name, got, want)
			}
			if got := compare.Hash(desired); got != wantHash {
				t.Fatalf("%s: Hash %s, want %s", s.name, got, wantHash)
			}
			if r := compare.Local(desired, s.live, ours); fmt.Sprint(paths(r)) != fmt.Sprint(paths(compare.Local(s.desired, live, ours))) {
				t.Fatalf("%s: Local depends on the form", s.name)
			}
		}
	}
}

func TestOwnedHashNeedsAnApplyOfOurs(t *testing.T) {
	t.Parallel()
	u := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}`)
	foreign(t, u, rutter.FieldManager, "Update", "", `{"f:data":{"f:a":{}}}`)
	foreign(t, u, rutter.FieldManager, "Apply", "status", `{"f:status":{}}`)
	foreign(t, u, "argocd-controller", "Apply", "", `{"f:data":{"f:a":{}}}`)
	if h, ok := compare.OwnedHash(u, rutter.FieldManager, nil); ok || h != "" {
		t.Errorf("got %q", h)
	}
	if _, ok := compare.OwnedHash(nil, rutter.FieldManager, nil); ok {
		t.Error("nil is ours")
	}
	if compare.Applied(u, rutter.FieldManager) || !compare.Applied(u, "argocd-controller") {
		t.Error("Applied doesn't say who applied")
	}
	foreign(t, u, rutter.FieldManager, "Apply", "", `{"f:data":{"f:a":{}}}`)
	one, _ := compare.OwnedHash(u, rutter.FieldManager, nil)
	foreign(t, u, rutter.FieldManager, "Apply", "", `{"f:metadata":{"f:name":{}}}`)
	if two, _ := compare.OwnedHash(u, rutter.FieldManager, nil); one == two {
		t.Error("of two entries for two API versions only one counts")
	}
}

// Fields that nobody could have written as they are: no panic, and an object
// is equal to itself whatever its managedFields say.
func FuzzCompare(f *testing.F) {
	for _, s := range samples(f) {
		d, err := json.Marshal(s.desired.Object)
		if err != nil {
			f.Fatal(err)
		}
		l, err := json.Marshal(s.live.Object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(d, l, "/spec/replicas")
	}
	f.Add([]byte(`{"spec":[[null,{"a":{}}]]}`), []byte(`{"metadata":{"managedFields":[{"manager":"rutter","operation":"Apply","fieldsV1":{"f:spec":{"k:{":{},"v:":{},"i:0":{}," ":1}}}]},"spec":[1]}`), "/spec/0/-")
	f.Fuzz(func(t *testing.T, desired, live []byte, pointer string) {
		var d, l map[string]any
		if json.Unmarshal(desired, &d) != nil || json.Unmarshal(live, &l) != nil || d == nil || l == nil {
			return
		}
		a, b := &unstructured.Unstructured{Object: d}, &unstructured.Unstructured{Object: l}
		ignore, err := compare.NewRules([]rutter.IgnoreRule{{Group: "*", Kind: "*", JSONPointers: []string{pointer}, JQ: []string{pointer}}}, rutter.CompareSettings{})
		if err != nil {
			ignore = nil
		}
		opts := compare.Options{Rules: ignore}
		r := compare.Local(a, b, opts)
		if r.Equal == (len(r.Diffs) > 0) {
			t.Errorf("equal %v with %d differences", r.Equal, len(r.Diffs))
		}
		compare.Predicted(a, b, opts)
		if r := compare.Predicted(b, b, ours); !r.Equal {
			t.Errorf("an object and itself: %+v", r.Diffs)
		}
		one, ok := compare.OwnedHash(b, rutter.FieldManager, ignore)
		if two, ok2 := compare.OwnedHash(b, rutter.FieldManager, ignore); one != two || ok != ok2 {
			t.Error("OwnedHash isn't stable")
		}
		if compare.Hash(compare.Strip(a, ignore)) == "" || compare.Respect(a, b, ignore) == nil {
			t.Error("nothing")
		}
	})
}
