package generate

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter"
)

// selector matches flat keys. It has the meaning of a label selector without
// the limits of label values: parameters hold slashes, spaces and URLs.
type selector struct {
	equal       map[string]string
	expressions []metav1.LabelSelectorRequirement
}

// newSelector checks a label selector. where names the field in errors.
func newSelector(where string, ls metav1.LabelSelector) (selector, error) {
	for i, e := range ls.MatchExpressions {
		switch e.Operator {
		case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
			if len(e.Values) == 0 {
				return selector{}, rutter.Errorf(rutter.CodeInvalid,
					"%s.matchExpressions[%d]: %s of %q needs values", where, i, e.Operator, e.Key)
			}
		case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
			if len(e.Values) > 0 {
				return selector{}, rutter.Errorf(rutter.CodeInvalid,
					"%s.matchExpressions[%d]: %s of %q takes no values", where, i, e.Operator, e.Key)
			}
		default:
			return selector{}, rutter.Errorf(rutter.CodeInvalid,
				"%s.matchExpressions[%d]: operator %q of %q is not In, NotIn, Exists or DoesNotExist",
				where, i, e.Operator, e.Key)
		}
	}
	return selector{equal: ls.MatchLabels, expressions: ls.MatchExpressions}, nil
}

// matches reports whether all conditions hold.
func (s selector) matches(flat map[string]string) bool {
	for k, want := range s.equal {
		if got, ok := flat[k]; !ok || got != want {
			return false
		}
	}
	for _, e := range s.expressions {
		got, ok := flat[e.Key]
		var holds bool
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			holds = ok && slices.Contains(e.Values, got)
		case metav1.LabelSelectorOpNotIn:
			holds = !ok || !slices.Contains(e.Values, got)
		case metav1.LabelSelectorOpExists:
			holds = ok
		case metav1.LabelSelectorOpDoesNotExist:
			holds = !ok
		}
		if !holds {
			return false
		}
	}
	return true
}

// selector is that of an item, rendered with the parameters outside of it.
func (ev *evaluator) selector(n node, outer map[string]any) (selector, error) {
	where := n.path + ".selector"
	ls := *n.selector
	if outer != nil {
		tree, err := treeOf(ls)
		if err != nil {
			return selector{}, rutter.Errorf(rutter.CodeInvalid, "%s: %w", where, err)
		}
		r := renderer{engine: ev.engine, params: outer}
		rendered, err := r.tree(where, tree)
		if err != nil {
			return selector{}, err
		}
		raw, err := json.Marshal(rendered)
		if err == nil {
			ls = metav1.LabelSelector{}
			err = json.Unmarshal(raw, &ls)
		}
		if err != nil {
			return selector{}, rutter.Errorf(rutter.CodeInvalid, "%s: after rendering: %w", where, err)
		}
		ev.warn(r.warnings(n.path)...)
	}
	return newSelector(where, ls)
}
