package jq

import (
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"github.com/rutterhq/rutter"
)

// What bounds one expression on one object.
const (
	MaxSteps = 100_000
	maxPaths = 10_000
	maxDepth = 100
)

// Path is a compiled expression that names fields.
type Path struct {
	text string
	code *gojq.Code
}

// Compile reads an expression. The error says what is wrong with it; the caller
// adds where it stands.
func Compile(text string) (Path, error) {
	if len(text) > maxText {
		return Path{}, rutter.Errorf(rutter.CodeInvalid, "has %d characters, at most %d are read", len(text), maxText)
	}
	query, err := gojq.Parse(text)
	if err == nil {
		err = new(check).query(query)
	}
	if err != nil {
		return Path{}, notPath(text, err)
	}
	if query, err = gojq.Parse("path(" + text + ")"); err != nil {
		return Path{}, notPath(text, err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return Path{}, notPath(text, err)
	}
	return Path{text: text, code: code}, nil
}

func notPath(text string, err error) error {
	return rutter.Errorf(rutter.CodeInvalid, "%q is not a jq path: %w", text, err)
}

// String is the expression as it was written.
func (p Path) String() string { return p.text }

// In returns the paths that the expression names in a tree: texts for fields,
// ints for items of lists, in the order in which they were found. The tree must
// hold numbers as int or float64 (see Plain); others make the library panic.
// It takes at most steps, and says how many it took.
func (p Path) In(tree any, steps int) (found [][]any, taken int, err error) {
	limit := &stepLimit{left: steps}
	iter := p.code.RunWithContext(limit, tree)
	for {
		v, ok := iter.Next()
		if !ok {
			return found, limit.taken, nil
		}
		if err, failed := v.(error); failed {
			return nil, limit.taken, &rutter.Error{Code: rutter.CodeInvalid, Message: withoutValues(err)}
		}
		path, ok := v.([]any)
		if !ok || len(found) == maxPaths || len(path) > maxDepth {
			return nil, limit.taken, rutter.Errorf(rutter.CodeInvalid, "names more than %d fields, or one more than %d deep", maxPaths, maxDepth)
		}
		found = append(found, path)
	}
}

// withoutValues is an error without the values of the object that the library
// shows in it: they are nobody's business but its own.
func withoutValues(err error) string {
	text, _, _ := strings.Cut(err.Error(), " (")
	return text
}

// Plain makes whole numbers of a tree those that the library knows, in place.
func Plain(value any) any {
	switch v := value.(type) {
	case int64:
		return int(v)
	case map[string]any:
		for k, item := range v {
			v[k] = Plain(item)
		}
	case []any:
		for i, item := range v {
			v[i] = Plain(item)
		}
	}
	return value
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
	return rutter.Errorf(rutter.CodeInvalid, "takes more steps than the %d that it may", l.taken-1)
}

// Deadline implements context.Context.
func (*stepLimit) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Value implements context.Context.
func (*stepLimit) Value(any) any { return nil }
