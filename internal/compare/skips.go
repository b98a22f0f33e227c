package compare

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
)

// skips are the places that a walk over a declared and a live object leaves
// out, as paths that it still has before it. A list has other indices on either
// side, and an expression finds other elements there; what either names is left
// out on both. The zero skips cost nothing.
type skips struct {
	d, l pointers
	// fixed is how many of l are pointers as they were written; the rest was
	// found in the live object.
	fixed int
}

// field returns what remains below a field; hit says that the field itself is
// left out.
func (s skips) field(name string) (next skips, hit bool) {
	if len(s.d) == 0 && len(s.l) == 0 {
		return skips{}, false
	}
	var hitD, hitL bool
	next.d, hitD = s.d.step(name)
	next.l, hitL = s.l.step(name)
	return next, hitD || hitL
}

// elem is field for an element of a list, which is at index d of the declared
// and at index l of the live list; a negative index means that it isn't there.
func (s skips) elem(d, l int) (next skips, hit bool) {
	if len(s.d) == 0 && len(s.l) == 0 {
		return skips{}, false
	}
	var hitD, hitL bool
	if d >= 0 {
		next.d, hitD = s.d.step(strconv.Itoa(d))
	}
	if l >= 0 {
		next.l, hitL = s.l.step(strconv.Itoa(l))
	}
	return next, hitD || hitL
}

// none says that nothing is left out below.
func (s skips) none() bool { return len(s.d) == 0 && len(s.l) == 0 }

// pairs yields the indices of the elements of two lists, which are compared as
// wholes, that are not left out; ok is false when they are not as many.
func (s skips) pairs(d, l []any) (pairs [][2]int, ok bool) {
	for i := range d {
		if _, hit := s.elem(i, -1); !hit {
			pairs = append(pairs, [2]int{i, 0})
		}
	}
	n := 0
	for i := range l {
		if _, hit := s.elem(-1, i); hit {
			continue
		}
		if n == len(pairs) {
			return nil, false
		}
		pairs[n][1] = i
		n++
	}
	return pairs, n == len(pairs)
}

// pointers are paths as tokens.
type pointers [][]string

// step returns what remains below a field or index; hit says that the child
// itself is named.
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

// backwards sorts paths so that of two in the same list the later element comes
// first: taking one out then moves none that is still to be found.
func (p pointers) backwards() pointers {
	out := slices.Clone(p)
	slices.SortStableFunc(out, func(a, b []string) int {
		for i := range min(len(a), len(b)) {
			x, errX := strconv.Atoi(a[i])
			y, errY := strconv.Atoi(b[i])
			if errX == nil && errY == nil && x != y {
				return cmp.Compare(y, x)
			}
			if a[i] != b[i] {
				return cmp.Compare(a[i], b[i])
			}
		}
		return cmp.Compare(len(b), len(a))
	})
	return out
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

// Strip returns obj without what the rules ignore in it. It shares what it did
// not have to copy with obj, which stays as it was: treat both as read-only.
func Strip(obj *unstructured.Unstructured, rules *Rules) *unstructured.Unstructured {
	ptrs := rules.of(obj, nil).d
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
