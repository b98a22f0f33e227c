package compare

import (
	"strconv"
	"strings"

	"github.com/gobwas/glob"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
)

// Ignore is a compiled list of ignoreDifferences. The zero value ignores nothing.
type Ignore struct {
	rules []ignoreRule
}

type ignoreRule struct {
	group, kind     glob.Glob
	namespace, name string
	pointers        pointers
}

// CompileIgnore compiles rules once for many comparisons. A glob or a pointer
// that can't be read is an error of code invalid: a rule that silently does
// nothing would show as drift that nobody can explain.
func CompileIgnore(rules []rutter.IgnoreRule) (Ignore, error) {
	var out Ignore
	for i, r := range rules {
		group, err := glob.Compile(r.Group)
		if err != nil {
			return Ignore{}, rutter.Errorf(rutter.CodeInvalid,
				"ignoreDifferences[%d].group: %q is not a glob: %w", i, r.Group, err)
		}
		kind, err := glob.Compile(r.Kind)
		if err != nil {
			return Ignore{}, rutter.Errorf(rutter.CodeInvalid,
				"ignoreDifferences[%d].kind: %q is not a glob: %w", i, r.Kind, err)
		}
		c := ignoreRule{group: group, kind: kind, namespace: r.Namespace, name: r.Name}
		for _, p := range r.JSONPointers {
			tokens, err := parsePointer(p)
			if err != nil {
				return Ignore{}, rutter.Errorf(rutter.CodeInvalid, "ignoreDifferences[%d].jsonPointers: %w", i, err)
			}
			c.pointers = append(c.pointers, tokens)
		}
		out.rules = append(out.rules, c)
	}
	return out, nil
}

// Empty reports whether nothing at all is ignored.
func (g Ignore) Empty() bool { return len(g.rules) == 0 }

// of returns the pointers that apply to an object.
func (g Ignore) of(u *unstructured.Unstructured) pointers {
	if len(g.rules) == 0 || u == nil {
		return nil
	}
	ref := rutter.RefOf(u)
	var out pointers
	for _, r := range g.rules {
		if r.matches(ref) {
			out = append(out, r.pointers...)
		}
	}
	return out
}

func (r ignoreRule) matches(ref rutter.Ref) bool {
	return (r.name == "" || r.name == ref.Name) &&
		(r.namespace == "" || r.namespace == ref.Namespace) &&
		r.group.Match(ref.Group) && r.kind.Match(ref.Kind)
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
		for j := 0; j < len(t); j++ {
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
