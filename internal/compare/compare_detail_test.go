package compare_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

// What a person or another manager does, and what each comparison says of it.
func TestScaledByHand(t *testing.T) {
	t.Parallel()
	s := sampleOf(t, "deployment")
	before, _ := compare.OwnedHash(s.live, rutter.FieldManager, nil)
	edited := s.live.DeepCopy()
	set(t, edited, int64(9), "spec", "replicas")
	disown(t, edited, "f:spec", "f:replicas")
	foreign(t, edited, "kubectl", "Update", "scale", `{"f:spec":{"f:replicas":{}}}`)

	want := []rutter.FieldDiff{{Path: ".spec.replicas", Desired: "3", Live: "9", Manager: "kubectl"}}
	if r := compare.Local(s.desired, edited, ours); r.Equal || !cmp.Equal(r.Diffs, want) {
		t.Errorf("Local: %s", cmp.Diff(want, r.Diffs))
	}
	if r := compare.Predicted(s.predicted, edited, ours); r.Equal || !cmp.Equal(r.Diffs, want) {
		t.Errorf("Predicted: %s", cmp.Diff(want, r.Diffs))
	}
	if after, ok := compare.OwnedHash(edited, rutter.FieldManager, nil); !ok || after == before {
		t.Error("OwnedHash didn't change")
	}

	rules := read(t, ruleList...)
	ignoring := compare.Options{Rules: rules}
	if r := compare.Local(s.desired, edited, ignoring); !r.Equal {
		t.Errorf("Local with the rule: %+v", r.Diffs)
	}
	if r := compare.Predicted(s.predicted, edited, ignoring); !r.Equal {
		t.Errorf("Predicted with the rule: %+v", r.Diffs)
	}
	a, _ := compare.OwnedHash(s.live, rutter.FieldManager, rules)
	b, _ := compare.OwnedHash(edited, rutter.FieldManager, rules)
	if a != b {
		t.Error("OwnedHash counts an ignored field")
	}
}

// The value put back by somebody else is right, but not ours: the hash must
// notice, because it says that the ownership moved.
func TestOwnershipAloneChangesTheHash(t *testing.T) {
	t.Parallel()
	s := sampleOf(t, "deployment")
	before, _ := compare.OwnedHash(s.live, rutter.FieldManager, nil)
	edited := s.live.DeepCopy()
	disown(t, edited, "f:spec", "f:replicas")
	if after, _ := compare.OwnedHash(edited, rutter.FieldManager, nil); after == before {
		t.Error("OwnedHash didn't change")
	}
}

func TestLocal(t *testing.T) {
	t.Parallel()
	widget := func(spec, owned string) string {
		return "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: w\n" +
			"  managedFields:\n  - {manager: rutter, operation: Apply, fieldsV1: {\"f:spec\": " + owned + "}}\nspec: " + spec + "\n"
	}
	tests := []struct {
		reason        string
		desired, live string
		want          []string
	}{
		{
			"the same in another form of number", "{a: 1.0}", widget("{a: 1}", `{"f:a": {}}`), nil,
		},
		{
			"a custom resource's quantities are only text: the server never rewrites them",
			"{limits: {cpu: 1000m}}", widget(`{limits: {cpu: "1"}}`, `{"f:limits": {"f:cpu": {}}}`),
			[]string{".spec.limits.cpu"},
		},
		{
			"text and number are different", `{port: "80"}`, widget("{port: 80}", `{"f:port": {}}`), []string{".spec.port"},
		},
		{
			"null and absent are the same", "{a: null, b: 1}", widget("{b: 1}", `{"f:b": {}}`), nil,
		},
		{
			"null against a value is for the server to say", "{a: null}", widget("{a: 1}", `{"f:a": {}}`), []string{".spec.a"},
		},
		{
			"a default that Git never set", "{a: 1}", widget("{a: 1, d: 3}", `{"f:a": {}}`), nil,
		},
		{
			"B22: somebody changes a defaulted field that Git now sets", "{a: 1, d: 3}",
			widget("{a: 1, d: 4}", `{"f:a": {}, "f:d": {}}`), []string{".spec.d"},
		},
		{
			"removed from Git, still ours", "{a: 1}", widget("{a: 1, b: 2}", `{"f:a": {}, "f:b": {}}`), []string{".spec.b"},
		},
		{
			"a whole map removed from Git: its fields that are ours, not those of others", "{a: 1}",
			widget("{a: 1, m: {x: 1, y: 2}}", `{"f:a": {}, "f:m": {"f:x": {}}}`), []string{".spec.m.x"},
		},
		{
			"an element removed from Git", "{rows: [{id: 1}]}",
			widget("{rows: [{id: 1}, {id: 2}]}", `{"f:rows": {"k:{\"id\":1}": {".": {}, "f:id": {}}, "k:{\"id\":2}": {".": {}, "f:id": {}}}}`),
			[]string{".spec.rows[id=2]"},
		},
		{
			"another's element", "{rows: [{id: 1}]}",
			widget("{rows: [{id: 3}, {id: 1}]}", `{"f:rows": {"k:{\"id\":1}": {".": {}, "f:id": {}}}}`), nil,
		},
		{
			"our elements in another order", "{rows: [{id: 2}, {id: 1}]}",
			widget("{rows: [{id: 1}, {id: 2}]}", `{"f:rows": {"k:{\"id\":1}": {".": {}, "f:id": {}}, "k:{\"id\":2}": {".": {}, "f:id": {}}}}`),
			[]string{".spec.rows"},
		},
		{
			"an element of a set removed from Git", "{tags: [a]}",
			widget("{tags: [a, b]}", `{"f:tags": {"v:\"a\"": {}, "v:\"b\"": {}}}`), []string{`.spec.tags[="b"]`},
		},
		{
			"an element missing from a set", "{tags: [a, b]}",
			widget("{tags: [b]}", `{"f:tags": {"v:\"a\"": {}, "v:\"b\"": {}}}`), []string{`.spec.tags[="a"]`},
		},
		{
			"a list that is replaced as a whole has another length", "{l: [a]}",
			widget("{l: [a, b]}", `{"f:l": {}}`), []string{".spec.l"},
		},
		{
			"a list of which nothing is known may not hold more", "{l: [{name: a}]}",
			widget("{l: [{name: a}, {name: b}]}", `{}`), []string{".spec.l"},
		},
		{
			"a map that is ours as a whole may not hold more", "{sel: {a: b}}",
			widget("{sel: {a: b, c: d}}", `{"f:sel": {}}`), []string{".spec.sel.c"},
		},
		{
			"a map of which nothing is known may not hold more", "{sel: {a: b}}",
			widget("{sel: {a: b, c: d}}", `{"f:other": {}}`), []string{".spec.sel.c"},
		},
		{
			"another shape", "{a: {b: 1}}", widget("{a: text}", `{"f:a": {"f:b": {}}}`), []string{".spec.a"},
		},
		{
			"false is not absent in a custom resource", "{a: false}", widget("{}", `{"f:a": {}}`), []string{".spec.a"},
		},
		{
			"names that need quotes", "{a.b/c: 1}", widget("{a.b/c: 2}", `{"f:a.b/c": {}}`), []string{`.spec["a.b/c"]`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			desired := parse(t, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: "+tt.desired+"\n")
			r := compare.Local(desired, parse(t, tt.live), ours)
			if got := paths(r); !cmp.Equal(got, append([]string{}, tt.want...)) || r.Equal != (len(tt.want) == 0) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestFalseEqualInsideAtomicIsNotSaid(t *testing.T) {
	t.Parallel()
	s := sampleOf(t, "deployment")
	sources := []any{"spec", "template", "spec", "tolerations", 0, "effect"}
	edited := s.desired.DeepCopy()
	set(t, edited, nil, sources...)
	r := compare.Local(edited, s.live, ours)
	want := []string{".spec.template.spec.tolerations[0].effect"}
	if got := paths(r); !cmp.Equal(got, want) {
		t.Errorf("an effect removed from a toleration: %v, want %v", got, want)
	}
}

func TestMissingSide(t *testing.T) {
	t.Parallel()
	s := sampleOf(t, "secret")
	for name, r := range map[string]compare.Result{
		"no live object":      compare.Local(s.desired, nil, ours),
		"no desired object":   compare.Local(nil, s.live, ours),
		"no prediction":       compare.Predicted(nil, s.live, ours),
		"nothing to predict":  compare.Predicted(s.predicted, nil, ours),
		"neither side at all": compare.Local(nil, nil, ours),
	} {
		if r.Equal {
			t.Errorf("%s: equal", name)
		}
		if text := fmt.Sprint(r); strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") {
			t.Errorf("%s: shows the value of a Secret: %s", name, text)
		}
	}
}

func TestDiffsAreCapped(t *testing.T) {
	t.Parallel()
	desired, live := parse(t, "{apiVersion: v1, kind: ConfigMap}"), parse(t, "{apiVersion: v1, kind: ConfigMap}")
	data := map[string]any{}
	for i := range 80 {
		data[fmt.Sprintf("key%03d", i)] = strings.Repeat("é", 3000)
	}
	set(t, desired, data, "data")
	set(t, live, map[string]any{}, "data")
	r := compare.Local(desired, live, ours)
	if len(r.Diffs) != 51 || r.Diffs[50].Path != "and 30 more" || r.Diffs[0].Path != ".data.key000" {
		t.Errorf("%d entries, the last is %q", len(r.Diffs), r.Diffs[len(r.Diffs)-1].Path)
	}
	if n := len(r.Diffs[0].Desired); n > 1100 || !strings.HasSuffix(r.Diffs[0].Desired, ` bytes in all)"`) {
		t.Errorf("a long value is shown with %d bytes: …%s", n, r.Diffs[0].Desired[n-30:])
	}
}

// A webhook's change of a field that isn't ours is no drift; one of ours is.
func TestPredictedWebhook(t *testing.T) {
	t.Parallel()
	s := sampleOf(t, "deployment")
	predicted := s.predicted.DeepCopy()
	set(t, predicted, "Never", "spec", "template", "spec", "containers", 0, "imagePullPolicy")
	set(t, predicted, "injected", "metadata", "annotations", "webhook.example.com/x")
	if r := compare.Predicted(predicted, s.live, ours); !r.Equal {
		t.Errorf("foreign fields: %+v", r.Diffs)
	}
	set(t, predicted, "mirror/nginx", "spec", "template", "spec", "containers", 0, "image")
	r := compare.Predicted(predicted, s.live, ours)
	want := []string{`.spec.template.spec.containers[name="web"].image`}
	if got := paths(r); !cmp.Equal(got, want) {
		t.Errorf("our field: %v, want %v", got, want)
	}
	set(t, predicted, nil, "metadata", "managedFields")
	set(t, predicted, "Never", "spec", "template", "spec", "containers", 0, "imagePullPolicy")
	if r := compare.Predicted(predicted, s.live, ours); len(r.Diffs) < 3 {
		t.Errorf("without ownership every difference counts: %v", paths(r))
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	a := parse(t, `{apiVersion: v1, kind: X, spec: {a: 1, b: [1, 2], c: "1"}}`)
	b := parse(t, `{kind: X, spec: {c: "1", b: [1.0, 2], a: 1.0}, apiVersion: v1}`)
	if compare.Hash(a) != compare.Hash(b) {
		t.Error("order or form of a number counts")
	}
	for reason, text := range map[string]string{
		"order of a list": `{apiVersion: v1, kind: X, spec: {a: 1, b: [2, 1], c: "1"}}`,
		"text for number": `{apiVersion: v1, kind: X, spec: {a: 1, b: [1, 2], c: 1}}`,
		"moved quotes":    `{apiVersion: v1, kind: X, spec: {a: 1, b: [12], c: "1"}}`,
		"null for absent": `{apiVersion: v1, kind: X, spec: {a: 1, b: [1, 2], c: "1", d: null}}`,
		"empty for null":  `{apiVersion: v1, kind: X, spec: {a: 1, b: [1, 2], c: "1", d: {}}}`,
	} {
		if compare.Hash(a) == compare.Hash(parse(t, text)) {
			t.Errorf("%s: the hash is the same", reason)
		}
	}
}
