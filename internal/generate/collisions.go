package generate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// AnnotationCollisions on a set declares what happens when two generators of a
// matrix give one parameter two values: "first" and "last" say whose value
// counts, maps being merged key by key in that order; "reference" has the
// rules of Argo CD (the first with Go templates, an error otherwise); "error",
// the default, names both generators. Equal values never collide, and the map
// "values" is shared by design, so that each of its keys counts for itself.
const AnnotationCollisions = "rutter.dev/collisions"

// precedence is a declared one.
type precedence string

const (
	noPrecedence    precedence = "error"
	firstPrecedence precedence = "first"
	lastPrecedence  precedence = "last"
	asReference     precedence = "reference"
)

// precedenceOf reads what the set declares, or else the operator.
func precedenceOf(set *v1alpha1.ApplicationSet, opts Options) (precedence, error) {
	declared, ok := set.Annotations[AnnotationCollisions]
	p := precedence(declared)
	switch {
	case !ok && opts.ReferenceCollisions:
		p = asReference
	case !ok:
		p = noPrecedence
	case p != noPrecedence && p != firstPrecedence && p != lastPrecedence && p != asReference:
		return "", rutter.Errorf(rutter.CodeInvalid, "metadata.annotations[%s]: %q is not first, last, reference or error", AnnotationCollisions, declared)
	}
	if p == asReference {
		p = noPrecedence
		if set.Spec.GoTemplate {
			p = firstPrecedence
		}
	}
	return p, nil
}

// combine joins two sets of a matrix, a being the outer one.
func (ev *evaluator) combine(a, b paramSet) paramSet {
	out := paramSet{origins: joinSlices(a.origins, b.origins), warnings: joinSlices(a.warnings, b.warnings), stale: a.stale || b.stale}
	switch {
	case b.err != nil:
		out.params, out.err = fill(a.params, b.params), b.err
		return out
	case ev.precedence == lastPrecedence:
		out.origins = joinSlices(b.origins, a.origins)
		out.params = fill(b.params, a.params)
		return out
	case ev.precedence == firstPrecedence:
		out.params = fill(a.params, b.params)
		return out
	}
	out.params = make(map[string]any, len(a.params)+len(b.params))
	maps.Copy(out.params, a.params)
	for k, bv := range b.params {
		av, both := out.params[k]
		if !both {
			out.params[k] = bv
			continue
		}
		am, aMap := av.(map[string]any)
		bm, bMap := bv.(map[string]any)
		if k == "values" && aMap && bMap {
			out.params[k] = fill(am, bm)
		}
	}
	out.err = collision(a, b)
	return out
}

// collision is an error about the first parameter that has two values.
func collision(a, b paramSet) error {
	var found []string
	for k, bv := range b.params {
		av, both := a.params[k]
		if !both || equalValues(av, bv) {
			continue
		}
		am, aMap := av.(map[string]any)
		bm, bMap := bv.(map[string]any)
		if k != "values" || !aMap || !bMap {
			found = append(found, k)
			continue
		}
		for vk, v := range bm {
			if old, ok := am[vk]; ok && !equalValues(old, v) {
				found = append(found, "values."+vk)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	key := slices.Min(found)
	help := "rename one of them"
	if isPath(key) {
		help = "give one of the git generators a pathParamPrefix"
	}
	return rutter.Errorf(rutter.CodeInvalid, "parameter %q is %s from %s and %s from %s; %s, or say which one counts with the annotation %s: first (or last)",
		key, brief(a.params, key), a.origin(key), brief(b.params, key), b.origin(key), help, AnnotationCollisions)
}

// equalValues spares most comparisons, which are of texts, the reflection.
func equalValues(a, b any) bool {
	if at, ok := a.(string); ok {
		bt, ok := b.(string)
		return ok && at == bt
	}
	return reflect.DeepEqual(a, b)
}

// brief shows a value in an error: a text or number itself, else what it is.
func brief(params map[string]any, key string) string {
	value, ok := params[key]
	if values, isMap := params["values"].(map[string]any); !ok && isMap {
		value = values[key[len("values."):]]
	}
	switch v := value.(type) {
	case map[string]any, []any, nil:
		return kindOf(v)
	case string:
		return fmt.Sprintf("%q", head(v, 80))
	default:
		return scalar(v)
	}
}
