// Package substitute fills variables in objects as a Flux Kustomization's
// postBuild does: bash-like expressions over the YAML text of each object.
//
// Ring: pure. It is a function of the text and the values; the caller reads
// ConfigMaps and Secrets. No error shows a value, because values may be secret.
package substitute

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// Variables are what an object's expressions are filled from.
type Variables struct {
	// Values by name. Line breaks in values are dropped.
	Values map[string]string
	// Always evaluates expressions even where there are no values at all
	// (substituteStrategy: Always).
	Always bool
	// Lenient takes a variable that is not set for an empty one, where else it
	// is an error unless the expression has a default.
	Lenient bool
}

// optOut is the label or annotation of objects that are left alone.
const (
	optOut   = "kustomize.toolkit.fluxcd.io/substitute"
	disabled = "disabled"
)

// namePattern is what names of variables must match.
const namePattern = "^[_[:alpha:]][_[:alpha:][:digit:]]*$"

var validName = regexp.MustCompile(namePattern)

// Validate checks the names.
func (v Variables) Validate() error {
	var bad []string
	for name := range v.Values {
		if !validName.MatchString(name) {
			bad = append(bad, name)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	return rutter.Errorf(rutter.CodeInvalid, "%q is no name of a variable: it must match %s", bad[0], namePattern)
}

// Object returns u with its expressions filled in, or u itself where there is
// nothing to do. Keys are filled, too, and so is what an expression stands in:
// a value that looks like a number or a boolean becomes one, unless the text has
// quotes around it.
func (v Variables) Object(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if len(v.Values) == 0 && !v.Always {
		return u, nil
	}
	if u.GetLabels()[optOut] == disabled || u.GetAnnotations()[optOut] == disabled {
		return u, nil
	}
	if err := v.Validate(); err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(u.Object)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "encode %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	if !strings.Contains(string(text), "$") {
		return u, nil
	}
	filled, err := v.Text(string(text))
	if err != nil {
		return nil, err
	}
	return decode(filled)
}

// decode reads the filled text. The parser's errors quote the text, which may
// hold secrets, so they are not passed on.
func decode(text string) (*unstructured.Unstructured, error) {
	js, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "with its variables filled in it is no valid YAML: a value must fit where its variable stands, so put quotes around it")
	}
	var m map[string]any
	if err := utiljson.Unmarshal(js, &m); err != nil || m == nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "with its variables filled in it is no object: a value must fit where its variable stands")
	}
	return &unstructured.Unstructured{Object: m}, nil
}

// Text fills the expressions of a text.
func (v Variables) Text(text string) (string, error) {
	nodes, err := parse(text)
	if err != nil {
		return "", err
	}
	e := evaluation{lookup: v.lookup}
	return e.all(nodes)
}

// lookup returns a value, and whether the variable counts as set.
func (v Variables) lookup(name string) (string, bool) {
	value, ok := v.Values[name]
	return strings.ReplaceAll(value, "\n", ""), ok || v.Lenient
}
