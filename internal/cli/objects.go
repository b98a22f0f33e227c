package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// readObjects reads a file of YAML documents, strictly: an unknown field or a
// key that is there twice is an error that names the file, the line of the
// document and the field. Documents of other kinds are left out.
func (r *root) readObjects(file string) ([]runtime.Object, error) {
	data, err := r.readFile(file)
	if err != nil {
		return nil, err
	}
	var out []runtime.Object
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	line := 1
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		o, err := decodeObject(doc)
		if err != nil {
			return nil, &rutter.Error{Code: rutter.CodeInvalid, File: file, Line: line, Message: "in the document that begins here: " + err.Error()}
		}
		if o != nil {
			out = append(out, o)
		}
		line += bytes.Count(doc, []byte("\n")) + 1
	}
}

func (r *root) readFile(file string) ([]byte, error) {
	if file == "-" {
		data, err := io.ReadAll(r.in)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return data, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	return data, nil
}

func decodeObject(doc []byte) (runtime.Object, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	var o runtime.Object
	switch head.APIVersion + "/" + head.Kind {
	case "argoproj.io/v1alpha1/Application":
		o = &v1alpha1.Application{}
	case "argoproj.io/v1alpha1/ApplicationSet":
		o = &v1alpha1.ApplicationSet{}
	case "argoproj.io/v1alpha1/AppProject":
		o = &v1alpha1.AppProject{}
	case "v1/Secret":
		o = &corev1.Secret{}
	default:
		return nil, nil
	}
	if err := yaml.UnmarshalStrict(doc, o); err != nil {
		return nil, fmt.Errorf("%s: %w", head.Kind, err)
	}
	return o, nil
}
