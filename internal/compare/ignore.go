package compare

import (
	"strconv"
	"strings"

	"github.com/gobwas/glob"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
)

// Ignore is a list of ignoreDifferences. Patterns are read when they are used:
// the usual ones are literal and cost nothing.
type Ignore []rutter.IgnoreRule

// Validate reports the first glob or pointer that can't be read, as an error
// of code invalid. The comparisons skip such a rule, which is the safe side,
// but shows as drift that nobody can explain; so check rules where they enter.
func (g Ignore) Validate() error {
	for i, r := range g {
		for _, pattern := range []struct{ field, text string }{{"group", r.Group}, {"kind", r.Kind}} {
			if _, err := glob.Compile(pattern.text); err != nil {
				return rutter.Errorf(rutter.CodeInvalid,
					"ignoreDifferences[%d].%s: %q is not a glob: %w", i, pattern.field, pattern.text, err)
			}
		}
		for _, p := range r.JSONPointers {
			if _, err := parsePointer(p); err != nil {
				return rutter.Errorf(rutter.CodeInvalid, "ignoreDifferences[%d].jsonPointers: %w", i, err)
			}
		}
	}
	return nil
}

// of returns the pointers that apply to an object.
func (g Ignore) of(u *unstructured.Unstructured) pointers {
	if len(g) == 0 || u == nil {
		return nil
	}
	ref := rutter.RefOf(u)
	var out pointers
	for i := range g {
		if !ruleMatches(&g[i], ref) {
			continue
		}
		for _, p := range g[i].JSONPointers {
			if tokens, err := parsePointer(p); err == nil {
				out = append(out, tokens)
			}
		}
	}
	return out
}

func ruleMatches(r *rutter.IgnoreRule, ref rutter.Ref) bool {
	return (r.Name == "" || r.Name == ref.Name) &&
		(r.Namespace == "" || r.Namespace == ref.Namespace) &&
		globMatches(r.Group, ref.Group) && globMatches(r.Kind, ref.Kind)
}

// globMatches compiles a pattern only when it is more than a name or a star.
func globMatches(pattern, s string) bool {
	if pattern == "*" {
		return true
	}
	if !strings.ContainsAny(pattern, `*?[]{}\!`) {
		return pattern == s
	}
	g, err := glob.Compile(pattern)
	return err == nil && g.Match(s)
}

// pointers are paths that a walk still has before it, as tokens. A walk asks
// for the next set at every step down; nil costs nothing.
type pointers [][]string

// step returns what remains below the field or index token; hit says that the
// child itself is ignored.
func (p pointers) step(token string) (next pointers, hit bool) {
	for _, tokens := range p {
		if tokens[0] != token {
			continue
		}
		if len(tokens) == 1 {
			return nil, true
		}
		next = append(next, tokens[1:])
	}
	return next, false
}

// index is step for an element of a list.
func (p pointers) index(i int) (next pointers, hit bool) {
	if len(p) == 0 {
		return nil, false
	}
	return p.step(strconv.Itoa(i))
}

// parsePointer reads an RFC 6901 pointer to something below the root.
func parsePointer(s string) ([]string, error) {
	if !strings.HasPrefix(s, "/") {
		return nil, rutter.Errorf(rutter.CodeInvalid,
			"%q is not a JSON pointer: it must start with \"/\", as in /spec/replicas", s)
	}
	tokens := strings.Split(s[1:], "/")
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i, t := range tokens {
		for j := range len(t) {
			if t[j] == '~' && (j+1 == len(t) || t[j+1] != '0' && t[j+1] != '1') {
				return nil, rutter.Errorf(rutter.CodeInvalid,
					"%q is not a JSON pointer: \"~\" is written ~0 and \"/\" inside a name is written ~1", s)
			}
		}
		tokens[i] = unescape.Replace(t)
	}
	return tokens, nil
}

// Strip returns obj without what the rules ignore. It shares what it did not
// have to copy with obj, which stays as it was: treat both as read-only.
func Strip(obj *unstructured.Unstructured, ignore Ignore) *unstructured.Unstructured {
	ptrs := ignore.of(obj)
	if len(ptrs) == 0 {
		return obj
	}
	stripped, _ := strip(obj.Object, ptrs).(map[string]any)
	return &unstructured.Unstructured{Object: stripped}
}

// strip copies only the maps and lists on the way to something ignored.
func strip(v any, skip pointers) any {
	if len(skip) == 0 {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, child := range v {
			if next, hit := skip.step(k); !hit {
				out[k] = strip(child, next)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for i, child := range v {
			if next, hit := skip.index(i); !hit {
				out = append(out, strip(child, next))
			}
		}
		return out
	default:
		return v
	}
}
