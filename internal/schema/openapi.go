package schema

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// definition is the part of an OpenAPI schema that makes a type.
type definition struct {
	Ref         string                 `json:"$ref,omitempty"`
	AllOf       []*definition          `json:"allOf,omitempty"`
	Type        string                 `json:"type,omitempty"`
	Properties  map[string]*definition `json:"properties,omitempty"`
	Additional  additional             `json:"additionalProperties,omitzero"`
	Items       *definition            `json:"items,omitempty"`
	Default     json.RawMessage        `json:"default,omitempty"`
	ListType    string                 `json:"x-kubernetes-list-type,omitempty"`
	ListMapKeys []string               `json:"x-kubernetes-list-map-keys,omitempty"`
	MapType     string                 `json:"x-kubernetes-map-type,omitempty"`
	Kinds       []kind                 `json:"x-kubernetes-group-version-kind,omitempty"`
}

type kind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// additional is additionalProperties, which is a schema or a truth value.
type additional struct{ schema *definition }

// UnmarshalJSON implements json.Unmarshaler.
func (a *additional) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		return json.Unmarshal(data, &a.schema) //nolint:wrapcheck // Parse says what it read
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (a additional) MarshalJSON() ([]byte, error) { return json.Marshal(a.schema) } //nolint:wrapcheck // of our own types

// IsZero leaves it out where there is none.
func (a additional) IsZero() bool { return a.schema == nil }

// document is an OpenAPI document of either version, or the index of those of v3.
type document struct {
	Definitions map[string]*definition `json:"definitions,omitempty"`
	Components  struct {
		Schemas map[string]*definition `json:"schemas,omitempty"`
	} `json:"components,omitzero"`
	Paths map[string]struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	} `json:"paths,omitempty"`
}

// Parse reads an OpenAPI document, v2 or v3, as JSON or YAML.
func Parse(data []byte) (*Schemas, error) {
	doc, err := parseDocument(data)
	if err != nil {
		return nil, err
	}
	definitions := doc.Components.Schemas
	if len(definitions) == 0 {
		definitions = doc.Definitions
	}
	if len(definitions) == 0 {
		for _, p := range doc.Paths {
			if p.ServerRelativeURL != "" {
				return nil, rutter.Errorf(rutter.CodeInvalid, "it is the index of a server's OpenAPI documents and describes no kind: "+
					"use one of them (kubectl get --raw /openapi/v3/apis/apps/v1) or all in one (kubectl get --raw /openapi/v2)")
			}
		}
		return nil, rutter.Errorf(rutter.CodeInvalid, "it holds neither components.schemas (OpenAPI v3) nor definitions (v2)")
	}
	return build(definitions), nil
}

func parseDocument(data []byte) (doc document, err error) {
	if text := bytes.TrimSpace(data); len(text) == 0 || text[0] != '{' {
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return doc, rutter.Errorf(rutter.CodeInvalid, "it is neither JSON nor YAML: %w", err)
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return doc, rutter.Errorf(rutter.CodeInvalid, "it is no OpenAPI document: %w", err)
	}
	return doc, nil
}

// builder makes types of definitions, each once.
type builder struct {
	definitions map[string]*definition
	made        map[string]*Type
}

func build(definitions map[string]*definition) *Schemas {
	b := &builder{definitions: definitions, made: map[string]*Type{}}
	out := &Schemas{kinds: map[rutter.GVK]*Type{}, named: b.made}
	for name, d := range definitions {
		t := b.name(name)
		if d != nil && len(d.Kinds) == 1 { // options of verbs have one for each group
			k := d.Kinds[0]
			out.kinds[rutter.GVK{Group: k.Group, Version: k.Version, Kind: k.Kind}] = t
		}
	}
	return out
}

// name makes the type of a named definition; one that refers to itself finds
// what is being made.
func (b *builder) name(name string) *Type {
	if t, ok := b.made[name]; ok {
		return t
	}
	d := b.definitions[name]
	if d == nil {
		return nil
	}
	t := &Type{}
	b.made[name] = t
	if strings.HasSuffix(name, "apimachinery.pkg.api.resource.Quantity") {
		t.Kind = Quantity
		return t
	}
	b.fill(t, d)
	return t
}

// make makes the type of a definition where it stands. Beside a reference there
// may be a default, which is that place's alone.
func (b *builder) make(d *definition) *Type {
	if d == nil {
		return nil
	}
	ref := d.Ref
	if ref == "" && len(d.AllOf) == 1 && d.AllOf[0] != nil {
		ref = d.AllOf[0].Ref
	}
	if ref == "" {
		t := &Type{}
		b.fill(t, d)
		return t
	}
	t := b.name(ref[strings.LastIndexByte(ref, '/')+1:])
	if t == nil || len(d.Default) == 0 && d.MapType == "" && d.ListType == "" {
		return t
	}
	if t.Kind == Unknown {
		// It is being made: what refers to it from within has no default anyway.
		return t
	}
	own := *t
	setDefault(&own, d)
	own.Atomic = own.Atomic || d.MapType == "atomic" || d.ListType == "atomic"
	return &own
}

func (b *builder) fill(t *Type, d *definition) {
	switch d.Type {
	case "object":
		t.Kind = Object
	case "array":
		t.Kind = List
	case "":
		if len(d.Properties) > 0 || d.Additional.schema != nil {
			t.Kind = Object
		}
	default:
		t.Kind = Scalar
	}
	if len(d.Properties) > 0 {
		t.Fields = make(map[string]*Type, len(d.Properties))
		for name, p := range d.Properties {
			t.Fields[name] = b.make(p)
		}
	}
	switch t.Kind { //nolint:exhaustive // the others have no parts
	case Object:
		t.Elem = b.make(d.Additional.schema)
		t.Atomic = d.MapType == "atomic"
	case List:
		t.Elem = b.make(d.Items)
		switch d.ListType {
		case "map":
			t.Keys = slices.Sorted(slices.Values(d.ListMapKeys))
		case "set":
			t.Set = true
		default:
			t.Atomic = true
		}
	}
	setDefault(t, d)
}

func setDefault(t *Type, d *definition) {
	if len(d.Default) == 0 {
		return
	}
	var v any
	if json.Unmarshal(d.Default, &v) == nil {
		t.Default, t.HasDefault = v, true
	}
}
