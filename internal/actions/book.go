package actions

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/lua"
)

// Action is what can be done to an object.
type Action struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	IconClass   string `json:"iconClass,omitempty"`
	// Disabled says that it makes no sense as the object is now.
	Disabled bool    `json:"disabled"`
	Params   []Param `json:"params,omitempty"`
}

// Param is what an action asks for.
type Param struct {
	Name string `json:"name"`
	// Default is what the object has now.
	Default string `json:"default,omitempty"`
}

// Params are the answers, by name.
type Params map[string]string

// Change is one thing that an action does.
type Change struct {
	// Create is an object to make; otherwise Object is what the live object becomes, by
	// Patch, a JSON merge patch.
	Create bool
	Object *unstructured.Unstructured
	Patch  map[string]any
}

// Book holds the actions of all kinds. It never changes, and may be used by many at one time.
type Book struct {
	own     map[string]own
	builtin map[string][]builtin
}

// own are an operator's actions for a kind.
type own struct {
	source    string
	discovery *lua.Script
	run       map[string]*lua.Script
	merge     bool
}

// NewBook compiles the operator's scripts beside what is built in. Scripts that cannot
// be compiled are in the errors; they fail when they are run.
func NewBook(scripts []rutter.ActionScripts) (*Book, []error) {
	b := &Book{own: map[string]own{}, builtin: builtins()}
	var errs []error
	compile := func(name, source string, open bool) *lua.Script {
		s, err := lua.Compile(name, source, open)
		if err != nil {
			errs = append(errs, err)
			return lua.Broken(name, err)
		}
		return s
	}
	for _, s := range scripts {
		o := own{source: s.Source, merge: s.MergeBuiltin, run: map[string]*lua.Script{}}
		if s.Discovery != "" {
			o.discovery = compile(s.Source+": discovery.lua", s.Discovery, s.OpenLibs)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Run)) {
			o.run[name] = compile(s.Source+": "+name+": action.lua", s.Run[name], s.OpenLibs)
		}
		b.own[s.Group+"/"+s.Kind] = o
	}
	return b, errs
}

// List says which actions an object has, by name.
func (b *Book) List(obj *unstructured.Unstructured, now time.Time) ([]Action, error) {
	key := keyOf(obj)
	o, custom := b.own[key]
	var out []Action
	if !custom || o.merge {
		for _, a := range b.builtin[key] {
			if _, replaced := o.run[a.name]; !replaced {
				out = append(out, a.describe(object{obj.Object}))
			}
		}
	}
	if o.discovery != nil {
		found, err := o.discovery.Discovery(obj.Object, now)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(found)) {
			if !o.merge || o.run[name] != nil { // what is built in says by itself whether it is disabled
				out = append(out, described(name, found[name]))
			}
		}
	}
	slices.SortStableFunc(out, func(x, y Action) int { return cmp.Compare(x.Name, y.Name) })
	return out, nil
}

// described reads an entry of a discovery; one without any is an action all the same.
func described(name string, entry any) Action {
	a := Action{Name: name}
	m, _ := entry.(map[string]any)
	a.Disabled, _ = m["disabled"].(bool)
	a.DisplayName, _ = m["displayName"].(string)
	a.IconClass, _ = m["iconClass"].(string)
	params, _ := m["params"].([]any)
	for _, p := range params {
		entry, _ := p.(map[string]any)
		if name, ok := entry["name"].(string); ok {
			value, _ := entry["default"].(string)
			a.Params = append(a.Params, Param{Name: name, Default: value})
		}
	}
	return a
}

// Run says what an action does to an object. One that the object does not have, or
// that is disabled, is refused.
func (b *Book) Run(obj *unstructured.Unstructured, name string, params Params, now time.Time) ([]Change, error) {
	list, err := b.List(obj, now)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(a Action) bool { return a.Name == name })
	if i < 0 {
		return nil, rutter.Errorf(rutter.CodeNotFound, "%s has no action %q: %s", words(obj), name, known(list))
	}
	if list[i].Disabled {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the action %q of %s is disabled as the object is now", name, words(obj))
	}
	if script := b.own[keyOf(obj)].run[name]; script != nil {
		return runScript(script, obj, name, params, now)
	}
	for _, a := range b.builtin[keyOf(obj)] {
		if a.name == name {
			return a.perform(obj, params, now)
		}
	}
	return nil, rutter.Errorf(rutter.CodeInvalid, "%s: the action %q is discovered, and definitions has no action.lua for it", b.own[keyOf(obj)].source, name)
}

func known(list []Action) string {
	if len(list) == 0 {
		return "it has none"
	}
	names := make([]string, 0, len(list))
	for _, a := range list {
		names = append(names, a.Name)
	}
	return "it has " + strings.Join(names, ", ")
}

func keyOf(obj *unstructured.Unstructured) string {
	gvk := obj.GroupVersionKind()
	return gvk.Group + "/" + gvk.Kind
}

// words names an object for people.
func words(obj *unstructured.Unstructured) string {
	name := obj.GetName()
	if obj.GetNamespace() != "" {
		name = obj.GetNamespace() + "/" + name
	}
	return obj.GetKind() + " " + name
}

// Knows reports whether objects of a kind may have actions.
func (b *Book) Knows(group, kind string) bool {
	_, custom := b.own[group+"/"+kind]
	return custom || len(b.builtin[group+"/"+kind]) > 0
}
