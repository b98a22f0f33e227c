package compare_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

// read makes rules ready.
func read(t testing.TB, rules ...rutter.IgnoreRule) *compare.Rules {
	t.Helper()
	out, err := compare.NewRules(rules, rutter.CompareSettings{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStrip(t *testing.T) {
	t.Parallel()
	const object = `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: ns, annotations: {a/b: "1", c~d: "2"}}, spec: {l: [{x: 1, z: 2}, {x: 3}, {x: 4}], r: 3}}`
	tests := []struct {
		reason string
		rule   rutter.IgnoreRule
		want   string
	}{
		{"a field", rutter.IgnoreRule{Group: "example.com", Kind: "Widget", JSONPointers: []string{"/spec"}},
			`{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: ns, annotations: {a/b: "1", c~d: "2"}}}`},
		{"escapes", rutter.IgnoreRule{Group: "*.com", Kind: "W*", JSONPointers: []string{"/metadata/annotations/a~1b", "/metadata/annotations/c~0d"}},
			`{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: ns, annotations: {}}, spec: {l: [{x: 1, z: 2}, {x: 3}, {x: 4}], r: 3}}`},
		{"indices are those of the object as it was", rutter.IgnoreRule{Group: "*", Kind: "*", JSONPointers: []string{"/spec/l/0/z", "/spec/l/1", "/spec/l/2"}},
			`{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: ns, annotations: {a/b: "1", c~d: "2"}}, spec: {l: [{x: 1}], r: 3}}`},
		{"missing paths are no error", rutter.IgnoreRule{Group: "*", Kind: "*", JSONPointers: []string{"/spec/l/9", "/spec/l/x", "/none/a/b", "/spec/r/deeper"}}, object},
		{"the empty group is the core group only", rutter.IgnoreRule{Kind: "Widget", JSONPointers: []string{"/spec"}}, object},
		{"another name", rutter.IgnoreRule{Group: "*", Kind: "*", Name: "v", JSONPointers: []string{"/spec"}}, object},
		{"another namespace", rutter.IgnoreRule{Group: "*", Kind: "*", Namespace: "other", JSONPointers: []string{"/spec"}}, object},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			in := parse(t, object)
			got := compare.Strip(in, read(t, tt.rule))
			if d := cmp.Diff(parse(t, tt.want).Object, got.Object); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(parse(t, object).Object, in.Object); d != "" {
				t.Errorf("the input was changed: %s", d)
			}
		})
	}
}

func TestNewRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ rule, want string }{
		{"/spec/replicas", ""},
		{"/metadata/annotations/a~1b", ""},
		{"spec/replicas", `ignoreDifferences[1].jsonPointers[0]: "spec/replicas" is not a JSON pointer`},
		{"", `must start with "/"`},
		{"/a~2b", "is written ~0"},
		{"/a~", "is written ~0"},
	} {
		_, err := compare.NewRules([]rutter.IgnoreRule{{}, {Group: "*", Kind: "*", JSONPointers: []string{tt.rule}}}, rutter.CompareSettings{})
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%q: %v", tt.rule, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || rutter.CodeOf(err) != rutter.CodeInvalid):
			t.Errorf("%q: %v, want %q", tt.rule, err, tt.want)
		}
	}
	if _, err := compare.NewRules([]rutter.IgnoreRule{{Group: "[", Kind: "x"}}, rutter.CompareSettings{}); err == nil || !strings.Contains(err.Error(), "ignoreDifferences[0].group") {
		t.Errorf("a glob that can't be read: %v", err)
	}
}

// Scenario B27: what is sent keeps the live value of an ignored field, whoever
// owns it.
func TestRespect(t *testing.T) {
	t.Parallel()
	live := func(managed string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, annotations: {note: live}, managedFields: [` + managed + `]},
			spec: {replicas: 9, template: {spec: {containers: [{name: proxy, image: p}, {name: web, image: live, args: [a, b]}]}}}}`
	}
	const (
		oursAll = `{manager: rutter, operation: Apply, fieldsV1: {"f:metadata": {"f:annotations": {"f:note": {}}}, "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}, "f:args": {}}}}}}}}`
		scaler  = `{manager: hpa, operation: Update, subresource: scale, fieldsV1: {"f:spec": {"f:replicas": {}}}}`
	)
	desired := func(meta, spec, container string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: w` + meta + `}, spec: {` + spec + `template: {spec: {containers: [{name: web` + container + `}]}}}}`
	}
	full := desired(", annotations: {note: git}", "replicas: 3, ", ", image: git, args: [x, y]")
	tests := []struct {
		reason, pointer, desired, live, want string
	}{
		{"ours alone: sent with its live value, or the server would delete it", "/spec/replicas", full, live(oursAll),
			desired(", annotations: {note: git}", "replicas: 9, ", ", image: git, args: [x, y]")},
		{"another's: left out", "/spec/replicas", full, live(scaler),
			desired(", annotations: {note: git}", "", ", image: git, args: [x, y]")},
		{"ours and another's: left out, it keeps the other owner", "/spec/replicas", full, live(oursAll + ", " + scaler),
			desired(", annotations: {note: git}", "", ", image: git, args: [x, y]")},
		{"ours, and Git has dropped it: still sent, or it would vanish", "/metadata/annotations/note",
			desired("", "replicas: 3, ", ", image: git, args: [x, y]"), live(oursAll),
			desired(", annotations: {note: live}", "replicas: 3, ", ", image: git, args: [x, y]")},
		{"not live: not sent", "/spec/paused",
			desired("", "paused: true, ", ", image: git"), live(oursAll), desired("", "", ", image: git")},
		{"in a keyed list the element is found by its key", "/spec/template/spec/containers/0/image", full, live(oursAll),
			desired(", annotations: {note: git}", "replicas: 3, ", ", image: live, args: [x, y]")},
		{"a part of what is replaced as a whole is sent with its live value", "/spec/template/spec/containers/0/args/1", full, live(oursAll),
			desired(", annotations: {note: git}", "replicas: 3, ", ", image: git, args: [x, b]")},
		{"nobody's: left out", "/spec/replicas", full, live(""),
			desired(", annotations: {note: git}", "", ", image: git, args: [x, y]")},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			rule := rutter.IgnoreRule{Group: "apps", Kind: "Deployment", JSONPointers: []string{tt.pointer}}
			in := parse(t, tt.desired)
			got := compare.Respect(in, parse(t, tt.live), read(t, rule))
			if d := cmp.Diff(parse(t, tt.want).Object, got.Object); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(parse(t, tt.desired).Object, in.Object); d != "" {
				t.Errorf("the input was changed: %s", d)
			}
			if got := compare.Respect(in, nil, read(t, rule)); got != in {
				t.Error("an object that doesn't exist is not sent as declared")
			}
		})
	}
}
