package argo

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// Decode reads a YAML or JSON file of any number of documents, as kubectl
// would with strict validation: unknown fields, repeated keys and values of
// the wrong type are errors that name the file, the line and the field. Lists
// are taken apart. The kinds of this dialect, Secrets and ConfigMaps come as
// their types, all others unstructured.
//
// Everything wrong in the file is in the one error; the objects are those that
// nothing is wrong with.
func Decode(data []byte, file string) ([]runtime.Object, error) {
	d := &decoder{file: file}
	for _, doc := range documents(string(data)) {
		d.document(doc)
	}
	return d.objects, errors.Join(d.problems...)
}

type decoder struct {
	file     string
	objects  []runtime.Object
	problems []error
}

// problem records what is wrong at a line.
func (d *decoder) problem(line int, format string, args ...any) {
	d.problems = append(d.problems, &rutter.Error{Code: rutter.CodeInvalid, Message: fmt.Sprintf(format, args...), File: d.file, Line: line})
}

func (d *decoder) document(doc document) {
	tree, err := parseTree(doc)
	if err != nil {
		line, what := syntaxProblem(err, doc)
		d.problem(line, "%s", what)
		return
	}
	if tree == nil {
		return // nothing but comments
	}
	before := len(d.problems)
	for _, r := range tree.repeated() {
		d.problem(r.line, "key %q already set in map (field %s, first on line %d): write it once", r.key, r.path, r.first)
	}
	if len(d.problems) > before {
		return
	}
	raw, err := yaml.YAMLToJSON([]byte(doc.text))
	if err != nil {
		line, what := syntaxProblem(err, doc)
		d.problem(line, "%s", what)
		return
	}
	d.object(raw, tree, "")
}

// object decodes one object, or each of a list; at is its path in the document.
func (d *decoder) object(raw []byte, tree *tree, at string) {
	var meta struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	line := tree.line(at)
	if err := json.Unmarshal(raw, &meta); err != nil {
		d.problem(line, "not a Kubernetes object: apiVersion and kind must be strings")
		return
	}
	gv, err := schema.ParseGroupVersion(meta.APIVersion)
	switch {
	case meta.APIVersion == "":
		d.problem(line, "Object 'apiVersion' is missing")
		return
	case meta.Kind == "":
		d.problem(line, "Object 'Kind' is missing")
		return
	case err != nil:
		d.problem(tree.line(join(at, "apiVersion")), "apiVersion %q is not a group and a version", meta.APIVersion)
		return
	}
	if items := itemsOf(meta.Kind, raw); items != nil {
		for i, item := range items {
			d.object(item, tree, join(at, fmt.Sprintf("items[%d]", i)))
		}
		return
	}
	d.one(raw, newObject(gv.WithKind(meta.Kind)), tree, at)
}

// itemsOf are the objects in a list, nil for what is none.
func itemsOf(kind string, raw []byte) []json.RawMessage {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if !strings.HasSuffix(kind, "List") || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list.Items
}

func (d *decoder) one(raw []byte, obj runtime.Object, tree *tree, at string) {
	before := len(d.problems)
	if _, ok := obj.(*corev1.Secret); ok {
		d.secretData(raw, tree, at)
	}
	if len(d.problems) > before {
		return
	}
	strict, err := unmarshal(raw, obj)
	if err != nil {
		d.typeProblem(err, tree, at)
		return
	}
	for _, e := range strict {
		line, hint := tree.line(at), ""
		if f, ok := errors.AsType[kjson.FieldError](e); ok {
			line = tree.line(join(at, f.FieldPath()))
			if hint = suggest(obj, f.FieldPath()); hint != "" {
				hint = ": " + hint
			}
		}
		d.problem(line, "strict decoding error: %v%s", e, hint)
	}
	if m, ok := obj.(interface {
		GetName() string
		GetGenerateName() string
	}); ok && m.GetName() == "" && m.GetGenerateName() == "" {
		d.problem(tree.line(join(at, "metadata")), "resource name may not be empty (field metadata.name)")
	}
	if len(d.problems) == before {
		d.objects = append(d.objects, obj)
	}
}

func unmarshal(raw []byte, obj runtime.Object) ([]error, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return nil, kjson.UnmarshalCaseSensitivePreserveInts(raw, &u.Object) //nolint:wrapcheck // worded by the caller
	}
	return kjson.UnmarshalStrict(raw, obj) //nolint:wrapcheck // worded by the caller
}

// typeProblem words a value that does not fit its field.
func (d *decoder) typeProblem(err error, tree *tree, at string) {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		path := join(at, kind.Field)
		d.problem(tree.line(path), "field %s must be %s, and it is %s", path, jsonKind(kind.Type), kind.Value)
		return
	}
	d.problem(tree.line(at), "cannot be decoded: %v", err)
}

// secretData finds values under data that are not base64, by their key and
// without the value.
func (d *decoder) secretData(raw []byte, tree *tree, at string) {
	var s struct {
		Data map[string]any `json:"data"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return // worded by the decoding that follows
	}
	for _, k := range slices.Sorted(maps.Keys(s.Data)) {
		text, ok := s.Data[k].(string)
		if !ok {
			continue // worded by the decoding that follows
		}
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			path := join(at, "data") + "." + k
			d.problem(tree.line(path), "field %s is not base64: write plain text under stringData", path)
		}
	}
}

// newObject is an empty object of a kind.
func newObject(gvk schema.GroupVersionKind) runtime.Object {
	switch gvk {
	case v1alpha1.GroupVersion.WithKind("Application"):
		return &v1alpha1.Application{}
	case v1alpha1.GroupVersion.WithKind("ApplicationSet"):
		return &v1alpha1.ApplicationSet{}
	case v1alpha1.GroupVersion.WithKind("AppProject"):
		return &v1alpha1.AppProject{}
	case corev1.SchemeGroupVersion.WithKind("Secret"):
		return &corev1.Secret{}
	case corev1.SchemeGroupVersion.WithKind("ConfigMap"):
		return &corev1.ConfigMap{}
	default:
		return &unstructured.Unstructured{}
	}
}

func join(path, field string) string {
	if path == "" || field == "" {
		return path + field
	}
	return path + "." + field
}
