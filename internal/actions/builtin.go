package actions

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rutterhq/rutter"
)

// builtin is an action of a kind. table*.go says which kind has which.
type builtin struct {
	name string
	// when says that the action makes sense; nil is always.
	when func(o object) bool
	// params are what it asks for; each has what the object has now at a path.
	params []asked
	// edit changes a copy of the object; make returns an object to create. One of
	// them is set.
	edit func(o object, given Params, now time.Time) error
	make func(o object, now time.Time) map[string]any
}

// asked is a parameter, and where the object has its value.
type asked struct {
	name string
	path []string
}

func (b builtin) describe(o object) Action {
	a := Action{Name: b.name, Disabled: b.when != nil && !b.when(o)}
	for _, p := range b.params {
		param := Param{Name: p.name}
		if n, ok := o.at(p.path...).(int64); ok {
			param.Default = strconv.FormatInt(n, 10)
		} else if s, ok := o.at(p.path...).(string); ok {
			param.Default = s
		}
		a.Params = append(a.Params, param)
	}
	return a
}

func (b builtin) perform(obj *unstructured.Unstructured, given Params, now time.Time) ([]Change, error) {
	for name := range given {
		if !b.asks(name) {
			return nil, rutter.Errorf(rutter.CodeInvalid, "the action %q of %s has no parameter %q", b.name, words(obj), name)
		}
	}
	if b.make != nil {
		return []Change{creation(obj, &unstructured.Unstructured{Object: b.make(object{obj.Object}, now.UTC())})}, nil
	}
	after := object{runtime.DeepCopyJSON(obj.Object)}
	if err := b.edit(after, given, now.UTC()); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the action %q of %s: %w", b.name, words(obj), err)
	}
	return []Change{amendment(obj.Object, after.root)}, nil
}

func (b builtin) asks(name string) bool {
	for _, p := range b.params {
		if p.name == name {
			return true
		}
	}
	return false
}

// object is a live object. What is missing or has another type reads as nothing.
type object struct{ root map[string]any }

func (o object) at(path ...string) any {
	var v any = o.root
	for _, field := range path {
		m, _ := v.(map[string]any)
		v = m[field]
	}
	return v
}

func (o object) text(path ...string) string {
	s, _ := o.at(path...).(string)
	return s
}

// dict is a copy of what lies at a path.
func (o object) dict(path ...string) map[string]any {
	m, _ := o.at(path...).(map[string]any)
	return runtime.DeepCopyJSON(m)
}

// set writes a value at a path, and makes the maps on its way.
func (o object) set(value any, path ...string) {
	in := o.root
	for _, field := range path[:len(path)-1] {
		next, ok := in[field].(map[string]any)
		if !ok {
			next = map[string]any{}
			in[field] = next
		}
		in = next
	}
	in[path[len(path)-1]] = value
}

func (o object) unset(path ...string) {
	in, _ := o.at(path[:len(path)-1]...).(map[string]any)
	delete(in, path[len(path)-1])
}

// condition reports whether the object has a condition that is True.
func (o object) condition(kinds ...string) bool {
	list, _ := o.at("status", "conditions").([]any)
	for _, entry := range list {
		c, _ := entry.(map[string]any)
		for _, kind := range kinds {
			if c["type"] == kind && c["status"] == "True" {
				return true
			}
		}
	}
	return false
}

// The shapes of which most actions are made.

func setting(name string, value any, path ...string) builtin {
	return builtin{name: name, when: func(o object) bool { return o.at(path...) != value }, edit: func(o object, _ Params, _ time.Time) error {
		o.set(value, path...)
		return nil
	}}
}

// stamping writes the time, in a form, where a controller looks for a newer one.
func stamping(name, form string, path ...string) builtin {
	return builtin{name: name, edit: func(o object, _ Params, now time.Time) error {
		text := now.Format(form)
		if form == unix {
			text = strconv.FormatInt(now.Unix(), 10)
		}
		o.set(text, path...)
		return nil
	}}
}

// switched are two actions that make a truth of the spec true and false.
func switched(on, off string, path ...string) []builtin {
	no := setting(off, false, path...)
	no.when = func(o object) bool { return o.at(path...) == true }
	return []builtin{setting(on, true, path...), no}
}

// counted sets a number of replicas.
func counted(name string, write func(o object, n int64), path ...string) builtin {
	return builtin{name: name, params: []asked{{"replicas", path}}, edit: func(o object, given Params, _ time.Time) error {
		n, err := strconv.ParseInt(given["replicas"], 10, 32)
		if err != nil || n < 0 {
			return rutter.Errorf(rutter.CodeInvalid, "the parameter replicas is %q, want a whole number: --param replicas=3", given["replicas"])
		}
		write(o, n)
		return nil
	}}
}

func (b builtin) only(when func(o object) bool) builtin {
	b.when = when
	return b
}
