package generate

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/rutterhq/rutter"
)

// The functions that rewrite.go puts into templates. Their names cannot be
// written by a user by mistake.
const (
	funcLookup = "_rutterLookup"
	funcBound  = "_rutterBound"
	funcStep   = "_rutterStep"
	funcCostly = "_rutterCostly"
	// funcCapture is put behind an expression whose value is wanted.
	funcCapture = "_rutterCapture"
)

// noValue is what a Go template prints for what does not exist.
const noValue = "<no value>"

// goEngine renders Go templates. Texts are parsed once for all elements.
type goEngine struct {
	options []string
	funcs   template.FuncMap
	parsed  map[string]*goText
	// left counts down the steps of the rendering that is going on.
	left int
	// captured is the value of the expression that was rendered last.
	captured any
}

// goText is a text that was parsed.
type goText struct {
	template *template.Template
	// parts are the text, where it holds nothing but plain fields.
	parts []goPart
	// whole captures the value, where the text is one expression.
	whole *template.Template
}

// goPart is a text, or a field when it has a path.
type goPart struct {
	text string
	path []string
}

// newGoEngine wants options that checkOptions accepts.
func newGoEngine(options []string) *goEngine {
	e := &goEngine{options: options, funcs: templateFuncs(), parsed: map[string]*goText{}}
	e.funcs[funcLookup] = lookup
	e.funcs[funcBound] = e.bound
	e.funcs[funcStep] = e.step
	e.funcs[funcCostly] = e.costly
	e.funcs[funcCapture] = e.capture
	return e
}

// checkOptions refuses what the engine would panic about.
func checkOptions(options []string) error {
	for i, o := range options {
		switch o {
		case "missingkey=default", "missingkey=invalid", "missingkey=zero", "missingkey=error":
		default:
			return rutter.Errorf(rutter.CodeInvalid,
				"spec.goTemplateOptions[%d]: %q is not known; use missingkey=error, default, invalid or zero", i, o)
		}
	}
	return nil
}

// render implements engine.
func (e *goEngine) render(text string, params map[string]any) (string, []string, error) {
	t, err := e.parse(text)
	if err != nil {
		return "", nil, err
	}
	if out, ok := t.plain(params); ok {
		return out, nil, nil
	}
	out, err := e.execute(t.template, params)
	return out, nil, err
}

func (e *goEngine) execute(t *template.Template, params map[string]any) (string, error) {
	e.left = maxSteps
	var out boundedWriter
	if err := t.Execute(&out, params); err != nil {
		return "", explain(err)
	}
	return out.String(), nil
}

// value implements engine. What is not a boolean, a number, a list or a map is
// a text, by what the template prints.
func (e *goEngine) value(text string, params map[string]any) (any, []string, error) {
	t, err := e.parse(text)
	if err != nil {
		return nil, nil, err
	}
	if out, ok := t.plain(params); ok {
		return out, nil, nil
	}
	if t.whole == nil {
		return e.render(text, params)
	}
	e.captured = nil
	out, err := e.execute(t.whole, params)
	if err != nil {
		return nil, nil, err
	}
	if isTyped(e.captured) {
		return e.captured, nil, nil
	}
	return out, nil, nil
}

// capture keeps the value that passes by.
func (e *goEngine) capture(value any) any {
	e.captured = value
	return value
}

// isTyped reports whether a value is one that a field can hold as it is.
func isTyped(value any) bool {
	rv := reflect.ValueOf(value)
	switch rv.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return rv.Type().PkgPath() == ""
	case reflect.Slice:
		return rv.Type().Elem().Kind() != reflect.Uint8
	case reflect.Map:
		return rv.Type().Key().Kind() == reflect.String
	default:
		return false
	}
}

// plain renders a text that holds nothing but fields that are texts.
func (t *goText) plain(params map[string]any) (string, bool) {
	if t.parts == nil {
		return "", false
	}
	var out strings.Builder
	for _, p := range t.parts {
		if p.path == nil {
			out.WriteString(p.text)
			continue
		}
		var value any = params
		for _, key := range p.path {
			object, ok := value.(map[string]any)
			if !ok {
				return "", false
			}
			value = object[key]
		}
		text, ok := value.(string)
		if !ok || out.Len()+len(text) > maxText {
			return "", false
		}
		out.WriteString(text)
	}
	return out.String(), true
}

func (e *goEngine) parse(text string) (*goText, error) {
	if t, ok := e.parsed[text]; ok {
		return t, nil
	}
	if len(text) > maxText {
		return nil, tooLarge("the template")
	}
	t := &goText{}
	var err error
	if t.template, err = e.newTemplate(text, func(tree *parse.Tree) { t.parts = plainParts(tree.Root) }); err != nil {
		return nil, err
	}
	wanted := false
	whole, err := e.newTemplate(text, func(tree *parse.Tree) { wanted = captureWhole(tree) })
	if err != nil {
		return nil, err
	}
	if wanted {
		t.whole = whole
	}
	e.parsed[text] = t
	return t, nil
}

// newTemplate parses a text, and shows its tree before it is rewritten.
func (e *goEngine) newTemplate(text string, look func(*parse.Tree)) (*template.Template, error) {
	t, err := template.New("").Option(e.options...).Funcs(e.funcs).Parse(text)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "is not a Go template: %s", strings.TrimPrefix(err.Error(), "template: :"))
	}
	if t.Tree != nil && t.Root != nil && len(t.Templates()) == 1 {
		look(t.Tree)
	}
	for _, part := range t.Templates() {
		if part.Tree != nil && part.Root != nil {
			rewrite(part.Tree)
		}
	}
	return t, nil
}

// spend takes steps off what the rendering may still do.
func (e *goEngine) spend(steps int) error {
	if e.left -= steps; e.left < 0 {
		return rutter.Errorf(rutter.CodeInvalid, "the template takes more than %d steps", maxSteps)
	}
	return nil
}

// step is called by every turn of a loop and every call of a template.
func (e *goEngine) step() (string, error) { return "", e.spend(1) }

// costly passes on the value of a function that takes long by design, such as
// one that makes a key: twenty of them are as much as a million turns.
func (e *goEngine) costly(value any) (any, error) { return value, e.spend(maxSteps / 20) }

// bound passes a value on unless it has grown too large. Large values cost
// steps, as whatever is done with them takes its time.
func (e *goEngine) bound(value any) (any, error) {
	rv := reflect.ValueOf(value)
	switch rv.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		if rv.Len() > maxText {
			return nil, tooLarge("the template")
		}
		return value, e.spend(rv.Len() / 1024)
	default:
		return value, nil
	}
}

// lookup follows keys through maps and answers nil for what is missing, so
// that a default can stand in for it even where missing keys are errors.
func lookup(value any, keys ...string) any {
	for _, key := range keys {
		rv := reflect.ValueOf(value)
		if rv.Kind() != reflect.Map || rv.Type().Key().Kind() != reflect.String {
			return nil
		}
		item := rv.MapIndex(reflect.ValueOf(key).Convert(rv.Type().Key()))
		if !item.IsValid() {
			return nil
		}
		value = item.Interface()
	}
	return value
}

// boundedWriter refuses to grow beyond maxText.
type boundedWriter struct{ strings.Builder }

// Write implements io.Writer.
func (w *boundedWriter) Write(p []byte) (int, error) {
	if w.Len()+len(p) > maxText {
		return 0, tooLarge("the template")
	}
	return w.Builder.Write(p) //nolint:wrapcheck // it never fails
}

// missingKey finds the key in the template engine's words for a missing one.
var missingKey = regexp.MustCompile(`at <([^>]*)>: map has no entry for key "([^"]*)"`)

// explain words an error of the template engine for the author of the set.
func explain(err error) error {
	if m := missingKey.FindStringSubmatch(err.Error()); m != nil {
		return rutter.Errorf(rutter.CodeInvalid, "%s: there is no parameter %q", m[1], m[2])
	}
	if exec, ok := errors.AsType[template.ExecError](err); ok {
		text := exec.Err.Error()
		if i := strings.Index(text, "executing \"\" "); i >= 0 {
			text = text[i+len("executing \"\" "):]
		}
		return rutter.Errorf(rutter.CodeInvalid, "%s", oneLine(text))
	}
	return rutter.Errorf(rutter.CodeInvalid, "%s", oneLine(fmt.Sprint(err)))
}

// oneLine keeps an error from spreading over a condition.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
