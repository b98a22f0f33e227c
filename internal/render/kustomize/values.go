package kustomize

import (
	"errors"

	"sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/manifest"
)

// Values returns the layers of values that kustomize gives to helm, lowest
// first, each as YAML with a name to show. own is the chart's values.yaml, which
// helm itself puts below them.
//
// Inline values are merged here, as kustomize does: with override they win over
// the values file, with merge they only fill what it lacks, with replace they
// stand instead of it.
func (c Chart) Values(own []byte) ([]ValuesText, error) {
	base, err := c.valuesFile(own)
	if err != nil {
		return nil, err
	}
	if len(c.ValuesInline) > 0 {
		if base, err = c.mergeInline(base); err != nil {
			return nil, err
		}
	}
	out := []ValuesText{base}
	for _, file := range c.AdditionalValuesFiles {
		data, err := c.read(file)
		if err != nil {
			return nil, c.invalid("additionalValuesFiles: "+printable(file), err)
		}
		out = append(out, ValuesText{Name: file, YAML: data})
	}
	return out, nil
}

// ValuesText is one layer of values.
type ValuesText struct {
	// Name is a file of Chart.Files, an address, or valuesInline.
	Name string
	YAML []byte
}

func (c Chart) valuesFile(own []byte) (ValuesText, error) {
	if c.ValuesFile == "" {
		return ValuesText{Name: "values.yaml", YAML: own}, nil
	}
	data, err := c.read(c.ValuesFile)
	if err != nil {
		return ValuesText{}, c.invalid("valuesFile: "+printable(c.ValuesFile), err)
	}
	return ValuesText{Name: c.ValuesFile, YAML: data}, nil
}

func (c Chart) read(file string) ([]byte, error) {
	if !isWeb(file) {
		return c.Files.ReadFile(file)
	}
	return c.download(file)
}

func (c Chart) mergeInline(file ValuesText) (ValuesText, error) {
	inline := c.ValuesInline
	if c.ValuesMerge != "replace" {
		theirs, err := parseValues(file.YAML)
		if err != nil {
			return file, c.invalid(file.Name+" cannot be merged with valuesInline", err)
		}
		ours, err := yaml.FromMap(c.ValuesInline)
		if err != nil {
			return file, c.invalid("valuesInline", err)
		}
		if c.ValuesMerge == "merge" {
			theirs, err = merge2.Merge(theirs, ours, yaml.MergeOptions{})
		} else {
			theirs, err = merge2.Merge(ours, theirs, yaml.MergeOptions{})
		}
		if err != nil {
			return file, c.invalid(file.Name+" cannot be merged with valuesInline", err)
		}
		if inline, err = theirs.Map(); err != nil {
			return file, c.invalid(file.Name+" cannot be merged with valuesInline", err)
		}
	}
	text, err := sigsyaml.Marshal(inline)
	if err != nil {
		return file, c.invalid("valuesInline", err)
	}
	return ValuesText{Name: "valuesInline", YAML: text}, nil
}

// parseValues reads values, which may be none.
func parseValues(text []byte) (*yaml.RNode, error) {
	if err := checkSize("values", text); err != nil {
		return nil, err
	}
	if len(manifest.Split(text)) == 0 {
		return yaml.NewMapRNode(nil), nil
	}
	return yaml.Parse(string(text)) //nolint:wrapcheck // the caller names the file
}

func (c Chart) invalid(what string, err error) error {
	code := rutter.CodeInvalid
	if e := (*rutter.Error)(nil); errors.As(err, &e) {
		code = e.Code
	}
	return &rutter.Error{Code: code, File: c.At.File, Line: c.At.Line, Message: "chart " + c.Name + ": " + what, Err: err}
}
