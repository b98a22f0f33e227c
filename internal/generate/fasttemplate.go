package generate

import "strings"

// engine renders one text. unknown are the keys that the text refers to and
// that do not exist, where that is no error.
type engine interface {
	render(text string, params map[string]any) (out string, unknown []string, err error)
}

// fastEngine replaces {{key}}. A key that is unknown, or whose value is not a
// text, stays as it was written.
type fastEngine struct{}

// render implements engine.
func (fastEngine) render(text string, params map[string]any) (string, []string, error) {
	var out strings.Builder
	var unknown []string
	rest := text
	for {
		before, after, found := strings.Cut(rest, "{{")
		if !found {
			break
		}
		tag, tail, closed := strings.Cut(after, "}}")
		if !closed {
			break
		}
		out.WriteString(before)
		key := strings.TrimSpace(tag)
		if value, ok := params[key].(string); ok && key != "" {
			out.WriteString(value)
		} else {
			out.WriteString("{{" + tag + "}}")
			unknown = append(unknown, key)
		}
		rest = tail
	}
	out.WriteString(rest)
	return out.String(), unknown, nil
}
