package compare

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

type stepKind uint8

const (
	stepField stepKind = iota
	stepKeyed
	stepValue
	stepIndex
)

// step is one step down into an object.
type step struct {
	kind stepKind
	// name is the field of a stepField.
	name string
	// elem and keys identify an element of an associative list.
	elem map[string]any
	keys []string
	// value identifies an element of a set.
	value any
	// index is the place in an atomic list.
	index int
}

// path leads from the root of an object to a value.
type path []step

// String writes the path in the form of rutter.FieldDiff.
func (p path) String() string {
	var b strings.Builder
	for _, s := range p {
		switch s.kind {
		case stepField:
			writeField(&b, s.name)
		case stepKeyed:
			writeKeys(&b, s)
		case stepValue:
			b.WriteString("[=" + inline(s.value) + "]")
		case stepIndex:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		}
	}
	if b.Len() == 0 {
		return "."
	}
	return b.String()
}

func writeField(b *strings.Builder, name string) {
	if plainField(name) {
		b.WriteString("." + name)
		return
	}
	b.WriteString("[" + strconv.Quote(name) + "]")
}

// plainField reports whether a name needs no quotes in a path.
func plainField(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '$'
		if !letter {
			return false
		}
	}
	return name != ""
}

func writeKeys(b *strings.Builder, s step) {
	b.WriteByte('[')
	for i, k := range s.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		v, ok := s.elem[k]
		if !ok {
			v = keyDefault(k)
		}
		b.WriteString(k + "=" + inline(v))
	}
	b.WriteByte(']')
}

// inline is a key's value as JSON.
func inline(v any) string { return string(toJSON(v)) }

// toJSON encodes for people: without the escapes that only HTML needs.
func toJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte(`"a value that has no JSON form"`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
