package cel

import (
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
)

func thing(status map[string]any) map[string]any {
	return map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a", "generation": int64(3)}, "spec": map[string]any{"replicas": int64(2)}, "status": status}
}

const readyIs = `status.conditions.filter(c, c.type == 'Ready').all(c, c.status == '`

// TestHealth: expressions as people write them for Flux, in the order in which they are asked.
func TestHealth(t *testing.T) {
	ready := func(status string) map[string]any {
		return map[string]any{"phase": "x", "conditions": []any{map[string]any{"type": "Ready", "status": status}, map[string]any{"type": "Other", "status": "False"}}}
	}
	conditions := rutter.HealthExpr{InProgress: readyIs + `Unknown')`, Failed: readyIs + `False')`, Current: readyIs + `True')`}
	for name, tc := range map[string]struct {
		expr   rutter.HealthExpr
		status map[string]any
		want   rutter.HealthState
		reason string
		err    string
	}{
		"current":         {expr: conditions, status: ready("True"), want: rutter.Healthy, reason: "ExprCurrent"},
		"failed":          {expr: conditions, status: ready("False"), want: rutter.Degraded, reason: "ExprFailed"},
		"in progress":     {expr: conditions, status: ready("Unknown"), want: rutter.Progressing, reason: "ExprInProgress"},
		"none of them":    {expr: conditions, status: ready("Perhaps"), want: rutter.Progressing, reason: "ExprNone"},
		"current alone":   {expr: rutter.HealthExpr{Current: "status.ready"}, status: map[string]any{"ready": true}, want: rutter.Healthy, reason: "ExprCurrent"},
		"the first wins":  {expr: rutter.HealthExpr{InProgress: "true", Failed: "true", Current: "true"}, want: rutter.Progressing, reason: "ExprInProgress"},
		"then failed":     {expr: rutter.HealthExpr{InProgress: "false", Failed: "true", Current: "true"}, want: rutter.Degraded, reason: "ExprFailed"},
		"behind":          {expr: rutter.HealthExpr{Current: "true"}, status: map[string]any{"observedGeneration": int64(2)}, want: rutter.Progressing, reason: "GenerationNotObserved"},
		"not behind":      {expr: rutter.HealthExpr{Current: "true"}, status: map[string]any{"observedGeneration": int64(3)}, want: rutter.Healthy, reason: "ExprCurrent"},
		"a text for it":   {expr: rutter.HealthExpr{Current: "true"}, status: map[string]any{"observedGeneration": "2"}, want: rutter.Healthy, reason: "ExprCurrent"},
		"optional fields": {expr: rutter.HealthExpr{Current: `status.?phase.orValue("") == "Up"`}, status: map[string]any{}, want: rutter.Progressing, reason: "ExprNone"},
		"a missing key":   {expr: rutter.HealthExpr{Failed: `status.phase == "Down"`, Current: "true"}, status: map[string]any{}, want: rutter.HealthUnknown, reason: "ExpressionFailed", err: `cm: key: failed: "status.phase == \"Down\"": no such key: phase`},
		"no such field":   {expr: rutter.HealthExpr{Current: "data.x == '1'"}, want: rutter.HealthUnknown, reason: "ExpressionFailed", err: "data"},
		"no truth":        {expr: rutter.HealthExpr{Current: "metadata.name"}, want: rutter.HealthUnknown, reason: "ExpressionFailed", err: `"metadata.name" yields string, want true or false`},
		"numbers":         {expr: rutter.HealthExpr{Current: "status.ready >= spec.replicas && status.share > 0 && spec.replicas < 2.5"}, status: map[string]any{"ready": int64(2), "share": 0.5}, want: rutter.Healthy, reason: "ExprCurrent"},
		"libraries":       {expr: rutter.HealthExpr{Current: "sets.contains(status.all, ['a']) && status.all.join('-').upperAscii() == 'A-B' && string(base64.decode('YQ==')) == 'a'"}, status: map[string]any{"all": []any{"a", "b"}}, want: rutter.Healthy, reason: "ExprCurrent"},
		"does not parse":  {expr: rutter.HealthExpr{Failed: "status.phase ==", Current: "true"}, want: rutter.HealthUnknown, reason: "ExpressionFailed", err: `cm: key: failed: "status.phase =="`},
		"no current":      {expr: rutter.HealthExpr{Failed: "true"}, want: rutter.HealthUnknown, reason: "ExpressionFailed", err: "cm: key: current: the expression is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.expr.Source = "cm: key"
			h, compileErr := CompileHealth(tc.expr)
			for range 2 { // it may be asked again
				got, err := h.Of(thing(tc.status))
				if got.Status != tc.want || got.Reason != tc.reason {
					t.Errorf("%+v, want %s %s", got, tc.want, tc.reason)
				}
				if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || got.Message != err.Error()) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				if compileErr != nil && err == nil {
					t.Errorf("compiles with %v, and yet is asked", compileErr)
				}
			}
		})
	}
}

// TestProgram: expressions on named values, as dependencies have them.
func TestProgram(t *testing.T) {
	for name, tc := range map[string]struct {
		expr, err string
		want      bool
	}{
		"yes":             {expr: "dep.status.version == self.spec.version", want: true},
		"no":              {expr: "dep.status.version != self.spec.version"},
		"another name":    {expr: "other.status.ready", err: "undeclared reference to 'other'"},
		"a text":          {expr: "'yes'", err: "yields string"},
		"a dynamic text":  {expr: "dep.status.version", err: "yields string"},
		"mixed list":      {expr: "['a', 1].size() == 2", err: "expected type"},
		"nothing":         {expr: " ", err: "is empty"},
		"too long":        {expr: "true" + strings.Repeat(" && true", 2000), err: "longer than"},
		"too deep":        {expr: strings.Repeat("(", 3000) + "true" + strings.Repeat(")", 3000), err: "recursion"},
		"a missing value": {expr: "dep.status.none", err: "no such key: none"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Compile(tc.expr, "self", "dep")
			got := false
			if err == nil {
				got, err = p.Eval(map[string]any{"self": map[string]any{"spec": map[string]any{"version": "v1"}}, "dep": map[string]any{"status": map[string]any{"version": "v1"}}})
			}
			if tc.err != "" {
				if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v, %v; want %q", got, err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("%v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

// TestLimits: no expression runs for ever or fills the memory.
func TestLimits(t *testing.T) {
	list := make([]any, 2000)
	for i := range list {
		list[i] = "element"
	}
	many := make([]any, 20000)
	for i := range many {
		many[i] = int64(i)
	}
	values := map[string]any{"many": many, "list": list, "long": strings.Repeat("a", 1<<20)}
	for name, expr := range map[string]string{
		"loops in loops":   `list.all(a, list.all(b, list.all(c, list.all(d, true))))`,
		"doubling a text":  `[long]` + strings.Repeat(`.map(x, x + x)`, 40) + `.size() == 1`,
		"replacing":        `long.replace("a", "` + strings.Repeat("b", 4000) + `").size() > 1`,
		"replacing again":  `"aaaaaaaaaa"` + strings.Repeat(`.replace("a", "aaaaaaaaaa")`, 30) + `.size() > 1`,
		"joining":          `long.split("").join("` + strings.Repeat("b", 4000) + `").size() > 1`,
		"formatting":       `"` + strings.Repeat("%s", 100) + `".format([` + strings.Repeat("long, ", 99) + `long]).size() > 1`,
		"a wide format":    `"%.999999999f".format([1.0]).size() > 1`,
		"a shared list":    `[1]` + strings.Repeat(`.map(x, [x, x])`, 1) + strings.Repeat(`.map(x, [x, x])`, 60) + ` == [1]`,
		"comparing shared": `[[1]]` + strings.Repeat(`.map(x, [x, x])`, 60) + `.all(x, x == x)`,
		"pairing":          `sets.contains(many, many.map(x, x + 1))`,
		"pairing other":    `sets.intersects(many, many.map(x, x + 20001))`,
		"matching":         `list.exists(x, long.matches("(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*b"))`,
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Compile(expr)
			if err != nil {
				t.Fatal(err)
			}
			if yes, err := p.Eval(values); err == nil || yes {
				t.Errorf("%v, %v; want it refused", yes, err)
			} else if rutter.CodeOf(err) != rutter.CodeInvalid {
				t.Error(err)
			}
		})
	}
	p, err := Compile(`list.filter(x, x == "element").size() == 2000 && long.contains("aaa") && long == long && list == list && sets.contains(list, ["element"])`)
	if err != nil {
		t.Fatal(err)
	}
	if yes, err := p.Eval(values); err != nil || !yes {
		t.Errorf("an honest expression: %v, %v", yes, err)
	}
}

// FuzzProgram: whatever is written, it ends, and nothing panics.
func FuzzProgram(f *testing.F) {
	for _, s := range []string{`status.phase == "Up"`, `status.conditions.exists(c, c.type == "Ready")`, `"a".replace("a", "b") == "b"`, `[1, 2].map(x, x * 2) == [2, 4]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		p, err := Compile(expr)
		if err != nil {
			return
		}
		if yes, err := p.Eval(thing(map[string]any{"phase": "Up", "conditions": []any{}})); err != nil && yes {
			t.Errorf("%v and yes", err)
		}
	})
}
