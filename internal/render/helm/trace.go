package helm

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/rutterhq/rutter"
)

// The kinds of layer, lowest first.
const (
	layerDependency    = "dependency" // a sub-chart's own values.yaml, under its name or alias
	layerChart         = "chart"
	layerValueFile     = "valueFile"
	layerValues        = "values"
	layerValuesObject  = "valuesObject"
	layerParameter     = "parameter"
	layerFileParameter = "fileParameter"
)

// Trace returns for each single value which layers set or removed it, sorted by
// path and then lowest layer first: the last one is what the chart sees.
func (r *Renderer) Trace(ctx context.Context, in Input) (layers []rutter.ValueLayer, err error) {
	defer recovered(in, &err)
	f, err := r.family(in)
	if err != nil {
		return nil, err
	}
	vals, err := values(in)
	if err != nil {
		return nil, err
	}
	c := f.clone()
	if err := chartutil.ProcessDependencies(c, vals); err != nil {
		return nil, chartError(in, "the dependencies of chart %s cannot be processed: %s", c.Name(), withoutValue(err))
	}
	final, err := util.CoalesceValues(c, vals)
	if err != nil {
		return nil, chartError(in, "the values of chart %s cannot be computed: %s", c.Name(), withoutValue(err))
	}
	t := &tracer{in: in, family: f, root: &traced{}}
	for _, step := range []func() error{
		func() error { return t.chart(c, nil) }, t.valueFiles, t.inline, t.parameters, t.fileParameters,
	} {
		if err := step(); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, rutter.Errorf(rutter.CodeUnavailable, "trace the values: %w", context.Cause(ctx))
		}
	}
	return t.root.layers(final), nil
}

// tracer lays the values of a chart over each other once more, as Helm does,
// and notes at each single value who was there.
type tracer struct {
	in     Input
	family *family
	root   *traced
	// vals are the values above those of the charts so far.
	vals map[string]any
}

// chart adds the values of a chart's dependencies, and then its own.
func (t *tracer) chart(c *chart.Chart, at tokens) error {
	for _, sub := range c.Dependencies() {
		if err := t.chart(sub, at.key(sub.Name())); err != nil {
			return err
		}
	}
	for _, req := range c.Metadata.Dependencies {
		if err := t.imported(c, req, at); err != nil {
			return err
		}
	}
	kind := layerChart
	if len(at) > 0 {
		kind = layerDependency
	}
	tree, from, err := t.own(c, kind, at)
	if err != nil {
		return err
	}
	return t.root.at(at, from).lay(tree, from, nil)
}

// own returns the content of a chart's values.yaml.
func (t *tracer) own(c *chart.Chart, kind string, at tokens) (map[string]any, layer, error) {
	raw := fileOf(c, "values.yaml")
	if raw == nil {
		return nil, layer{kind: kind}, nil
	}
	from := layer{kind: kind, file: t.family.place(raw), lines: linesOf(raw.Data), base: at, ofChart: true}
	tree, err := readValues(raw.Data)
	if err != nil {
		return nil, from, unreadable(from.file, raw.Data, err)
	}
	return tree, from, nil
}

// imported adds what a chart takes over from a dependency (import-values),
// which lies below its own values.
func (t *tracer) imported(c *chart.Chart, req *chart.Dependency, at tokens) error {
	for _, sub := range c.Dependencies() {
		if sub.Name() != req.Name {
			continue
		}
		tree, from, err := t.own(sub, layerDependency, at)
		if err != nil {
			return err
		}
		for _, each := range req.ImportValues {
			pair, ok := each.(map[string]string)
			if !ok {
				continue
			}
			child, parent := dotted(pair["child"]), dotted(pair["parent"])
			table, ok := lookUp(tree, child).(map[string]any)
			if !ok {
				continue
			}
			moved := from
			moved.lines = from.lines.moved(child, parent)
			if err := t.root.at(append(at.copy(), parent...), moved).lay(table, moved, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// dotted splits a path as import-values writes it.
func dotted(p string) tokens {
	var out tokens
	for part := range strings.SplitSeq(p, ".") {
		if part != "" {
			out = out.key(part)
		}
	}
	return out
}

func (t *tracer) valueFiles() error {
	t.vals = map[string]any{}
	files, err := valueFiles(t.in)
	if err != nil {
		return err
	}
	for _, f := range files {
		data, err := f.read()
		if err != nil {
			return err
		}
		tree, err := f.load()
		if err != nil {
			return err
		}
		from := layer{kind: layerValueFile, file: f.name(), source: f.source, lines: linesOf(data)}
		if err := t.root.lay(tree, from, nil); err != nil {
			return err
		}
		t.vals = mergeLayers(t.vals, tree)
	}
	return nil
}

// inline adds values and valuesObject. The latter replaces the former as a
// whole; where both say something, both are listed.
func (t *tracer) inline() error {
	tree, err := inlineValues(t.in.Options)
	if err != nil {
		return err
	}
	text := layer{kind: layerValues, lines: linesOf([]byte(t.in.Options.Values))}
	t.vals = mergeLayers(t.vals, tree)
	if len(t.in.Options.ValuesObject) == 0 {
		return t.root.lay(tree, text, nil)
	}
	if ignored, err := readValues([]byte(t.in.Options.Values)); err == nil {
		t.root.mention(ignored, tree, nil, text)
	}
	return t.root.lay(tree, layer{kind: layerValuesObject}, nil)
}

func (t *tracer) parameters() error {
	for _, i := range parameterOrder(t.in.Options.Parameters) {
		p := t.in.Options.Parameters[i]
		err := t.set(layer{kind: layerParameter}, func(vals map[string]any, marker string) error {
			if marker != "" {
				return setParameter(t.in, rutter.HelmParameter{Name: p.Name, Value: marker, ForceString: true}, vals)
			}
			return setParameter(t.in, p, vals)
		})
		if err != nil {
			return rutter.Errorf(rutter.CodeInvalid, "helm.parameters[%d]: %q cannot be set: %s", i, p.Name, problemOfName(p.Name))
		}
	}
	return nil
}

func (t *tracer) fileParameters() error {
	for i, p := range t.in.Options.FileParameters {
		f, err := resolve(t.in, p.Path)
		if err != nil {
			return rutter.Errorf(codeOf(err), "helm.fileParameters[%d]: %w", i, err)
		}
		data, err := f.read()
		if err != nil {
			return rutter.Errorf(codeOf(err), "helm.fileParameters[%d]: %w", i, err)
		}
		err = t.set(layer{kind: layerFileParameter, file: f.name(), source: f.source}, func(vals map[string]any, marker string) error {
			if marker != "" {
				return setFile(p.Name, marker, vals)
			}
			return setFile(p.Name, string(data), vals)
		})
		if err != nil {
			return rutter.Errorf(rutter.CodeInvalid, "helm.fileParameters[%d]: %q cannot be set: %s", i, p.Name, problemOfName(p.Name))
		}
	}
	return nil
}

// set applies a parameter. Where it goes is found by setting a marker on
// nothing; a list that is in no layer above the charts replaces theirs.
func (t *tracer) set(from layer, apply func(vals map[string]any, marker string) error) error {
	before := singleValues(t.vals)
	if err := apply(t.vals, ""); err != nil {
		return fmt.Errorf("set the value: %w", err)
	}
	places := t.places(before, apply)
	for _, p := range places {
		outer := p
		for i, tok := range p {
			if tok.list {
				outer = p[:i]
				break
			}
		}
		if err := t.root.at(outer, from).lay(lookUp(t.vals, outer), from, p); err != nil {
			return err
		}
	}
	return nil
}

// places are where a parameter goes, which before has been applied to the values.
func (t *tracer) places(before map[string]any, apply func(vals map[string]any, marker string) error) []tokens {
	var out []tokens
	add := func(p tokens) {
		if !slices.ContainsFunc(out, p.under) {
			out = append(out, p)
		}
	}
	for _, marker := range []string{"marker", ""} { // a value in braces may go on to set others
		alone := map[string]any{}
		if apply(alone, marker) == nil { // some names are only good where there is something already
			for _, p := range singles(alone, nil) {
				add(p)
			}
		}
	}
	for _, p := range singles(t.vals, nil) {
		if old, ok := before[p.String()]; !ok || !reflect.DeepEqual(old, lookUp(t.vals, p)) {
			add(p)
		}
	}
	return out
}

// singleValues returns the single values of a tree by their path.
func singleValues(tree map[string]any) map[string]any {
	out := map[string]any{}
	for _, p := range singles(tree, nil) {
		out[p.String()] = lookUp(tree, p)
	}
	return out
}

// singles returns where the single values of a tree lie, without what fills up lists.
func singles(v any, at tokens) []tokens {
	var out []tokens
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, singles(v[k], at.key(k))...)
		}
	case []any:
		for i, each := range v {
			if each != nil {
				out = append(out, singles(each, at.index(i))...)
			}
		}
	default:
		out = append(out, at)
	}
	return out
}
