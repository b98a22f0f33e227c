package jq_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter/internal/jq"
)

func tree() map[string]any {
	return map[string]any{
		"a": []any{1, "x", map[string]any{"b": true}, map[string]any{"name": "sidecar", "image": "i"}},
		"m": map[string]any{"labels": map[string]any{"k": "v"}, "secret": "canary"},
	}
}

func TestIn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want, err string }{
		{text: ".m.labels.k", want: "[[m labels k]]"},
		{text: `.a[] | select(.name? == "sidecar")`, want: "[[a 3]]"},
		{text: `.a[] | objects | .image`, want: "[[a 2 image] [a 3 image]]"},
		{text: `.m | select(.labels | to_entries | any(.value == "v")) | .labels`, want: "[[m labels]]"},
		{text: `getpath(["m","labels"])`, want: "[[m labels]]"},
		{text: ".nothing.here", want: "[[nothing here]]"},
		{text: ".m.labels | keys", err: "invalid path"},
		{text: ".m.secret.x", err: "expected an object but got: string"},
		{text: ".m | recurse(.)", err: "takes more steps than the 100000"},
		{text: "{a: .m}", err: "is not acted on"},
		{text: "env", err: "env is not acted on"},
		{text: ".m |", err: "is not a jq path"},
		{text: "." + strings.Repeat("a", 2000), err: "at most 1000"},
	} {
		path, err := jq.Compile(tt.text)
		var found [][]any
		if err == nil {
			found, _, err = path.In(tree(), jq.MaxSteps)
		}
		switch {
		case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: error %v, want %q", tt.text, err, tt.err)
		case tt.err == "" && fmt.Sprint(found) != tt.want:
			t.Errorf("%s: %v, want %s", tt.text, found, tt.want)
		case err != nil && strings.Contains(err.Error(), "canary"):
			t.Errorf("%s: the error shows a value: %v", tt.text, err)
		}
	}
}

// FuzzCompile: whatever a user writes ends soon, and never in a panic.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		"..", "recurse(.)", ".a[1:2]?", "[.[].a]|first", "path(.)", "if .a then .b elif .c then .d else . end", "limit(3; .)", "\"\\(.a)\"",
		".a[\"b\"]", ".[] // .c", "@base64", "try .a", "-(.a)", "..|fromjson", ".a|split(\",\")", "getpath([1])",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := jq.Compile(text)
		if err != nil {
			return
		}
		start := time.Now()
		_, _, _ = path.In(tree(), jq.MaxSteps)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%q took %v", text, took)
		}
	})
}
