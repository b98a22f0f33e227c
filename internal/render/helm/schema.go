package helm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"path"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/rutterhq/rutter"
)

const schemaFile = "values.schema.json"

// The bounds of a schema and of a validation.
const (
	maxSchemaBytes = 4 << 20
	maxSchemaNest  = 200
	maxSchemaSteps = 1_000_000
)

// sealedLoader refuses every reference out of a schema, because Helm's own
// would read this machine's files and the network for a chart. A name (urn:)
// that nobody resolves allows everything, as in Helm.
type sealedLoader struct{}

// Load implements jsonschema.URLLoader.
func (sealedLoader) Load(url string) (any, error) {
	if len(url) > 4 && url[:4] == "urn:" {
		return true, nil
	}
	return nil, rutter.Errorf(rutter.CodeUnsupported, "%s is not fetched", url)
}

// schema is a compiled schema. The library cannot be stopped from outside, so
// every sub-schema counts its use; one validation runs at a time.
type schema struct {
	mu       sync.Mutex
	compiled *jsonschema.Schema
	steps    *steps
}

// steps is put into every sub-schema.
type steps struct {
	ctx  context.Context //nolint:containedctx // of the validation that runs
	left int
}

// stepsError is what a validation panics with when it takes too long.
type stepsError struct{ error }

// Validate implements jsonschema.SchemaExt.
func (s *steps) Validate(*jsonschema.ValidatorContext, any) {
	s.left--
	switch {
	case s.left < 0:
		panic(stepsError{rutter.Errorf(rutter.CodeInvalid, "stopped: checking the values takes more than %d steps", maxSchemaSteps)})
	case s.left%1024 == 0 && s.ctx.Err() != nil:
		panic(stepsError{rutter.Errorf(rutter.CodeInvalid, "stopped: %w", context.Cause(s.ctx))})
	}
}

// compile reads a schema.
func compile(text []byte) (*schema, error) {
	if len(text) > maxSchemaBytes {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the schema is larger than %d MiB", maxSchemaBytes>>20)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the schema is no JSON: %w", err)
	}
	if nested(doc) > maxSchemaNest {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the schema is nested more than %d deep", maxSchemaNest)
	}
	s := &schema{steps: &steps{}}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(sealedLoader{})
	compiler.AssertVocabs()
	compiler.RegisterVocabulary(&jsonschema.Vocabulary{URL: "rutter:steps",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) { return s.steps, nil }})
	const name = "file:///" + schemaFile
	if err := compiler.AddResource(name, doc); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the schema cannot be read: %w", err)
	}
	if s.compiled, err = compiler.Compile(name); err != nil {
		if out := (*jsonschema.LoadURLError)(nil); errors.As(err, &out) {
			return nil, rutter.Errorf(rutter.CodeUnsupported, "it refers to %s, which is not fetched: put the definition into the schema", out.URL)
		}
		return nil, rutter.Errorf(rutter.CodeInvalid, "the schema cannot be used: %w", err)
	}
	return s, nil
}

// nested is how deep lists and mappings lie in each other.
func nested(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, each := range v {
			deepest = max(deepest, nested(each))
		}
	case []any:
		for _, each := range v {
			deepest = max(deepest, nested(each))
		}
	default:
		return 0
	}
	return deepest + 1
}

// check validates values.
func (s *schema) check(ctx context.Context, vals map[string]any) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps.ctx, s.steps.left = ctx, maxSchemaSteps
	defer func() {
		s.steps.ctx = nil
		if p := recover(); p != nil {
			stopped, ok := p.(stepsError)
			if !ok {
				err = rutter.Errorf(rutter.CodeInvalid, "the schema cannot be applied: %v", p)
				return
			}
			err = stopped.error
		}
	}()
	if err := s.compiled.Validate(vals); err != nil {
		return rutter.Errorf(rutter.CodeInvalid, "%s", schemaProblem(err))
	}
	return nil
}

// validate checks the values of a chart and of its dependencies against their schemas.
func (r *Renderer) validate(ctx context.Context, f *family, c *chart.Chart, vals map[string]any) error {
	if len(c.Schema) > 0 {
		if err := r.validateOne(ctx, c.Schema, vals); err != nil {
			return &rutter.Error{Code: codeOf(err), File: path.Join(f.folder(c), schemaFile), Message: "the values of chart " + c.Name() + " do not fit its schema: " + oneLine(err.Error())}
		}
	}
	for _, sub := range c.Dependencies() {
		raw, ok := vals[sub.Name()]
		if !ok || raw == nil {
			continue
		}
		subVals, ok := raw.(map[string]any)
		if !ok {
			return &rutter.Error{Code: rutter.CodeInvalid, File: path.Join(f.folder(c), "Chart.yaml"), Message: "the value " + sub.Name() + " must be a mapping: it holds the values of the chart of that name"}
		}
		if err := r.validate(ctx, f, sub, subVals); err != nil {
			return err
		}
	}
	return nil
}

func (r *Renderer) validateOne(ctx context.Context, text []byte, vals map[string]any) error {
	sum := sha256.Sum256(text)
	s, err := r.schemas.get(string(sum[:]), func() (*schema, int64, error) {
		s, err := compile(text)
		return s, 16 * int64(len(text)), err
	})
	if err != nil {
		return err
	}
	return s.check(ctx, vals)
}

// folder is where a chart of the family lies.
func (f *family) folder(c *chart.Chart) string {
	if raw := fileOf(c, "Chart.yaml"); raw != nil {
		return path.Dir(f.place(raw))
	}
	return f.at
}
