package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

const (
	// maxWeight bounds the texts and elements that a call may read or make.
	maxWeight = 8 << 20
	// perStep is what a call reads or makes for the price of a step.
	perStep = 16
)

// prices says what a call costs, by the sizes of what it reads and makes. The
// interpreter's own prices need types, which expressions on any object do not have.
type prices struct{}

// CallCost implements the interpreter's estimator.
func (prices) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	sum := weight(result)
	for _, a := range args {
		sum += weight(a)
	}
	cost := uint64(1 + sum/perStep) //nolint:gosec // a weight is not negative
	if function == "matches" && len(args) == 2 {
		cost += uint64(weight(args[0]) * weight(args[1]) / (perStep * perStep)) //nolint:gosec // nor is their product
	}
	return &cost
}

// weighed has the calls whose work is not in proportion to what they are given
// looked at before they are made: their price is only asked for after. Those of the
// libraries have a guard of their own.
func weighed(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := node.(interpreter.InterpretableCall)
	if !ok {
		return node, nil
	}
	var work func(args []ref.Val) int
	switch call.Function() {
	case "matches":
		work = matching
	case "_==_", "_!=_", "@in":
		work = comparing
	default:
		return node, nil
	}
	return bounded{InterpretableCall: call, work: work}, nil
}

// bounded is a call that is refused when it would be too much work.
type bounded struct {
	interpreter.InterpretableCall
	work func(args []ref.Val) int
}

// Exec implements the interpreter's node. What is computed twice is paid twice.
func (b bounded) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, 0, len(b.Args()))
	for _, a := range b.Args() {
		args = append(args, a.Exec(frame))
	}
	if b.work(args) > maxWeight {
		return types.NewErr("%s: would do more than an expression may; make it simpler", b.Function())
	}
	return b.InterpretableCall.Exec(frame)
}

// replacing is the longest text that a replacement makes.
func replacing(args []ref.Val) int {
	if len(args) < 3 {
		return 0
	}
	return times(weight(args[0])+1, weight(args[2])+1)
}

func joining(args []ref.Val) int {
	if len(args) == 0 {
		return 0
	}
	sum, separator := deep(args[0]), 1
	if len(args) > 1 {
		separator += weight(args[1])
	}
	return sum + times(weight(args[0]), separator)
}

// formatting takes every verb of the format as one for the largest argument.
func formatting(args []ref.Val) int {
	if len(args) < 2 {
		return 0
	}
	return times(weight(args[0])/2+1, deep(args[1])+1)
}

func matching(args []ref.Val) int {
	if len(args) < 2 {
		return 0
	}
	return times(weight(args[0])+1, weight(args[1])/perStep+1)
}

func comparing(args []ref.Val) int {
	sum := 0
	for _, a := range args {
		sum += deep(a)
	}
	return sum
}

// pairing compares each element of a list with each of another.
func pairing(args []ref.Val) int {
	if len(args) < 2 {
		return 0
	}
	const cheap = 8 // a comparison of short texts, beside the making of one
	return (times(weight(args[0]), deep(args[1])) + times(weight(args[1]), deep(args[0]))) / cheap
}

// times is a product, no larger than is needed to see that it is too much.
func times(a, b int) int {
	const most = 16 * maxWeight
	if b > 0 && a > most/b {
		return most
	}
	return a * b
}

// weight is the length of a text, or the number of elements.
func weight(v ref.Val) int {
	switch x := v.(type) {
	case types.String:
		return len(x)
	case types.Bytes:
		return len(x)
	case traits.Sizer:
		if n, ok := x.Size().(types.Int); ok {
			return int(n)
		}
	}
	return 1
}

// deep is the weight of a value with all that lies in it, counted as often as it
// lies there; no more than is needed to see that it is too much.
func deep(v ref.Val) int {
	left := maxWeight + 1
	deepen(v, &left)
	return maxWeight + 1 - left
}

func deepen(v ref.Val, left *int) {
	*left -= min(weight(v)+1, *left)
	items, ok := v.(traits.Iterable)
	if !ok {
		return
	}
	entries, isMap := v.(traits.Mapper)
	for it := items.Iterator(); *left > 0 && it.HasNext() == types.True; {
		item := it.Next()
		deepen(item, left)
		if isMap && *left > 0 {
			deepen(entries.Get(item), left)
		}
	}
}
