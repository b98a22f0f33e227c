package cel

import (
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"

	"github.com/rutterhq/rutter"
)

const (
	// maxSource bounds an expression, and with it how deep its parts may lie in each other.
	maxSource = 8 << 10
	// maxCost is about what a tenth of a second allows; expressions on conditions
	// cost some hundreds.
	maxCost = 1_000_000
)

// Program is an expression that can be evaluated any number of times, by many at one time.
type Program struct {
	source  string
	program celgo.Program
}

// Compile reads an expression that says yes or no. Without variables it is only
// parsed: what the values lack is found when it is evaluated. With variables no
// other names may be used, and an expression that cannot say yes or no is refused.
func Compile(expr string, variables ...string) (*Program, error) {
	if strings.TrimSpace(expr) == "" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the expression is empty")
	}
	if len(expr) > maxSource {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the expression is longer than %d bytes", maxSource)
	}
	env, err := environment(variables)
	if err != nil {
		return nil, err
	}
	tree, issues := env.Parse(expr)
	if err := issues.Err(); err != nil {
		return nil, refused(expr, err)
	}
	if len(variables) > 0 {
		if tree, issues = env.Check(tree); issues.Err() != nil {
			return nil, refused(expr, issues.Err())
		}
		if t := tree.OutputType(); !t.IsExactType(celgo.BoolType) && !t.IsExactType(celgo.DynType) {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%q yields %s, want true or false", expr, t)
		}
	}
	program, err := env.Program(tree, celgo.CostLimit(maxCost), celgo.CostTracking(prices{}), celgo.CustomDecoratorV2(weighed))
	if err != nil {
		return nil, refused(expr, err)
	}
	return &Program{source: expr, program: program}, nil
}

// environment is the language of Flux's expressions.
func environment(variables []string) (*celgo.Env, error) {
	opts := []celgo.EnvOption{
		celgo.HomogeneousAggregateLiterals(), celgo.DefaultUTCTimeZone(true), celgo.CrossTypeNumericComparisons(true), celgo.OptionalTypes(),
		celgo.ParserExpressionSizeLimit(maxSource), ext.Encoders(),
	}
	guarded, err := libraries()
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "the language of expressions: %w", err)
	}
	opts = append(opts, guarded...)
	for _, v := range variables {
		opts = append(opts, celgo.Variable(v, celgo.DynType))
	}
	env, err := celgo.NewEnv(opts...)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "the language of expressions: %w", err)
	}
	return env, nil
}

// Eval evaluates the expression on values by name, as JSON has them.
func (p *Program) Eval(values map[string]any) (yes bool, err error) {
	defer func() {
		if r := recover(); r != nil { // a fault of the interpreter is the expression's alone
			yes, err = false, rutter.Errorf(rutter.CodeInvalid, "%q: %v", p.source, r)
		}
	}()
	out, _, err := p.program.Eval(values)
	if err != nil {
		return false, refused(p.source, err)
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, rutter.Errorf(rutter.CodeInvalid, "%q yields %s, want true or false", p.source, out.Type().TypeName())
	}
	return bool(b), nil
}

// refused words an error of the interpreter in one line, with the expression.
func refused(expr string, err error) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if strings.Contains(text, "cost limit exceeded") {
		text = "it does more than an expression may; make it simpler"
	}
	return rutter.Errorf(rutter.CodeInvalid, "%q: %s", expr, strings.Join(strings.Fields(strings.TrimPrefix(text, "ERROR: ")), " "))
}
