package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/schema"
)

// readLive reads the objects of a file, of any kind: YAML documents or JSON, and
// lists of objects as kubectl prints them.
func (r *root) readLive(file string) ([]*unstructured.Unstructured, error) {
	data, err := r.readFile(file)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	reader, line := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))), 1
	for n := 1; ; n++ {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s: document %d: %w", file, n, err)
		}
		objects, err := readDocument(doc)
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s: document %d (line %d): %w", file, n, line, err)
		}
		out = append(out, objects...)
		line += bytes.Count(doc, []byte("\n")) + 1
	}
}

// readDocument reads one document: an object, a list of them, or nothing.
func readDocument(doc []byte) ([]*unstructured.Unstructured, error) {
	data, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, withoutKeys(err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err //nolint:wrapcheck // likewise
	}
	if v == nil {
		return nil, nil
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, rutter.Errorf(rutter.CodeInvalid, "it is no object: it must have apiVersion, kind and metadata")
	}
	items, isList := object["items"].([]any)
	if u := (&unstructured.Unstructured{Object: object}); !isList || u.GetName() != "" {
		return complete(u)
	}
	var out []*unstructured.Unstructured
	for i, item := range items {
		m, _ := item.(map[string]any)
		one, err := complete(&unstructured.Unstructured{Object: m})
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		out = append(out, one...)
	}
	return out, nil
}

// withoutKeys is an error of the YAML library without the document's text, which
// it shows where a map stands for a key, as in a template.
func withoutKeys(err error) error {
	if strings.Contains(err.Error(), "invalid map key") {
		return rutter.Errorf(rutter.CodeInvalid, "a map stands where a key has to: is this a template that was not rendered?")
	}
	return err
}

// complete makes sure that a document is an object.
func complete(u *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if u.GetAPIVersion() == "" || u.GetKind() == "" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "it is no object: it must have apiVersion, kind and metadata")
	}
	if u.GetName() == "" && u.GetGenerateName() != "" {
		return nil, nil // the server names it anew each time: there is no such object to compare with
	}
	return []*unstructured.Unstructured{u}, nil
}

// diffSettings are what is left out of a comparison.
type diffSettings struct {
	compare rutter.CompareSettings
	// scoped says that compare holds which kinds are touched at all.
	scoped bool
	ignore []rutter.IgnoreRule
}

// diffSettings reads what the operator and the Application say. What can't be
// read ends the comparison: without it the answer would be another.
func (r *root) diffSettings(f *diffFlags) (s diffSettings, err error) {
	if f.config != "" {
		s.scoped = true
		if s.compare, err = r.readCompareSettings(f.config); err != nil {
			return s, err
		}
	}
	if f.app == "" {
		return s, nil
	}
	objects, err := r.readObjects(f.app)
	if err != nil {
		return s, err
	}
	for _, o := range objects {
		if app, ok := o.(*v1alpha1.Application); ok {
			rules, err := argo.IgnoreRules(app)
			if err != nil {
				return s, fmt.Errorf("%s: %w", f.app, err)
			}
			s.ignore = rules
			return s, nil
		}
	}
	return s, rutter.Errorf(rutter.CodeInvalid, "%s holds no Application", f.app)
}

func (r *root) readCompareSettings(file string) (rutter.CompareSettings, error) {
	objects, err := r.readLive(file)
	if err != nil {
		return rutter.CompareSettings{}, err
	}
	for _, u := range objects {
		if u.GetKind() != "ConfigMap" {
			continue
		}
		data, _, err := unstructured.NestedStringMap(u.Object, "data")
		if err != nil {
			return rutter.CompareSettings{}, rutter.Errorf(rutter.CodeInvalid, "%s: ConfigMap %s: %w", file, u.GetName(), err)
		}
		s, problems := argo.ParseComparison(&corev1.ConfigMap{Data: data})
		if len(problems) > 0 {
			return s, rutter.Errorf(rutter.CodeInvalid, "%s: %s", file, problems[0])
		}
		return s, nil
	}
	return rutter.CompareSettings{}, rutter.Errorf(rutter.CodeInvalid, "%s holds no ConfigMap", file)
}

// diffTypes are the built-in kinds, those of schema files, and those that
// definitions among the objects declare.
func (r *root) diffTypes(files []string, objects ...[]*unstructured.Unstructured) (*compare.Types, error) {
	var known *schema.Schemas
	for _, list := range objects {
		more, err := defined(list)
		if err != nil {
			return nil, err
		}
		known = known.With(more)
	}
	for _, file := range files {
		more, err := r.readSchema(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		known = known.With(more)
	}
	return compare.NewTypes(known)
}

// readSchema reads an OpenAPI document, or a file of definitions.
func (r *root) readSchema(file string) (*schema.Schemas, error) {
	data, err := r.readFile(file)
	if err != nil {
		return nil, err
	}
	parsed, err := schema.Parse(data)
	if err == nil {
		return parsed, nil
	}
	if !bytes.Contains(data, []byte("CustomResourceDefinition")) {
		return nil, err
	}
	again := *r
	again.in = bytes.NewReader(data)
	objects, readErr := again.readLive("-")
	if readErr != nil {
		return nil, readErr
	}
	return defined(objects)
}

func defined(objects []*unstructured.Unstructured) (known *schema.Schemas, err error) {
	for _, u := range objects {
		if u.GetKind() != "CustomResourceDefinition" {
			continue
		}
		more, err := schema.FromDefinition(u)
		if err != nil {
			return nil, err
		}
		known = known.With(more)
	}
	return known, nil
}
