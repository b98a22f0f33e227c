package lint

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

const groupArgo = "argoproj.io"

// schemas are the Go types of the kinds that are checked strictly.
var schemas = map[string]reflect.Type{
	"Application":    reflect.TypeFor[v1alpha1.Application](),
	"ApplicationSet": reflect.TypeFor[v1alpha1.ApplicationSet](),
	"AppProject":     reflect.TypeFor[v1alpha1.AppProject](),
}

// hidden are the shapes of what the types keep as JSON, by the field's name.
var hidden = map[string]reflect.Type{
	"template": reflect.TypeFor[v1alpha1.ApplicationSetTemplate](),
	"matrix":   reflect.TypeFor[v1alpha1.NestedMatrixGenerator](),
	"merge":    reflect.TypeFor[v1alpha1.NestedMergeGenerator](),
}

var (
	typeJSON = reflect.TypeFor[apiextensionsv1.JSON]()
	typeTime = reflect.TypeFor[metav1.Time]()
	typeOr   = reflect.TypeFor[intstr.IntOrString]()
)

// checkFields compares a document with the Go type of its kind.
func checkFields(r *run, d *document) {
	t, ok := schemas[d.kind]
	if !ok || d.group() != groupArgo {
		return
	}
	if version := strings.TrimPrefix(d.apiVersion, groupArgo+"/"); version != "v1alpha1" {
		k, _ := pair(d.root, "apiVersion")
		r.report(d, k, "there is no %s in %s: write apiVersion: argoproj.io/v1alpha1", d.kind, d.apiVersion)
		return
	}
	s := schema{run: r, doc: d}
	s.check(d.root, t, "", "")
}

// schema is one strict comparison.
type schema struct {
	run *run
	doc *document
}

// check compares a node with a type; field is the name that it stands under.
func (s schema) check(n *node, t reflect.Type, path, field string) {
	n = resolve(n)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" || t == typeTime {
		return
	}
	if t == typeJSON {
		shape, ok := hidden[field]
		if !ok {
			return
		}
		t = shape
	}
	if t == typeOr {
		s.scalar(n, path, "a number or a text", "!!int", "!!str")
		return
	}
	switch t.Kind() { //nolint:exhaustive // the API has no other kinds
	case reflect.Struct:
		s.object(n, t, path)
	case reflect.Map:
		if s.shape(n, yaml.MappingNode, path, "a mapping") {
			entries(n, func(k, v *node) { s.check(v, t.Elem(), path+"."+k.Value, k.Value) })
		}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return
		}
		if s.shape(n, yaml.SequenceNode, path, "a list") {
			for _, e := range n.Content {
				s.check(e, t.Elem(), path+"[]", field)
			}
		}
	case reflect.String:
		s.scalar(n, path, "a text; put it in quotes", "!!str", "!!timestamp")
	case reflect.Bool:
		s.scalar(n, path, "true or false, without quotes", "!!bool")
	case reflect.Int, reflect.Int32, reflect.Int64:
		s.scalar(n, path, "a whole number, without quotes", "!!int")
	}
}

// object compares the keys of a mapping with the fields of a struct.
func (s schema) object(n *node, t reflect.Type, path string) {
	if !s.shape(n, yaml.MappingNode, path, "a mapping") {
		return
	}
	fields := map[string]reflect.Type{}
	fieldsOf(t, fields)
	entries(n, func(k, v *node) {
		// What the controller and the API server write is theirs.
		if k.Tag == "!!merge" || k.Value == "managedFields" || path == "" && (k.Value == "status" || k.Value == "operation") {
			return
		}
		ft, ok := fields[k.Value]
		if !ok {
			known := make([]string, 0, len(fields))
			for f := range fields {
				known = append(known, f)
			}
			s.run.report(s.doc, k, "there is no field %s%s", strings.TrimPrefix(path+"."+k.Value, "."), suggestion(k.Value, sorted(known)))
			return
		}
		s.check(v, ft, strings.TrimPrefix(path+"."+k.Value, "."), k.Value)
	})
}

// shape reports a node that is of another kind.
func (s schema) shape(n *node, kind yaml.Kind, path, want string) bool {
	if n.Kind == kind {
		return true
	}
	s.run.report(s.doc, n, "%s must be %s", path, want)
	return false
}

// scalar reports a value that has none of the tags.
func (s schema) scalar(n *node, path, want string, tags ...string) {
	if n.Kind == yaml.ScalarNode {
		for _, tag := range tags {
			if n.ShortTag() == tag {
				return
			}
		}
	}
	s.run.report(s.doc, n, "%s must be %s", path, want)
}

// fieldsOf collects the fields of a struct by their names in JSON.
func fieldsOf(t reflect.Type, into map[string]reflect.Type) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && f.Anonymous:
			fieldsOf(f.Type, into)
		case name != "":
			into[name] = f.Type
		}
	}
}
