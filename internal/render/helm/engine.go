package helm

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"text/template"

	charts "helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/rutterhq/rutter"
)

// engine executes the templates of one chart once. It is Helm's language with
// guards: see instrument and guard.
type engine struct {
	ctx   context.Context //nolint:containedctx // an engine lives exactly as long as one render
	chart string
	meter *meter
	guard *guard
	probe probes
	// depth counts templates that are being executed within each other.
	depth int
	// page is the template that is being executed at the top.
	page string
}

// maxDepth bounds templates within templates; Helm stops at the same number.
const maxDepth = 1000

func newEngine(ctx context.Context, chartName string, limits Limits) *engine {
	e := &engine{ctx: ctx, chart: chartName}
	e.guard = &guard{ctx: ctx}
	// Nested templates write what they write once a level.
	e.meter = &meter{guard: e.guard, left: 4 * limits.MaxOutputBytes}
	return e
}

// page is a template and what it sees.
type page struct {
	text  string
	scope map[string]any
	base  string
}

// render executes all templates and returns their output by name, such as
// "chart/templates/deployment.yaml".
func (e *engine) render(c *chart.Chart, top common.Values) (map[string]string, error) {
	pages := map[string]page{}
	if err := collect(c, top, pages); err != nil {
		return nil, err
	}
	names := inOrder(pages)
	root := template.New("chart").Option("missingkey=zero")
	root.Funcs(e.functions(root))
	e.probe = newProbes()
	for _, name := range names {
		if _, err := root.New(name).Parse(pages[name].text); err != nil {
			return nil, e.failure(err)
		}
	}
	e.probe.instrument(root)
	out := make(map[string]string, len(names))
	for _, name := range names {
		if strings.HasPrefix(path.Base(name), "_") {
			continue // holds definitions only
		}
		p := pages[name]
		e.page = name
		p.scope["Template"] = common.Values{"Name": name, "BasePath": p.base}
		text, err := e.execute(root, name, p.scope)
		if err != nil {
			return nil, e.failure(err)
		}
		out[name] = withoutNoValue(text)
	}
	return out, nil
}

// collect gathers the templates of a chart and its dependencies. Each chart
// sees its own part of the values.
func collect(c *chart.Chart, outer map[string]any, pages map[string]page) error {
	_, err := collectScoped(c, outer, pages)
	return err
}

func collectScoped(c *chart.Chart, outer common.Values, pages map[string]page) (map[string]any, error) {
	access, err := charts.NewAccessor(c)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "read chart %s: %w", c.Name(), err)
	}
	about := access.MetadataAsMap()
	about["IsRoot"] = c.IsRoot()
	subcharts := map[string]any{}
	scope := map[string]any{
		"Chart": about, "Files": newFiles(c.Files), "Release": outer["Release"], "Capabilities": outer["Capabilities"],
		"Values": make(common.Values), "Subcharts": subcharts,
	}
	if c.IsRoot() {
		scope["Values"] = outer["Values"]
	} else if own, err := outer.Table("Values." + c.Name()); err == nil {
		scope["Values"] = own
	}
	for _, sub := range c.Dependencies() {
		if subcharts[sub.Name()], err = collectScoped(sub, scope, pages); err != nil {
			return nil, err
		}
	}
	full := c.ChartFullPath()
	for _, t := range c.Templates {
		if t == nil || strings.EqualFold(c.Metadata.Type, "library") && !strings.HasPrefix(path.Base(t.Name), "_") {
			continue
		}
		pages[path.Join(full, t.Name)] = page{text: string(t.Data), scope: scope, base: path.Join(full, "templates")}
	}
	return scope, nil
}

// inOrder puts deeper templates first, so that the definitions of a chart
// replace those of its dependencies.
func inOrder(pages map[string]page) []string {
	names := make([]string, 0, len(pages))
	for name := range pages {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := strings.Count(b, "/") - strings.Count(a, "/"); d != 0 {
			return d
		}
		return strings.Compare(b, a)
	})
	return names
}

// execute runs one template within the bounds.
func (e *engine) execute(t *template.Template, name string, dot any) (string, error) {
	if e.depth >= maxDepth {
		return "", rutter.Errorf(rutter.CodeInvalid, "template %q: templates include each other more than %d times deep", name, maxDepth)
	}
	e.depth++
	defer func() { e.depth-- }()
	w := e.meter.writer()
	if err := t.ExecuteTemplate(w, name, dot); err != nil {
		return "", err //nolint:wrapcheck // failure translates it, with its place
	}
	return w.String(), nil
}

// include is the template function of that name.
func (e *engine) include(t *template.Template) func(string, any) (string, error) {
	return func(name string, dot any) (string, error) { return e.execute(t, name, dot) }
}

// tpl is the template function of that name: a text from the values is
// executed as a template, with all definitions of the chart at hand.
func (e *engine) tpl(parent *template.Template) func(string, any) (string, error) {
	return func(text string, dot any) (string, error) {
		t, err := parent.Clone()
		if err != nil {
			return "", errors.New("cannot clone template") //nolint:err113 // becomes the template's error
		}
		t.Option("missingkey=zero")
		t.Funcs(e.guard.wrap(template.FuncMap{"include": e.include(t), "tpl": e.tpl(t)}))
		t, err = t.New(parent.Name()).Parse(text)
		if err != nil {
			return "", &parseError{err}
		}
		e.probe.instrument(t)
		out, err := e.execute(t, t.Name(), dot)
		return withoutNoValue(out), err
	}
}

// withoutNoValue takes away what text/template writes for a missing value.
func withoutNoValue(s string) string { return strings.ReplaceAll(s, "<no value>", "") }
