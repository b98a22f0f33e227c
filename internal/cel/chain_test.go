package cel

import (
	"strings"
	"testing"
	"time"
)

// TestChains: calls that lie in each other cost what they do, and not 2, 4, 8 times
// that; nothing that is nested runs for long. Comparisons nested 30 deep, which nobody
// writes, are computed more than once, and refused in time for what that costs.
func TestChains(t *testing.T) {
	values := map[string]any{"s": "abc", "long": strings.Repeat("x", 2000), "t": true, "list": []any{"a"}}
	nest := func(n int, before, inner, after string) string {
		return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
	}
	for name, tc := range map[string]struct {
		expr    string
		refused bool
	}{
		"replace":   {expr: nest(60, "", "s", `.replace("a", "b")`) + ` == "bbc"`},
		"arguments": {expr: nest(25, `"a".replace("a", `, "s", ")") + ` == "abc"`},
		"format":    {expr: nest(25, `"%s".format([`, "s", "])") + ` == "abc"`},
		"join":      {expr: nest(25, "[", "s", "].join()") + ` == "abc"`},
		"sets":      {expr: nest(25, "sets.contains([true], [", "t", "])")},
		"growing":   {expr: nest(60, "", "long", `.replace("x", "xxxxxxxxxx")`) + ` == ""`, refused: true},
		"equals":    {expr: nest(60, "(", "t", " == t)"), refused: true},
		"matches":   {expr: nest(30, `("a".matches(`, `"a"`, `) ? "a" : "b")`) + ` == "a"`, refused: true},
		"in":        {expr: nest(30, "(", "s", ` in list ? "a" : "b")`) + ` == "a"`, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Compile(tc.expr)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			yes, err := p.Eval(values)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
			if tc.refused != (err != nil) || yes == tc.refused {
				t.Errorf("%v, %v; want it refused: %v", yes, err, tc.refused)
			}
		})
	}
}
