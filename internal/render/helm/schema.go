package helm

import (
	"bytes"
	"errors"
	"path"

	"github.com/santhosh-tekuri/jsonschema/v6"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/rutterhq/rutter"
)

const schemaFile = "values.schema.json"

// sealedLoader refuses every reference out of a schema, because Helm's own
// would read this machine's files and the network for a chart.
type sealedLoader struct{}

// Load implements jsonschema.URLLoader.
func (sealedLoader) Load(url string) (any, error) {
	return nil, rutter.Errorf(rutter.CodeUnsupported, "%s is not fetched", url)
}

// validate checks the values of a chart and of its dependencies against their schemas.
func validate(dir string, c *chart.Chart, vals map[string]any) error {
	if len(c.Schema) > 0 {
		if err := validateOne(c.Schema, vals); err != nil {
			return &rutter.Error{Code: codeOf(err), File: path.Join(dir, schemaFile), Message: "the values of chart " + c.Name() + " do not fit its schema: " + oneLine(err.Error())}
		}
	}
	for _, sub := range c.Dependencies() {
		raw, ok := vals[sub.Name()]
		if !ok || raw == nil {
			continue
		}
		subVals, ok := raw.(map[string]any)
		if !ok {
			return &rutter.Error{Code: rutter.CodeInvalid, File: path.Join(dir, "Chart.yaml"), Message: "the value " + sub.Name() + " must be a mapping: it holds the values of the chart of that name"}
		}
		if err := validate(path.Join(dir, "charts", sub.Name()), sub, subVals); err != nil {
			return err
		}
	}
	return nil
}

func validateOne(schema []byte, vals map[string]any) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return rutter.Errorf(rutter.CodeInvalid, "the schema is no JSON: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(sealedLoader{})
	const name = "file:///" + schemaFile
	if err := compiler.AddResource(name, doc); err != nil {
		return rutter.Errorf(rutter.CodeInvalid, "the schema cannot be read: %w", err)
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		if out := (*jsonschema.LoadURLError)(nil); errors.As(err, &out) {
			return rutter.Errorf(rutter.CodeUnsupported, "it refers to %s, which is not fetched: put the definition into the schema", out.URL)
		}
		return rutter.Errorf(rutter.CodeInvalid, "the schema cannot be used: %w", err)
	}
	if err := compiled.Validate(vals); err != nil {
		return rutter.Errorf(rutter.CodeInvalid, "%s", schemaProblem(err))
	}
	return nil
}
