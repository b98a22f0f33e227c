package generate

import (
	"maps"
	"slices"

	"github.com/rutterhq/rutter"
)

// matrix answers with the product of its children, of which there may be any
// number. A child that fails for some outer parameters leaves only their
// combinations unknown.
func (ev *evaluator) matrix(n node, outer map[string]any) outcome {
	if len(n.children) < 2 {
		return failure(rutter.CodeInvalid, "%s: has %d generators, want at least two", n.producer(), len(n.children))
	}
	acc := outcome{sets: []paramSet{{params: map[string]any{}}}}
	for i, child := range n.children {
		next := outcome{errs: acc.errs}
		for _, s := range acc.sets {
			if s.err != nil {
				next.sets = append(next.sets, s)
				continue
			}
			answer := ev.run(child, innerScope(outer, s.params, i))
			next.errs = append(next.errs, answer.errs...)
			next.sets = slices.Grow(next.sets, len(answer.sets))
			for _, inner := range answer.sets {
				if i > 0 {
					inner = ev.combine(s, inner)
				}
				next.sets = append(next.sets, inner)
			}
			if len(next.sets) > maxElements {
				return failure(rutter.CodeInvalid, "%s: produces more than %d elements; narrow it", n.producer(), maxElements)
			}
		}
		acc = next
	}
	return outcome{sets: acc.sets, errs: uniqueErrors(acc.errs)}
}

// innerScope is what child i may refer to: what is outside of the matrix and
// the parameters of the children before it. Nil when there is nothing at all,
// so that the first generator of a set is not rendered.
func innerScope(outer, params map[string]any, i int) map[string]any {
	if i == 0 {
		return outer
	}
	scope := maps.Clone(outer)
	if scope == nil {
		scope = make(map[string]any, len(params))
	}
	maps.Copy(scope, params)
	return scope
}
