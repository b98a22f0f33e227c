package fieldpath

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Segment is one step of a field's path, as rutter.FieldDiff writes it.
type Segment struct {
	// Field is the name of a field; empty for the others.
	Field string
	// Keys identify an element of a list that is keyed; in order.
	Keys []Key
	// Value identifies an element of a set, as JSON.
	Value string
	// Index is the place in a list that is replaced as a whole; -1 for the others.
	Index int
}

// Key is one field of the key of an element, with its value as JSON.
type Key struct{ Name, Value string }

// Parse reads a path such as .spec.containers[name="web"].image; false for
// what is none, such as a note that more fields differ.
func Parse(text string) ([]Segment, bool) {
	var out []Segment
	for text != "" {
		var s Segment
		var ok bool
		if s, text, ok = nextSegment(text); !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, len(out) > 0
}

func nextSegment(text string) (s Segment, rest string, ok bool) {
	s.Index = -1
	if name, found := strings.CutPrefix(text, "."); found {
		end := strings.IndexAny(name, ".[")
		if end < 0 {
			end = len(name)
		}
		s.Field = name[:end]
		return s, name[end:], end > 0 && !strings.ContainsAny(s.Field, `]"=, `)
	}
	text, found := strings.CutPrefix(text, "[")
	if !found || text == "" {
		return s, "", false
	}
	switch c := text[0]; {
	case c == '"':
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return s, "", false
		}
		s.Field, _ = strconv.Unquote(quoted) // QuotedPrefix has looked
		text = text[len(quoted):]
	case c == '=':
		if s.Value, text, ok = cutJSON(text[1:]); !ok {
			return s, "", false
		}
	case c >= '0' && c <= '9':
		digits, _, _ := strings.Cut(text, "]")
		n, err := strconv.Atoi(digits)
		if err != nil {
			return s, "", false
		}
		s.Index, text = n, text[len(digits):]
	default:
		if s.Keys, text, ok = cutKeys(text); !ok {
			return s, "", false
		}
	}
	rest, ok = strings.CutPrefix(text, "]")
	return s, rest, ok
}

// cutKeys reads name=JSON,name=JSON.
func cutKeys(text string) (keys []Key, rest string, ok bool) {
	for {
		name, after, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, "", false
		}
		k := Key{Name: name}
		if k.Value, text, ok = cutJSON(after); !ok {
			return nil, "", false
		}
		keys = append(keys, k)
		if text, found = strings.CutPrefix(text, ","); !found {
			return keys, text, true
		}
	}
}

// cutJSON takes one JSON value off the front of text.
func cutJSON(text string) (value, rest string, ok bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	var v json.RawMessage
	if dec.Decode(&v) != nil {
		return "", "", false
	}
	return string(v), text[dec.InputOffset():], true
}

// Pointer is the path as a JSON pointer; false when it leads through a list, whose
// elements a pointer only knows by their place.
func Pointer(path []Segment) (string, bool) {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, s := range path {
		if s.Field == "" {
			return "", false
		}
		b.WriteString("/" + escape.Replace(s.Field))
	}
	return b.String(), true
}

// JQ is the path as a jq path expression.
func JQ(path []Segment) string {
	var b strings.Builder
	for _, s := range path {
		switch {
		case s.Field != "":
			if b.Len() == 0 || strings.HasSuffix(b.String(), ")") {
				if b.Len() > 0 {
					b.WriteString(" | ")
				}
				b.WriteString(".")
			}
			b.WriteString("[" + quote(s.Field) + "]")
		case s.Index >= 0:
			b.WriteString("[" + strconv.Itoa(s.Index) + "]")
		case s.Value != "":
			b.WriteString("[] | select(. == " + s.Value + ")")
		default:
			terms := make([]string, 0, len(s.Keys))
			for _, k := range s.Keys {
				terms = append(terms, ".["+quote(k.Name)+"] == "+k.Value)
			}
			b.WriteString("[] | select(" + strings.Join(terms, " and ") + ")")
		}
	}
	return b.String()
}

// quote is a string as JSON, without the escapes that only HTML needs.
func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) //nolint:errchkjson // a string always has a form
	return strings.TrimSuffix(b.String(), "\n")
}
