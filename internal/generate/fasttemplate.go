package generate

import "strings"

// engine renders one text. unknown are the keys that the text refers to and
// that do not exist, where that is no error.
type engine interface {
	render(text string, params map[string]any) (out string, unknown []string, err error)
	// value renders a text that may be one expression and nothing else, whose
	// value then keeps its type: a boolean, a number, a list or a map.
	value(text string, params map[string]any) (out any, unknown []string, err error)
}

// fastEngine replaces {{key}}. A key that is unknown, or whose value is not a
// text, stays as it was written. Texts are cut up once for all elements.
type fastEngine struct{ cut map[string][]fastPart }

// fastPart is a text, and a tag behind it but for the last.
type fastPart struct {
	before, tag, key string
	tagged           bool
}

func newFastEngine() fastEngine { return fastEngine{cut: map[string][]fastPart{}} }

// render implements engine.
func (e fastEngine) render(text string, params map[string]any) (string, []string, error) {
	parts, ok := e.cut[text]
	if !ok {
		parts = cutTags(text)
		e.cut[text] = parts
	}
	var out strings.Builder
	var unknown []string
	for _, p := range parts {
		out.WriteString(p.before)
		if !p.tagged {
			continue
		}
		if value, ok := params[p.key].(string); ok && p.key != "" {
			out.WriteString(value)
		} else {
			out.WriteString("{{" + p.tag + "}}")
			unknown = append(unknown, p.key)
		}
	}
	return out.String(), unknown, nil
}

// value implements engine: all parameters are texts.
func (e fastEngine) value(text string, params map[string]any) (any, []string, error) {
	return e.render(text, params)
}

func cutTags(text string) []fastPart {
	var parts []fastPart
	for {
		before, after, found := strings.Cut(text, "{{")
		tag, tail, closed := strings.Cut(after, "}}")
		if !found || !closed {
			return append(parts, fastPart{before: text})
		}
		parts = append(parts, fastPart{before: before, tag: tag, key: strings.TrimSpace(tag), tagged: true})
		text = tail
	}
}
