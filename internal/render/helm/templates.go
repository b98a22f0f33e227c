package helm

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"

	charts "helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/rutterhq/rutter"
)

// page is a template and what it sees.
type page struct {
	text  []byte
	scope map[string]any
	base  string
}

// templates are the parsed templates of a chart and its dependencies. They are
// shared by all renders of this content; executing does not change them.
type templates struct {
	root  *template.Template
	names []string // in the order of execution
	known map[*parse.Tree]bool
	idle  sync.Pool // of *engine
}

// templates parses the templates of a chart, or finds them parsed. Which there
// are depends on the content and on which dependencies are on under what name.
func (r *Renderer) templates(ctx context.Context, id, chartName string, pages map[string]page) (*templates, error) {
	names := inOrder(pages)
	h := sha256.New()
	fmt.Fprintln(h, id)
	for _, name := range names {
		fmt.Fprintln(h, name, len(pages[name].text))
	}
	key := h.Sum(nil)
	return r.parsed.get(string(key), func() (*templates, int64, error) {
		t, err := parseTemplates(ctx, chartName, names, pages)
		cost := int64(4096)
		for _, p := range pages {
			cost += 8 * int64(len(p.text)) // what a tree takes, roughly
		}
		return t, cost, err
	})
}

// rootName is what Helm calls the template that all others belong to.
const rootName = "gotpl"

func parseTemplates(ctx context.Context, chartName string, names []string, pages map[string]page) (*templates, error) {
	t := &templates{root: template.New(rootName).Option("missingkey=zero"), names: names}
	e := newEngine()
	e.begin(&run{ctx: ctx, chart: chartName})
	t.root.Funcs(e.functions(t.root))
	for _, name := range names {
		if _, err := t.root.New(name).Parse(string(pages[name].text)); err != nil {
			e.page = name
			return nil, e.failure(err)
		}
	}
	p := newProbes(nil)
	p.instrument(t.root)
	t.known = p.seen
	return t, nil
}

// engine returns an engine that nobody else uses; give it back with done.
func (t *templates) engine() (*engine, error) {
	if e, ok := t.idle.Get().(*engine); ok {
		return e, nil
	}
	e := newEngine()
	root, err := t.root.Clone()
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "copy the templates: %w", err)
	}
	e.root, e.known = root.Option("missingkey=zero").Funcs(e.functions(root)), t.known
	return e, nil
}

func (t *templates) done(e *engine) {
	e.end()
	t.idle.Put(e)
}

// render executes all templates and returns their output by name, such as
// "chart/templates/deployment.yaml".
func (t *templates) render(r *run, pages map[string]page) (map[string]string, error) {
	e, err := t.engine()
	if err != nil {
		return nil, err
	}
	defer t.done(e)
	r.pages = pages
	e.begin(r)
	out := make(map[string]string, len(t.names))
	for _, name := range t.names {
		if strings.HasPrefix(path.Base(name), "_") {
			continue // holds definitions only
		}
		p := pages[name]
		e.page = name
		p.scope["Template"] = common.Values{"Name": name, "BasePath": p.base}
		text, err := e.include(e.root)(name, p.scope)
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
		pages[path.Join(full, t.Name)] = page{text: t.Data, scope: scope, base: path.Join(full, "templates")}
	}
	return scope, nil
}

// inOrder puts deeper templates first, so that the definitions of a chart
// replace those of its dependencies.
func inOrder(pages map[string]page) []string {
	names := slices.Collect(maps.Keys(pages))
	slices.SortFunc(names, func(a, b string) int {
		if d := strings.Count(b, "/") - strings.Count(a, "/"); d != 0 {
			return d
		}
		return strings.Compare(b, a)
	})
	return names
}
