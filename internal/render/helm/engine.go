package helm

import (
	"context"
	"errors"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/rutterhq/rutter"
)

// run is one execution of all templates of a chart.
type run struct {
	ctx    context.Context //nolint:containedctx // lives exactly as long as one render
	chart  string
	limits Limits
	// lookup reads the target cluster; nil finds nothing.
	lookup func(apiVersion, kind, namespace, name string) (map[string]any, error)
	chance *chance
	// secret reports whether values that are not in Git in the clear are in play;
	// pages are the templates that run.
	secret func() bool
	pages  map[string]page
	// capabilities is called when a template looks at the target cluster's.
	capabilities func()
}

// engine executes templates: Helm's language with guards, see instrument and
// guard. It serves one run after the other, because binding all functions takes
// longer than many charts.
type engine struct {
	run   *run
	guard *guard
	meter *meter
	root  *template.Template
	// known are trees that are instrumented and shared, fresh those that tpl has made in this run.
	known, fresh map[*parse.Tree]bool
	// names are the functions that a text may call.
	names map[string]any
	// depth counts templates that are being executed within each other.
	depth int
	// page is the template that is being executed at the top.
	page string
}

// maxDepth bounds templates within templates; Helm stops at the same number.
const maxDepth = 1000

func newEngine() *engine {
	e := &engine{guard: &guard{}}
	e.meter = &meter{guard: e.guard}
	return e
}

// begin makes the engine ready for a run.
func (e *engine) begin(r *run) {
	if r.chance == nil {
		r.chance = &chance{}
	}
	e.run, e.depth, e.page, e.fresh = r, 0, "", map[*parse.Tree]bool{}
	*e.guard = guard{ctx: r.ctx, chance: r.chance, cluster: r.capabilities}
	// Nested templates write what they write once a level.
	e.meter.left = 4 * r.limits.MaxOutputBytes
}

// end lets go of what belongs to the run.
func (e *engine) end() {
	e.run, e.fresh = nil, nil
	*e.guard = guard{}
}

// execute runs one template within the bounds.
func (e *engine) execute(name string, write func(w *meteredWriter) error) (string, error) {
	if e.depth >= maxDepth {
		return "", rutter.Errorf(rutter.CodeInvalid, "template %q: templates include each other more than %d times deep", name, maxDepth)
	}
	e.depth++
	defer func() { e.depth-- }()
	w := e.meter.writer()
	if err := write(w); err != nil {
		return "", err
	}
	return w.String(), nil
}

// include is the template function of that name.
func (e *engine) include(t *template.Template) func(string, any) (string, error) {
	return func(name string, dot any) (string, error) {
		return e.execute(name, func(w *meteredWriter) error { return t.ExecuteTemplate(w, name, dot) })
	}
}

// tpl is the template function of that name: a text from the values is
// executed as a template, with all definitions of the chart at hand.
func (e *engine) tpl(parent *template.Template) func(string, any) (string, error) {
	return func(text string, dot any) (string, error) {
		if !strings.Contains(text, "{{") {
			return withoutNoValue(text), nil
		}
		t, err := e.parse(parent, text)
		if err != nil {
			return "", err
		}
		out, err := e.execute(t.Name(), func(w *meteredWriter) error { return t.Execute(w, dot) })
		return withoutNoValue(out), err
	}
}

// parse makes a template of a text. One that defines nothing lives beside the
// definitions of its parent; one that does gets a copy of them, because what it
// defines is for itself.
func (e *engine) parse(parent *template.Template, text string) (*template.Template, error) {
	trees, err := parse.Parse(parent.Name(), text, "", "", e.names)
	if err != nil {
		return nil, &parseError{err}
	}
	p := probes{known: e.known, seen: e.fresh}
	if tree := trees[parent.Name()]; tree != nil && len(trees) == 1 {
		t := parent.New(parent.Name())
		t.Tree = tree
		p.tree(tree)
		return t, nil
	}
	t, err := parent.Clone()
	if err != nil {
		return nil, errors.New("cannot clone template") //nolint:err113 // becomes the template's error
	}
	t.Option("missingkey=zero")
	t.Funcs(e.guard.wrap(template.FuncMap{"include": e.include(t), "tpl": e.tpl(t)}))
	if t, err = t.New(parent.Name()).Parse(text); err != nil {
		return nil, &parseError{err}
	}
	p.instrument(t)
	return t, nil
}

// withoutNoValue takes away what text/template writes for a missing value.
func withoutNoValue(s string) string { return strings.ReplaceAll(s, "<no value>", "") }
