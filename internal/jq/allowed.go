package jq

import (
	"slices"

	"github.com/itchyny/gojq"

	"github.com/rutterhq/rutter"
)

// maxText and maxArrays bound an expression: what it makes grows with
// their power, and a comparison of two large values is one step.
const (
	maxText   = 1000
	maxArrays = 2
)

// functions are the functions that choose fields. Those that make values, loop
// or look at the machine have no part in naming a field.
var functions = []string{
	"all", "any", "arrays", "ascii_downcase", "ascii_upcase", "booleans", "contains", "empty", "endswith", "first", "fromjson", "getpath", "has",
	"in", "index", "inside", "iterables", "keys", "last", "length", "ltrimstr", "max", "min", "not", "nulls", "numbers", "objects", "paths",
	"recurse", "rtrimstr", "scalars", "select", "split", "startswith", "strings", "test", "to_entries", "tonumber", "tostring", "type", "values",
}

// operators are those that choose.
var operators = []gojq.Operator{
	0, gojq.OpPipe, gojq.OpComma, gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe, gojq.OpAnd, gojq.OpOr, gojq.OpAlt,
}

// check looks through an expression for what could take without end: the
// library's steps are counted, but not what one of them allocates.
type check struct{ arrays int }

func refuse(what string) error {
	return rutter.Errorf(rutter.CodeInvalid, "%s is not acted on where fields are named; use paths, select and comparisons", what)
}

func (c *check) query(q *gojq.Query) error {
	switch {
	case q == nil:
		return nil
	case len(q.FuncDefs) > 0:
		return refuse("def")
	case len(q.Imports) > 0 || q.Meta != nil:
		return refuse("import")
	case len(q.Patterns) > 0:
		return refuse("a variable")
	case !slices.Contains(operators, q.Op):
		return refuse("the operator " + q.Op.String())
	}
	if err := c.term(q.Term); err != nil {
		return err
	}
	return c.queries(q.Left, q.Right)
}

func (c *check) queries(queries ...*gojq.Query) error {
	for _, q := range queries {
		if err := c.query(q); err != nil {
			return err
		}
	}
	return nil
}

func (c *check) term(t *gojq.Term) error {
	if t == nil {
		return nil
	}
	for _, s := range t.SuffixList {
		if err := c.index(s.Index); err != nil {
			return err
		}
	}
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeRecurse, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
		return nil
	case gojq.TermTypeIndex:
		return c.index(t.Index)
	case gojq.TermTypeString:
		return c.text(t.Str)
	case gojq.TermTypeQuery:
		return c.query(t.Query)
	case gojq.TermTypeUnary:
		return c.term(t.Unary.Term)
	case gojq.TermTypeFunc:
		if !slices.Contains(functions, t.Func.Name) {
			return refuse(t.Func.Name)
		}
		return c.queries(t.Func.Args...)
	case gojq.TermTypeArray:
		if c.arrays++; c.arrays > maxArrays {
			return refuse("so many arrays")
		}
		return c.query(t.Array.Query)
	case gojq.TermTypeIf:
		for _, e := range t.If.Elif {
			if err := c.queries(e.Cond, e.Then); err != nil {
				return err
			}
		}
		return c.queries(t.If.Cond, t.If.Then, t.If.Else)
	default:
		return refuse(t.String())
	}
}

func (c *check) index(i *gojq.Index) error {
	if i == nil {
		return nil
	}
	if err := c.text(i.Str); err != nil {
		return err
	}
	return c.queries(i.Start, i.End)
}

func (c *check) text(s *gojq.String) error {
	if s != nil && len(s.Queries) > 0 {
		return refuse("a text with an expression in it")
	}
	return nil
}
