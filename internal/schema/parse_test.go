package schema_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/schema"
)

var widget = rutter.GVK{Group: "example.com", Version: "v1", Kind: "Widget"}

const body = `
      type: object
      x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Widget}]
      properties:
        parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [b, a], items: {$ref: "#/x/Part"}}
        names: {type: array, x-kubernetes-list-type: set, items: {type: string}}
        whole: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
        size: {allOf: [{$ref: "#/x/Size"}], default: 3}
        open: {type: object, additionalProperties: true}
    Part: {type: object, properties: {a: {type: string}, b: {type: string, default: z}, inner: {$ref: "#/x/Part"}}}
    Size: {type: integer}
`

// Both versions of OpenAPI describe the same.
func TestParse(t *testing.T) {
	t.Parallel()
	for version, text := range map[string]string{
		"v3": "components:\n  schemas:\n    Widget:" + body,
		"v2": "definitions:\n    Widget:" + body,
	} {
		s, err := schema.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		w := s.Of(widget)
		parts := w.Field("parts")
		if strings.Join(parts.Keys, ",") != "a,b" || parts.Item().Field("b").Default != "z" || parts.Item().Field("inner").Field("inner").Field("a") == nil {
			t.Errorf("%s: parts: %+v", version, parts)
		}
		if !w.Field("names").Set || !w.Field("whole").Atomic || w.Field("whole").Field("any").Kind != schema.Scalar {
			t.Errorf("%s: %+v", version, w.Fields)
		}
		if size := w.Field("size"); size.Default != 3.0 || size.Kind != schema.Scalar || s.Named("Size").HasDefault {
			t.Errorf("%s: a default belongs to its place: %+v %+v", version, size, s.Named("Size"))
		}
		if w.Field("none") != nil || w.Field("none").Field("x").Item().Known() || w.Field("open").Field("x") != nil {
			t.Errorf("%s: what is not described is known", version)
		}
	}
}

func TestFromDefinition(t *testing.T) {
	t.Parallel()
	u := &unstructured.Unstructured{}
	text := `{spec: {group: example.com, names: {kind: Widget}, versions: [{name: v0}, {name: v1, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string, default: x}}}}}]}}`
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	s, err := schema.FromDefinition(u)
	if err != nil || s.Len() != 1 || s.Of(widget).Field("a").Default != "x" {
		t.Errorf("%v %+v", err, s)
	}
	u.Object["spec"] = "nonsense"
	if _, err := schema.FromDefinition(u); err == nil {
		t.Error("nonsense is no error")
	}
}

// FuzzParse: whatever a file or a cluster says is read or refused, and a type
// that contains itself ends.
func FuzzParse(f *testing.F) {
	f.Add([]byte("components:\n  schemas:\n    Widget:" + body))
	f.Add([]byte(`{"definitions":{"a":{"$ref":"#/a","allOf":[{"$ref":"#/a"}],"x-kubernetes-group-version-kind":[{"kind":"a"}]}}}`))
	f.Add([]byte(`{"definitions":{"a":{"type":"object","default":{},"properties":{"a":{"$ref":"#/a","default":1}}}}}`))
	f.Add([]byte(`{"definitions":{"a":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := schema.Parse(data)
		if err != nil {
			return
		}
		at := s.Named("a")
		for range 100 {
			at = at.Field("a").Item()
		}
		u := &unstructured.Unstructured{}
		if yaml.Unmarshal(data, &u.Object) == nil && u.Object != nil {
			_, _ = schema.FromDefinition(u)
		}
	})
}
