package generate

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// AnnotationTypedValues on a set, with the value "false", renders expressions in
// free-form places (Helm's valuesObject, elements inside a matrix) as texts, as
// the reference does. Otherwise an expression that is all of a text keeps the
// type of its value there, as it does in fields that are no texts.
const AnnotationTypedValues = "rutter.dev/typed-values"

// typedOf reads what the set declares, or else the operator.
func typedOf(set *v1alpha1.ApplicationSet, opts Options) (bool, error) {
	declared, ok := set.Annotations[AnnotationTypedValues]
	if !ok {
		return !opts.ReferenceTypes, nil
	}
	typed, err := strconv.ParseBool(declared)
	if err != nil {
		return false, rutter.Errorf(rutter.CodeInvalid, "metadata.annotations[%s]: %q is not true or false", AnnotationTypedValues, declared)
	}
	return typed, nil
}

// program is a template that was looked through once for all elements: a whole
// Application, and the places in it that are rendered for each.
type program struct {
	base v1alpha1.ApplicationSetTemplate
	name string
	// places are in the order of the fields, which is that of errors.
	places []place
}

// place is one field of the template that holds an expression.
type place struct {
	field string
	// path leads from the template to the field: indices of struct fields and of list items.
	path []int
	kind placeKind
	// text is what is rendered, and tree where that is more than a text.
	text string
	tree any
}

// placeKind is what a field wants.
type placeKind int

const (
	// wantsText renders a text.
	wantsText placeKind = iota
	// wantsCount renders a text or a number.
	wantsCount
	// wantsValue renders a tree and reads it into the field, whatever its type.
	wantsValue
	// wantsAnything renders a tree into a field that holds free-form JSON.
	wantsAnything
)

var (
	jsonType  = reflect.TypeFor[apiextensionsv1.JSON]()
	countType = reflect.TypeFor[intstr.IntOrString]()
)

// compile looks through a template.
func compile(tree map[string]any) (*program, error) {
	p := &program{}
	meta, _ := tree["metadata"].(map[string]any)
	p.name, _ = meta["name"].(string)
	c := compiler{program: p}
	rest, _ := c.walk(tree, reflect.TypeFor[v1alpha1.ApplicationSetTemplate](), "spec.template", nil)
	raw, err := json.Marshal(rest)
	if err == nil {
		err = json.Unmarshal(raw, &p.base)
	}
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "spec.template: %w", err)
	}
	return p, nil
}

type compiler struct {
	program *program
	// unknown are errors about fields that do not exist.
	unknown []error
}

// walk notes the places of value, which is to become a t, and returns what is
// left of it: a field that only its expression can fill is left out.
func (c *compiler) walk(value any, t reflect.Type, field string, path []int) (rest any, keep bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case !holdsTemplate(value):
		return value, true
	case t == jsonType:
		c.add(place{field: field, path: path, kind: wantsAnything, tree: value})
		return map[string]any{}, true
	}
	switch v := value.(type) {
	case string:
		return c.walkText(v, t, field, path)
	case []any:
		if t.Kind() == reflect.Slice {
			out := make([]any, len(v))
			for i, item := range v {
				out[i], _ = c.walk(item, t.Elem(), field+"["+strconv.Itoa(i)+"]", extend(path, i))
			}
			return out, true
		}
	case map[string]any:
		if t.Kind() == reflect.Struct && t != countType {
			return c.walkObject(v, t, field, path), true
		}
	}
	c.add(place{field: field, path: path, kind: wantsValue, tree: value})
	return nil, false
}

func (c *compiler) walkText(text string, t reflect.Type, field string, path []int) (any, bool) {
	switch {
	case t.Kind() == reflect.String:
		c.add(place{field: field, path: path, kind: wantsText, text: text})
		return text, true
	case t == countType:
		c.add(place{field: field, path: path, kind: wantsCount, text: text})
		return text, true
	default:
		c.add(place{field: field, path: path, kind: wantsValue, tree: text})
		return nil, false
	}
}

func (c *compiler) walkObject(object map[string]any, t reflect.Type, field string, path []int) map[string]any {
	out := make(map[string]any, len(object))
	for _, k := range sortedKeys(object) {
		at, ft, ok := fieldOf(t, k)
		if !ok {
			c.unknown = append(c.unknown, rutter.Errorf(rutter.CodeInvalid, "unknown field %q", join(field, k)))
			continue
		}
		if rest, keep := c.walk(object[k], ft, join(field, k), append(extend(path), at...)); keep {
			out[k] = rest
		}
	}
	return out
}

func (c *compiler) add(p place) { c.program.places = append(c.program.places, p) }

// extend is a path with more steps, apart from the one it came from.
func extend(path []int, more ...int) []int {
	return append(append(make([]int, 0, len(path)+len(more)+2), path...), more...)
}

// fieldOf finds a field by its name in JSON, also in what is embedded.
func fieldOf(t reflect.Type, name string) (path []int, ft reflect.Type, ok bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == name:
			return []int{i}, f.Type, true
		case tag == "" && f.Anonymous && f.Type.Kind() == reflect.Struct:
			if inner, ft, ok := fieldOf(f.Type, name); ok {
				return append([]int{i}, inner...), ft, true
			}
		}
	}
	return nil, nil, false
}

// holdsTemplate reports whether anything in value is to be rendered.
func holdsTemplate(value any) bool {
	switch v := value.(type) {
	case string:
		return isTemplate(v)
	case []any:
		if slices.ContainsFunc(v, holdsTemplate) {
			return true
		}
	case map[string]any:
		for k, item := range v {
			if isTemplate(k) || holdsTemplate(item) {
				return true
			}
		}
	}
	return false
}

// run renders the places into a copy of the template.
func (p *program) run(r *renderer, typed bool) (*v1alpha1.ApplicationSetTemplate, error) {
	out := p.base.DeepCopy()
	root := reflect.ValueOf(out).Elem()
	for i := range p.places {
		if err := p.places[i].render(r, root, typed); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p *place) render(r *renderer, root reflect.Value, typed bool) error {
	switch p.kind {
	case wantsText:
		text, err := r.text(p.field, p.text)
		if err != nil {
			return err
		}
		p.find(root).SetString(text)
		return nil
	case wantsCount:
		value, err := r.value(p.field, p.text)
		if err != nil {
			return err
		}
		return p.decode(root, value)
	case wantsAnything:
		r.typed = typed
		value, err := r.tree(p.field, p.tree)
		r.typed = false
		if err != nil {
			return err
		}
		return p.decode(root, value)
	default:
		// Keys and items are texts where they are not the whole of the field.
		_, r.typed = p.tree.(string)
		value, err := r.tree(p.field, p.tree)
		r.typed = false
		if err != nil {
			return err
		}
		return p.decode(root, value)
	}
}

// decode reads a rendered value into its field.
func (p *place) decode(root reflect.Value, value any) error {
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, p.find(root).Addr().Interface())
	}
	if err == nil {
		return nil
	}
	want := p.find(root).Type()
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	if text, ok := value.(string); ok {
		return rutter.Errorf(rutter.CodeInvalid, "%s: %q is a text, want %s; the parameter itself must be one, which takes spec.goTemplate: true",
			p.field, head(text, 80), typeName(want))
	}
	return rutter.Errorf(rutter.CodeInvalid, "%s: is %s after rendering, want %s: %w", p.field, kindOf(value), typeName(want), err)
}

// typeName says what a field holds, for errors.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.String:
		return "a string"
	default:
		return "a number"
	}
}

// find follows the path, making what is not there yet.
func (p *place) find(rv reflect.Value) reflect.Value {
	for _, step := range p.path {
		for rv.Kind() == reflect.Pointer {
			if rv.IsNil() {
				rv.Set(reflect.New(rv.Type().Elem()))
			}
			rv = rv.Elem()
		}
		if rv.Kind() == reflect.Slice {
			rv = rv.Index(step)
		} else {
			rv = rv.Field(step)
		}
	}
	return rv
}
