package manifest_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/manifest"
)

func TestSplit(t *testing.T) {
	type doc struct {
		Line int
		Text string
	}
	tests := map[string]struct {
		in   string
		want []doc
	}{
		"one":                       {"a: 1\n", []doc{{1, "a: 1"}}},
		"two":                       {"a: 1\n---\nb: 2\n", []doc{{1, "a: 1"}, {3, "b: 2"}}},
		"leading marker":            {"---\na: 1\n", []doc{{2, "a: 1"}}},
		"comments are no documents": {"# x\n---\n# y\n\n---\n\n# z\na: 1\n---\n", []doc{{8, "a: 1"}}},
		"content beside the marker": {"--- {a: 1}\n--- # c\nb: 2", []doc{{1, "{a: 1}"}, {3, "b: 2"}}},
		"no marker inside a line":   {"a: |\n  ---\n  x\nb: '---'\n----: 1\n", []doc{{1, "a: |\n  ---\n  x\nb: '---'\n----: 1"}}},
		"end marker":                {"a: 1\n...\nb: 2\n", []doc{{1, "a: 1"}, {3, "b: 2"}}},
		"Windows lines and BOM":     {"\xEF\xBB\xBFa: 1\r\n---\r\nb: 2\r\n", []doc{{1, "a: 1"}, {3, "b: 2"}}},
		"directives":                {"%YAML 1.1\n---\na: 1\n", []doc{{3, "a: 1"}}},
		"nothing":                   {"", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []doc
			for _, d := range manifest.Split([]byte(tt.in)) {
				var kept []string
				for line := range strings.Lines(string(d.Data)) {
					line = strings.TrimRight(line, "\r\n")
					if text := strings.TrimSpace(line); text == "" || text[0] == '#' {
						continue
					}
					if len(kept) == 0 {
						line = strings.TrimSpace(line)
					}
					kept = append(kept, line)
				}
				got = append(got, doc{d.Line, strings.Join(kept, "\n")})
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func objects(t *testing.T, text string) ([]rutter.Object, error) {
	t.Helper()
	var out []rutter.Object
	for _, d := range manifest.Split([]byte(text)) {
		v, err := manifest.Decode(d, "f.yaml")
		if err != nil {
			return nil, err
		}
		objs, err := manifest.Objects(v, rutter.Origin{File: "f.yaml", Line: d.Line})
		if err != nil {
			return nil, err
		}
		out = append(out, objs...)
	}
	return out, nil
}

func TestErrorsNamePlace(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n"
	tests := map[string]struct{ in, want string }{
		"repeated key":      {head + "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\ndata:\n  k: 1\n  k: 2\n", `f.yaml:11: the key "k" appears twice in one mapping`},
		"repeated top key":  {"# c\na: 1\na: 2\n", `f.yaml:3: the key "a" appears twice`},
		"bad syntax":        {head + "a: b: c\n", "f.yaml:5: is not valid YAML"},
		"no kind":           {head + "\n\napiVersion: v1\nmetadata: {name: x}\n", "f.yaml:7: an object \"x\" has no kind"},
		"no version":        {"kind: Pod\nmetadata: {name: x}\n", `f.yaml:1: Pod "x" has no apiVersion`},
		"no name":           {"apiVersion: v1\nkind: Pod\nmetadata: {labels: {a: b}}\n", "f.yaml:1: Pod has no metadata.name"},
		"no metadata":       {"apiVersion: v1\nkind: Pod\n", "Pod has no metadata.name"},
		"a number as name":  {"apiVersion: v1\nkind: Pod\nmetadata: {name: 5}\n", "metadata.name must be a string, it is a number"},
		"a label no string": {"apiVersion: v1\nkind: Pod\nmetadata: {name: x, labels: {on: yes}}\n", `metadata.labels["true"] must be a string, it is a boolean: put it in quotes`},
		"a list":            {"- a\n", "must be a mapping, this is a list"},
		"bad item":          {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n- {kind: Pod}\n", "items[1]: Pod has no apiVersion"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := objects(t, tt.in)
			if err == nil || !strings.Contains(err.Error(), tt.want) || rutter.CodeOf(err) != rutter.CodeInvalid {
				t.Errorf("want %q, got %v", tt.want, err)
			}
		})
	}
}

func TestObjects(t *testing.T) {
	objs, err := objects(t, `
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMapList
  items:
  - metadata: {name: a, annotations: }
    data: {n: "1"}
---
apiVersion: v1
kind: List
items:
---
# nothing
---
apiVersion: batch/v1
kind: Job
metadata: {generateName: job-}
spec: {completions: 9007199254740993, ratio: 0.5}
---
apiVersion: example.com/v1
kind: AllowList
metadata: {name: no-list}
spec: {}
`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objs {
		got = append(got, o.GetAPIVersion()+" "+o.GetKind()+" "+o.GetName()+o.GetGenerateName())
	}
	if diff := cmp.Diff([]string{"v1 ConfigMap a", "batch/v1 Job job-", "example.com/v1 AllowList no-list"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	spec, _ := objs[1].Object["spec"].(map[string]any)
	if spec["completions"] != int64(9007199254740993) || spec["ratio"] != 0.5 {
		t.Errorf("numbers: %#v", spec)
	}
	objs[1].DeepCopy() // panics on types that unstructured objects may not hold
}

// TestLists: what a list kind stands for.
func TestLists(t *testing.T) {
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}}"
	nested := func(n int) string {
		return strings.Repeat("{apiVersion: v1, kind: List, items: [", n) + pod + strings.Repeat("]}", n)
	}
	tests := map[string]struct {
		in     string
		want   []string
		err    string
		reason string
	}{
		"no items":                  {in: "{apiVersion: v1, kind: List}"},
		"null items":                {in: "{apiVersion: v1, kind: List, items: null}"},
		"empty items":               {in: "{apiVersion: v1, kind: PodList, items: []}"},
		"null in items":             {in: "{apiVersion: v1, kind: List, items: [null, " + pod + ", ~]}", want: []string{"v1 Pod p"}},
		"items that are none":       {in: "{apiVersion: v1, kind: List, items: {a: b}}", err: "f.yaml:1: items of a List must be a list, it is a mapping (document 1)"},
		"items that are a text":     {in: "{apiVersion: v1, kind: List, items: x}", err: "items of a List must be a list, it is a string"},
		"a typed list":              {in: "{apiVersion: apps/v1, kind: DeploymentList, items: [{metadata: {name: d}}]}", want: []string{"apps/v1 Deployment d"}, reason: "its items need not repeat what it says"},
		"a typed list of others":    {in: "{apiVersion: v1, kind: PodList, items: [{kind: Secret, metadata: {name: s}}]}", want: []string{"v1 Secret s"}},
		"a typed null list":         {in: "{apiVersion: v1, kind: PodList, items: }"},
		"an object named like one":  {in: "{apiVersion: x/v1, kind: AllowList, metadata: {name: a}}", want: []string{"x/v1 AllowList a"}},
		"an object with items":      {in: "{apiVersion: x/v1, kind: Cart, metadata: {name: c}, items: [1, 2]}", want: []string{"x/v1 Cart c"}, reason: "its kind is no list's"},
		"a list of lists":           {in: nested(3), want: []string{"v1 Pod p"}},
		"lists without end":         {in: nested(20), err: "lists are nested too deeply"},
		"an item that is no object": {in: "{apiVersion: v1, kind: List, items: [" + pod + ", text]}", err: "f.yaml:1: items[1]: a Kubernetes object must be a mapping, this is a string (document 1)"},
		"an item of an item":        {in: "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [{kind: Pod}]}]}", err: "items[0]: Pod has no apiVersion"},
		"a JSON list":               {in: `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}]}`, want: []string{"v1 Pod p"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			docs, err := manifest.Documents([]byte(tt.in), "f.yaml")
			if err != nil {
				t.Fatal(err)
			}
			v, err := manifest.Decode(docs[0], "f.yaml")
			if err != nil {
				t.Fatal(err)
			}
			objs, err := docs[0].Objects(v, "f.yaml")
			var got []string
			for _, o := range objs {
				got = append(got, o.GetAPIVersion()+" "+o.GetKind()+" "+o.GetName())
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("want error %q, got %v", tt.err, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestLenientDecodingWarns(t *testing.T) {
	v, warning, err := manifest.DecodeLenient(manifest.Split([]byte("a: 1\na: 2\n"))[0], "x.yaml")
	m, _ := v.(map[string]any)
	if err != nil || m["a"] != int64(2) || !strings.Contains(warning, "x.yaml") || !strings.Contains(warning, `"a"`) {
		t.Errorf("%v, warning %q, error %v", v, warning, err)
	}
}

// FuzzSplit: no content is lost, lines are right, and nothing panics.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"a: 1\n---\nb: 2\n", "--- {a: 1}\n...\n", "%YAML 1.1\n---\n- x", "\r\n---\r\n\t\n", "---", "# c\n--- |\n x\n", "{}{}\n{\n}\n---\n\uFEFFa: 1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !utf8.Valid(data) {
			return // it may be UTF-16: FuzzManifest
		}
		lines := bytes.SplitAfter(bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF")), []byte("\n"))
		last := 0
		for _, d := range manifest.Split(data) {
			if d.Line < last || d.First > d.Line || d.Line > len(lines) {
				t.Fatalf("line %d after %d of %d", d.Line, last, len(lines))
			}
			last = d.Line
			first := bytes.TrimSpace(bytes.SplitAfter(d.Data, []byte("\n"))[d.Line-d.First])
			if len(first) == 0 || !bytes.Contains(lines[d.Line-1], first) {
				t.Fatalf("line %d is %q, not %q", d.Line, lines[d.Line-1], first)
			}
			if v, err := manifest.Decode(d, "f"); err == nil {
				_, _ = manifest.Objects(v, rutter.Origin{})
			}
		}
	})
}
