package generate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// renderer renders the texts of one structure with one set of parameters and
// remembers what it could not find.
type renderer struct {
	engine engine
	params map[string]any
	// typed keeps the type of an expression that is all of a text.
	typed bool
	// missing are the keys that were left as they were written.
	missing []lack
	// blanks are fields in which a Go template printed noValue.
	blanks []string
}

// text renders one text. field names it in errors and warnings.
func (r *renderer) text(field, text string) (string, error) {
	if !isTemplate(text) {
		return text, nil
	}
	out, unknown, err := r.engine.render(text, r.params)
	if err != nil {
		return "", rutter.Errorf(rutter.CodeOf(err), "%s: %w", field, err)
	}
	r.note(field, text, out, unknown)
	return out, nil
}

// value renders one text, of which one that is a single expression keeps the
// type of its value.
func (r *renderer) value(field, text string) (any, error) {
	if !isTemplate(text) {
		return text, nil
	}
	out, unknown, err := r.engine.value(text, r.params)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeOf(err), "%s: %w", field, err)
	}
	if rendered, ok := out.(string); ok {
		r.note(field, text, rendered, unknown)
	}
	return out, nil
}

// note remembers what a text refers to and does not exist.
func (r *renderer) note(field, text, out string, unknown []string) {
	for _, key := range unknown {
		r.missing = append(r.missing, lack{field, key})
	}
	if strings.Contains(out, noValue) && !strings.Contains(text, noValue) {
		r.blanks = append(r.blanks, field)
	}
}

// tree renders all texts and keys below value, in a fixed order.
func (r *renderer) tree(field string, value any) (any, error) {
	switch v := value.(type) {
	case string:
		if r.typed {
			return r.value(field, v)
		}
		return r.text(field, v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			rendered, err := r.tree(field+"["+strconv.Itoa(i)+"]", item)
			if err != nil {
				return nil, err
			}
			out[i] = rendered
		}
		return out, nil
	case map[string]any:
		return r.object(field, v)
	default:
		return value, nil
	}
}

func (r *renderer) object(field string, object map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(object))
	for _, k := range sortedKeys(object) {
		key, err := r.text(field+" key "+strconv.Quote(k), k)
		if err != nil {
			return nil, err
		}
		if _, ok := out[key]; ok {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s: two keys become %q when they are rendered", field, key)
		}
		if out[key], err = r.tree(join(field, k), object[k]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// warnings say which parameters the producer does not have.
func (r *renderer) warnings(producer string) []string {
	var out []string
	for _, m := range slices.Compact(r.missing) {
		out = append(out, fmt.Sprintf("%s: {{%s}}: %s has no such parameter; the text stays as it is written", m.field, m.key, producer))
	}
	for _, field := range slices.Compact(r.blanks) {
		out = append(out, fmt.Sprintf("%s: a parameter is missing and was printed as %q; "+
			"goTemplateOptions: [missingkey=error] makes this an error", field, noValue))
	}
	return out
}

// join is the name of a field below another.
func join(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}
