package schema

import (
	"maps"

	"github.com/rutterhq/rutter"
)

// Kind is what a value is.
type Kind uint8

// The kinds that make a difference. Unknown is everything that is not described.
const (
	Unknown Kind = iota
	Object
	List
	Scalar
	Quantity
)

// Type is what is known of the values at one place. Types may contain
// themselves. The nil Type knows nothing.
type Type struct {
	Kind Kind
	// Fields are the named fields of an object.
	Fields map[string]*Type
	// Elem is the type of the elements of a list, and of the values under free
	// names of an object.
	Elem *Type
	// Atomic objects and lists are replaced as a whole.
	Atomic bool
	// Set is a list whose elements are told apart by their value, Keys are the
	// fields that tell them apart.
	Set  bool
	Keys []string
	// Default is what the server fills in, where HasDefault says so.
	Default    any
	HasDefault bool
}

// Field is the type of a field, nil when it is not known.
func (t *Type) Field(name string) *Type {
	if t == nil {
		return nil
	}
	if f, ok := t.Fields[name]; ok {
		return f
	}
	if t.Kind == Object {
		return t.Elem
	}
	return nil
}

// Item is the type of the elements of a list.
func (t *Type) Item() *Type {
	if t == nil || t.Kind != List {
		return nil
	}
	return t.Elem
}

// Known reports whether the structure of an object or a list is described.
func (t *Type) Known() bool {
	return t != nil && (t.Kind == List || t.Kind == Object && (len(t.Fields) > 0 || t.Elem != nil))
}

// Schemas are the types of the kinds of a server. The nil Schemas know nothing.
type Schemas struct {
	kinds map[rutter.GVK]*Type
	named map[string]*Type
}

// Of is the type of a kind's objects, nil when it is not known.
func (s *Schemas) Of(gvk rutter.GVK) *Type {
	if s == nil {
		return nil
	}
	return s.kinds[gvk]
}

// Named is a type by the name that its document gives it.
func (s *Schemas) Named(name string) *Type {
	if s == nil {
		return nil
	}
	return s.named[name]
}

// Kinds are the kinds without what they are made of by name.
func (s *Schemas) Kinds() *Schemas {
	if s == nil {
		return nil
	}
	return &Schemas{kinds: s.kinds}
}

// Len is the number of kinds.
func (s *Schemas) Len() int {
	if s == nil {
		return 0
	}
	return len(s.kinds)
}

// With returns the schemas of both; where both know a kind, other's count.
func (s *Schemas) With(other *Schemas) *Schemas {
	switch {
	case s == nil:
		return other
	case other == nil:
		return s
	}
	out := &Schemas{kinds: maps.Clone(s.kinds), named: maps.Clone(s.named)}
	maps.Copy(out.kinds, other.kinds)
	maps.Copy(out.named, other.named)
	return out
}
