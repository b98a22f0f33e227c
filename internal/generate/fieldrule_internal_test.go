package generate

import (
	"strings"
	"testing"
	"time"
)

// FuzzFieldRule: whatever rule a user writes ends soon, and never in a panic.
func FuzzFieldRule(f *testing.F) {
	for _, s := range []string{
		".spec.source.helm.parameters[] | select(.name == \"tag\") | .value", "..", "recurse(.)", ".a[1:2]?", "[.[].a]|first", "path(.)",
		"if .a then .b elif .c then .d else . end", "limit(3; .)", "\"\\(.a)\"", ".a[\"b\"]", ".[] // .c", "@base64", "{a: .b}", "try .a", "-(.a)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rule, err := newFieldRule("rule", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "rule: ") {
				t.Errorf("%q: the place is not named: %v", text, err)
			}
			return
		}
		tree := func() map[string]any {
			return map[string]any{"a": []any{int64(1), "x", map[string]any{"b": true}}, "spec": map[string]any{"source": map[string]any{"path": "p"}}}
		}
		start := time.Now()
		_ = rule.keep(tree(), tree())
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%q took %v", text, took)
		}
	})
}
