package generate

import (
	"fmt"
	"time"

	"github.com/itchyny/gojq"

	"github.com/rutterhq/rutter"
)

// maxJQSteps and maxJQPaths bound one expression on one Application.
const (
	maxJQSteps = 1_000_000
	maxJQPaths = 10_000
)

// jqRule finds the fields that an expression names.
type jqRule struct {
	where string
	code  *gojq.Code
}

// newJQRule compiles an expression. It sees neither the environment nor files.
func newJQRule(where, text string) (jqRule, error) {
	if _, err := gojq.Parse(text); err != nil {
		return jqRule{}, rutter.Errorf(rutter.CodeInvalid, "%s: %q is not a jq path: %w", where, text, err)
	}
	query, err := gojq.Parse("path(" + text + ")")
	if err != nil {
		return jqRule{}, rutter.Errorf(rutter.CodeInvalid, "%s: %q is not a jq path: %w", where, text, err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return jqRule{}, rutter.Errorf(rutter.CodeInvalid, "%s: %q is not a jq path: %w", where, text, err)
	}
	return jqRule{where: where, code: code}, nil
}

// paths are those that the expression names in a tree.
func (r jqRule) paths(tree any) ([][]any, error) {
	var found [][]any
	iter := r.code.RunWithContext(&stepLimit{left: maxJQSteps}, tree)
	for {
		v, ok := iter.Next()
		if !ok {
			return found, nil
		}
		if err, failed := v.(error); failed {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s: %w", r.where, err)
		}
		path, ok := v.([]any)
		if !ok || len(found) == maxJQPaths {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s: names more than %d fields", r.where, maxJQPaths)
		}
		found = append(found, path)
	}
}

// keep gives the fields that the expression names in to the values that those
// it names in from have. Items of lists are taken in their order, when there
// are as many in both: what they are told apart by may be what differs.
func (r jqRule) keep(to, from map[string]any) error {
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

// stepLimit ends an expression after a number of steps: it is asked at each of
// them whether it is done. It is the context that the library wants, without a
// clock, so that the same expression always ends in the same place.
type stepLimit struct {
	left int
	done chan struct{}
}

// Done implements context.Context.
func (l *stepLimit) Done() <-chan struct{} {
	if l.left--; l.left < 0 && l.done == nil {
		l.done = make(chan struct{})
		close(l.done)
	}
	return l.done
}

// Err implements context.Context.
func (l *stepLimit) Err() error {
	if l.left >= 0 {
		return nil
	}
	return rutter.Errorf(rutter.CodeInvalid, "takes more than %d steps", maxJQSteps)
}

// Deadline implements context.Context.
func (*stepLimit) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Value implements context.Context.
func (*stepLimit) Value(any) any { return nil }
