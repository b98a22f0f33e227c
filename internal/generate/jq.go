package generate

import (
	"fmt"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"github.com/rutterhq/rutter"
)

// maxJQSteps and maxJQPaths bound one expression on one Application.
const (
	maxJQSteps = 100_000
	maxJQPaths = 10_000
	maxJQDepth = 100
	// allJQSteps bounds one expression on all Applications of one decision.
	allJQSteps = 50_000_000
)

// jqRule finds the fields that an expression names.
type jqRule struct {
	where string
	code  *gojq.Code
	// left are the steps that may still be taken for all Applications.
	left *int
}

// newJQRule compiles an expression. It sees neither the environment nor files.
func newJQRule(where, text string) (jqRule, error) {
	if len(text) > maxJQText {
		return jqRule{}, rutter.Errorf(rutter.CodeInvalid, "%s: has %d characters, at most %d are read", where, len(text), maxJQText)
	}
	query, err := gojq.Parse(text)
	if err == nil {
		err = new(jqCheck).query(query)
	}
	if err != nil {
		return jqRule{}, rutter.Errorf(rutter.CodeInvalid, "%s: %q is not a jq path: %w", where, text, err)
	}
	query, err = gojq.Parse("path(" + text + ")")
	if err != nil {
		return jqRule{}, rutter.Errorf(rutter.CodeInvalid, "%s: %q is not a jq path: %w", where, text, err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return jqRule{}, rutter.Errorf(rutter.CodeInvalid, "%s: %q is not a jq path: %w", where, text, err)
	}
	left := allJQSteps
	return jqRule{where: where, code: code, left: &left}, nil
}

// paths are those that the expression names in a tree.
func (r jqRule) paths(tree any) ([][]any, error) {
	var found [][]any
	limit := &stepLimit{left: min(maxJQSteps, *r.left)}
	defer func() { *r.left -= limit.taken }()
	iter := r.code.RunWithContext(limit, tree)
	for {
		v, ok := iter.Next()
		if !ok {
			return found, nil
		}
		if err, failed := v.(error); failed {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s: %s", r.where, withoutValues(err))
		}
		path, ok := v.([]any)
		if !ok || len(found) == maxJQPaths || len(path) > maxJQDepth {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s: names more than %d fields, or one more than %d deep", r.where, maxJQPaths, maxJQDepth)
		}
		found = append(found, path)
	}
}

// withoutValues is an error without the values of the Application that the
// library shows in it: they are nobody's business but its own.
func withoutValues(err error) string {
	text, _, _ := strings.Cut(err.Error(), " (")
	return text
}

// keep gives the fields that the expression names in to the values that those
// it names in from have. Items of lists are taken in their order, when there
// are as many in both: what they are told apart by may be what differs.
func (r jqRule) keep(to, from map[string]any) error {
	plainNumbers(to)
	plainNumbers(from)
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

// plainNumbers makes whole numbers those that the library knows; others it would
// panic about.
func plainNumbers(value any) any {
	switch v := value.(type) {
	case int64:
		return int(v)
	case map[string]any:
		for k, item := range v {
			v[k] = plainNumbers(item)
		}
	case []any:
		for i, item := range v {
			v[i] = plainNumbers(item)
		}
	}
	return value
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
	left, taken int
	done        chan struct{}
}

// Done implements context.Context.
func (l *stepLimit) Done() <-chan struct{} {
	l.taken++
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
	return rutter.Errorf(rutter.CodeInvalid, "takes more steps than the %d for one Application, or %d for all", maxJQSteps, allJQSteps)
}

// Deadline implements context.Context.
func (*stepLimit) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Value implements context.Context.
func (*stepLimit) Value(any) any { return nil }
