package generate

import (
	"fmt"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/jq"
)

// allFieldRuleSteps bounds one expression on all Applications of one decision.
const allFieldRuleSteps = 50_000_000

// fieldRule finds the fields that a jq expression names.
type fieldRule struct {
	where string
	path  jq.Path
	// left are the steps that may still be taken for all Applications.
	left *int
}

// newFieldRule compiles an expression that stands at where.
func newFieldRule(where, text string) (fieldRule, error) {
	path, err := jq.Compile(text)
	if err != nil {
		return fieldRule{}, rutter.Errorf(rutter.CodeInvalid, "%s: %w", where, err)
	}
	left := allFieldRuleSteps
	return fieldRule{where: where, path: path, left: &left}, nil
}

// paths are those that the expression names in a tree.
func (r fieldRule) paths(tree any) ([][]any, error) {
	found, taken, err := r.path.In(tree, min(jq.MaxSteps, *r.left))
	*r.left -= taken
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: %w", r.where, err)
	}
	return found, nil
}

// keep gives the fields that the expression names in to the values that those
// it names in from have. Items of lists are taken in their order, when there
// are as many in both: what they are told apart by may be what differs.
func (r fieldRule) keep(to, from map[string]any) error {
	jq.Plain(to)
	jq.Plain(from)
	written, err := r.paths(to)
	if err != nil {
		return err
	}
	kept, err := r.paths(from)
	if err != nil {
		return err
	}
	if len(written) == len(kept) {
		for i := range kept {
			value, ok := valueAt(from, kept[i])
			setAt(to, written[i], value, ok)
		}
		return nil
	}
	named := map[string]bool{}
	for _, path := range kept {
		named[fmt.Sprint(path...)] = true
		if value, ok := valueAt(from, path); ok {
			setAt(to, path, value, true)
		}
	}
	for _, path := range written {
		if !named[fmt.Sprint(path...)] && !throughList(path) {
			setAt(to, path, nil, false)
		}
	}
	return nil
}

func throughList(path []any) bool {
	for _, step := range path {
		if _, ok := step.(string); !ok {
			return true
		}
	}
	return false
}

func valueAt(tree any, path []any) (any, bool) {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			object, _ := tree.(map[string]any)
			value, ok := object[s]
			if !ok {
				return nil, false
			}
			tree = value
		case int:
			items, _ := tree.([]any)
			if s < 0 || s >= len(items) {
				return nil, false
			}
			tree = items[s]
		default:
			return nil, false
		}
	}
	return tree, true
}

// setAt writes a value, or takes it away. A way that is not there is made, but
// no items of lists are.
func setAt(tree any, path []any, value any, present bool) {
	for i, step := range path {
		last := i == len(path)-1
		switch s := step.(type) {
		case string:
			object, ok := tree.(map[string]any)
			switch {
			case !ok:
				return
			case last && present:
				object[s] = value
			case last:
				delete(object, s)
			case object[s] == nil && present:
				object[s] = map[string]any{}
			}
			tree = object[s]
		case int:
			items, ok := tree.([]any)
			if !ok || s < 0 || s >= len(items) {
				return
			}
			if last && present {
				items[s] = value
			}
			tree = items[s]
		default:
			return
		}
	}
}
