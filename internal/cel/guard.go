package cel

import (
	"slices"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
)

// guards are the functions of the libraries whose work is not in proportion to what
// they are given. Their calls lie in each other in chains, so the guard is in the
// function itself: before the call, a node of the tree would have to compute what the
// call is given once more, and a chain of them 2, 4, 8 times.
var guards = map[string]func(args []ref.Val) int{
	"replace": replacing, "join": joining, "format": formatting,
	"sets.contains": pairing, "sets.equivalent": pairing, "sets.intersects": pairing,
}

// libraries are the functions for texts and sets, with their guards.
func libraries() ([]celgo.EnvOption, error) {
	whole, err := celgo.NewEnv(ext.Strings(), ext.Sets())
	if err != nil {
		return nil, err //nolint:wrapcheck // said by the caller
	}
	bare, err := celgo.NewEnv()
	if err != nil {
		return nil, err //nolint:wrapcheck // said by the caller
	}
	known := bare.Functions()
	var out []celgo.EnvOption
	for name, f := range whole.Functions() {
		if known[name] != nil {
			continue
		}
		if work := guards[name]; work != nil {
			if f, err = guarded(f, work); err != nil {
				return nil, err
			}
		}
		out = append(out, celgo.FunctionDecls(f))
	}
	return out, nil
}

// guarded is a function that refuses what would be too much work.
func guarded(f *decls.FunctionDecl, work func(args []ref.Val) int) (*decls.FunctionDecl, error) {
	bindings, err := f.Bindings()
	if err != nil {
		return nil, err //nolint:wrapcheck // said by the caller
	}
	var options []decls.FunctionOpt
	for _, o := range f.OverloadDecls() {
		i := slices.IndexFunc(bindings, func(b *functions.Overload) bool { return b.Operator == o.ID() })
		if i < 0 {
			continue
		}
		declare, binding := decls.Overload, decls.FunctionBinding(guardedCall(f.Name(), bindings[i], work))
		if o.IsMemberFunction() {
			declare = decls.MemberOverload
		}
		options = append(options, declare(o.ID(), o.ArgTypes(), o.ResultType(), binding))
	}
	return decls.NewFunction(f.Name(), options...) //nolint:wrapcheck // said by the caller
}

func guardedCall(name string, b *functions.Overload, work func(args []ref.Val) int) functions.FunctionOp {
	return func(args ...ref.Val) ref.Val {
		switch {
		case work(args) > maxWeight:
			return types.NewErr("%s: would do more than an expression may; make it simpler", name)
		case len(args) == 1 && b.Unary != nil:
			return b.Unary(args[0])
		case len(args) == 2 && b.Binary != nil:
			return b.Binary(args[0], args[1])
		case b.Function != nil:
			return b.Function(args...)
		}
		return types.NewErr("%s: is not for these arguments", name)
	}
}
