package converge

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

// testB22: a custom resource leaves fields to the defaults of its definition. It
// is Synced, and drifts once somebody changes one of them that Git has come to set.
func testB22(t *testing.T, s *suite) {
	x := s.declared(t, `{"apiVersion":"cv.example.com/v1","kind":"Defaulted","metadata":{"name":"b22","namespace":"cv"},"spec":{"o":{"r":"s"}}}`)
	if r := s.judge(t, x, x.live, s.types); !r.Equal {
		t.Errorf("what the definition fills in is drift: %+v", r.Diffs)
	}
	byHand := s.edit(t, x, "changed", "spec", "a")
	if r := s.judge(t, x, byHand, s.types); !r.Equal {
		t.Errorf("a default that nobody declares is drift when it is changed: %+v", r.Diffs)
	}
	x = s.declared(t, `{"apiVersion":"cv.example.com/v1","kind":"Defaulted","metadata":{"name":"b22","namespace":"cv"},"spec":{"a":"x","o":{"r":"s"}}}`)
	byHand = s.edit(t, x, "changed", "spec", "a")
	r := s.judge(t, x, byHand, s.types)
	if r.Equal || r.Diffs[0].Path != ".spec.a" || r.Diffs[0].Manager != hand {
		t.Errorf("a field that Git sets by now is not found: %+v", r.Diffs)
	}
}

// testB23: the server writes kind, version and status into claim templates.
func testB23(t *testing.T, s *suite) {
	x := s.declared(t, `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"b23","namespace":"cv"},"spec":{"serviceName":"s","selector":{"matchLabels":{"a":"b23"}},
		"template":{"metadata":{"labels":{"a":"b23"}},"spec":{"containers":[{"name":"c","image":"i"}]}},
		"volumeClaimTemplates":[{"metadata":{"name":"d"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1024Mi"}}}}]}}`)
	claim, _, _ := unstructured.NestedSlice(x.live.Object, "spec", "volumeClaimTemplates")
	if c, _ := claim[0].(map[string]any); c["kind"] == nil || c["status"] == nil {
		t.Errorf("the server adds nothing any more, so this proves nothing: %v", claim)
	}
	if r := compare.Local(x.sent, x.live, compare.Options{Types: s.types}); !r.Equal {
		t.Errorf("not Synced: %+v", r.Diffs)
	}
}

// declared applies an object.
func (s *suite) declared(t *testing.T, text string) *shape {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	x := &shape{name: u.GetName(), raw: u.DeepCopy(), sent: u}
	s.apply(t, x)
	return x
}

// edit changes a field by hand.
func (s *suite) edit(t *testing.T, x *shape, v any, at ...any) *unstructured.Unstructured {
	t.Helper()
	live, err := s.resource(t, x).Get(t.Context(), x.sent.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	put(live.Object, at, v)
	if live, err = s.resource(t, x).Update(t.Context(), live, metav1.UpdateOptions{FieldManager: hand}); err != nil {
		t.Fatal(err)
	}
	return live
}

// testB26: what the server does not take is an error that says so, and never an
// answer that could be read as equal.
func testB26(t *testing.T, s *suite) {
	x := s.declared(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b26","namespace":"cv"},"immutable":true,"data":{"a":"b"}}`)
	commit := x.sent.DeepCopy()
	put(commit.Object, []any{"data", "a"}, "c")
	if compare.Local(commit, x.live, compare.Options{Types: s.types}).Equal {
		t.Error("another value is equal")
	}
	_, err := s.cluster.Apply(t.Context(), commit, rutter.ApplyOptions{DryRun: true})
	if rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Errorf("the dry run says %v", err)
	}
}
