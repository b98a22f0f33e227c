package explain

import (
	"encoding/json"
	"strconv"
	"strings"
)

// segment is one step of a field's path, as rutter.FieldDiff writes it.
type segment struct {
	// field is the name of a field; empty for the others.
	field string
	// keys identify an element of a list that is keyed; in order.
	keys []key
	// value identifies an element of a set, as JSON.
	value string
	// index is the place in a list that is replaced as a whole; -1 for the others.
	index int
}

type key struct{ name, value string }

// parsePath reads a path such as .spec.containers[name="web"].image; false for
// what is none, such as a note that more fields differ.
func parsePath(text string) ([]segment, bool) {
	var out []segment
	for text != "" {
		var s segment
		var ok bool
		if s, text, ok = nextSegment(text); !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, len(out) > 0
}

func nextSegment(text string) (s segment, rest string, ok bool) {
	s.index = -1
	if name, found := strings.CutPrefix(text, "."); found {
		end := strings.IndexAny(name, ".[")
		if end < 0 {
			end = len(name)
		}
		s.field = name[:end]
		return s, name[end:], end > 0 && !strings.ContainsAny(s.field, `]"=, `)
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
		s.field, _ = strconv.Unquote(quoted) // QuotedPrefix has looked
		text = text[len(quoted):]
	case c == '=':
		if s.value, text, ok = cutJSON(text[1:]); !ok {
			return s, "", false
		}
	case c >= '0' && c <= '9':
		digits, _, _ := strings.Cut(text, "]")
		n, err := strconv.Atoi(digits)
		if err != nil {
			return s, "", false
		}
		s.index, text = n, text[len(digits):]
	default:
		if s.keys, text, ok = cutKeys(text); !ok {
			return s, "", false
		}
	}
	rest, ok = strings.CutPrefix(text, "]")
	return s, rest, ok
}

// cutKeys reads name=JSON,name=JSON.
func cutKeys(text string) (keys []key, rest string, ok bool) {
	for {
		name, after, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, "", false
		}
		k := key{name: name}
		if k.value, text, ok = cutJSON(after); !ok {
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

// pointer is the path as a JSON pointer; false when it leads through a list, whose
// elements a pointer only knows by their place.
func pointer(path []segment) (string, bool) {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, s := range path {
		if s.field == "" {
			return "", false
		}
		b.WriteString("/" + escape.Replace(s.field))
	}
	return b.String(), true
}

// jq is the path as a jq path expression.
func jq(path []segment) string {
	var b strings.Builder
	for _, s := range path {
		switch {
		case s.field != "":
			if b.Len() == 0 || strings.HasSuffix(b.String(), ")") {
				if b.Len() > 0 {
					b.WriteString(" | ")
				}
				b.WriteString(".")
			}
			b.WriteString("[" + quote(s.field) + "]")
		case s.index >= 0:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case s.value != "":
			b.WriteString("[] | select(. == " + s.value + ")")
		default:
			terms := make([]string, 0, len(s.keys))
			for _, k := range s.keys {
				terms = append(terms, ".["+quote(k.name)+"] == "+k.value)
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
	_ = enc.Encode(s) // a string always has a form
	return strings.TrimSuffix(b.String(), "\n")
}
