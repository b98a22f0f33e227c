package cel

import (
	"strings"

	"github.com/rutterhq/rutter"
)

// Health is a compiled rutter.HealthExpr.
type Health struct {
	source string
	// rules are in the order in which they are asked; the first that says yes counts.
	rules []rule
	// broken is why it cannot be evaluated.
	broken error
}

type rule struct {
	field   string
	state   rutter.HealthState
	program *Program
}

// CompileHealth reads the expressions of a kind. One that cannot be used is named
// with its field, and makes the kind Unknown: what comes back is never nil.
func CompileHealth(e rutter.HealthExpr) (*Health, error) {
	h := &Health{source: e.Source}
	for _, f := range []struct {
		field, expr string
		state       rutter.HealthState
	}{{"inProgress", e.InProgress, rutter.Progressing}, {"failed", e.Failed, rutter.Degraded}, {"current", e.Current, rutter.Healthy}} {
		if f.expr == "" && f.field != "current" {
			continue
		}
		program, err := Compile(f.expr)
		if err != nil {
			h.broken = rutter.Errorf(rutter.CodeInvalid, "%s: %s: %w", e.Source, f.field, err)
			return h, h.broken
		}
		h.rules = append(h.rules, rule{f.field, f.state, program})
	}
	return h, nil
}

// Of assesses an object, whose fields at the top are the variables. A controller
// that has not seen the newest spec is in progress; then inProgress, failed and
// current are asked in this order, and where none says yes the object is in progress.
// An expression that cannot be evaluated, as where a field is missing, makes it Unknown.
func (h *Health) Of(obj map[string]any) (rutter.Health, error) {
	if h.broken != nil {
		return unknown(h.broken), h.broken
	}
	if generation, observed, ok := generations(obj); ok && generation != observed {
		return rutter.Health{Status: rutter.Progressing, Reason: "GenerationNotObserved", Message: "Waiting for the controller to observe the newest spec"}, nil
	}
	for _, r := range h.rules {
		yes, err := r.program.Eval(obj)
		if err != nil {
			err = rutter.Errorf(rutter.CodeInvalid, "%s: %s: %w", h.source, r.field, err)
			return unknown(err), err
		}
		if yes {
			return rutter.Health{Status: r.state, Reason: "Expr" + strings.ToUpper(r.field[:1]) + r.field[1:], Message: "The expression " + r.field + " is true: " + r.program.source}, nil
		}
	}
	return rutter.Health{Status: rutter.Progressing, Reason: "ExprNone", Message: "The expression current is not true yet: " + h.rules[len(h.rules)-1].program.source}, nil
}

func unknown(err error) rutter.Health {
	return rutter.Health{Status: rutter.HealthUnknown, Reason: "ExpressionFailed", Message: err.Error()}
}

// generations are those of the spec and of what the controller has seen; false
// where it says nothing.
func generations(obj map[string]any) (generation, observed int64, ok bool) {
	status, _ := obj["status"].(map[string]any)
	if observed, ok = whole(status["observedGeneration"]); !ok {
		return 0, 0, false
	}
	meta, _ := obj["metadata"].(map[string]any)
	generation, _ = whole(meta["generation"])
	return generation, observed, true
}

// whole reads an integer in either form that decoders leave it in.
func whole(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}
