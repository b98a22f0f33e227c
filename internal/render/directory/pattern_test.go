package directory

import (
	"strings"
	"testing"
	"time"

	"github.com/gobwas/glob"
)

// TestPatternsAreGlobs compares with the library whose dialect it is.
func TestPatternsAreGlobs(t *testing.T) {
	patterns := []string{"*", "**", "?", "*.yaml", "a/*", "*/b", "a?c", "[abc]x", "[!abc]x", "[a-c]x", "[!a-c]x", "[^a]", "[a-]", "[]a]", "[a", "[", "[]", "[!]", "[a-cd]", "[c-a]", "[a\\]b]",
		"{a,b}", "{a,b}/{c,d}", "{a,{b,c}d}", "{,a}b", "{a,}", "{*.yaml,*.yml}", "{a", "a}", "a,b", "{a,b", "{a\\,b,c}", "\\*", "\\{a\\}", "a\\", "\\\\", "a.b", "a+b", "(a|b)", "^a$", "ü*", "{a/**,b}", "*{x,y}*", "??", "{?,??}", "***", "{}", "a{}b"}
	names := []string{"", "a", "b", "c", "d", "ab", "ac", "bd", "ad", "abc", "a/b", "a/b/c", "x.yaml", "a/x.yaml", "x.yml", "ax", "dx", "-", "]a", "a]b", "]", "^", "*", "{a}", "a}", "a,b", "{a", "a\\", "\\", "a.b", "aab", "a+b", "(a|b)", "^a$", "üx", "axb", "\n", "a\nb", "ü"}
	// Here the library does not do what it says.
	faults := map[string]string{"?": "", "[!abc]x": "üx", "[!a-c]x": "üx", "a{}b": "ab"}
	check := func(p string) {
		ours, ourErr := pattern("include", p)
		theirs, err := glob.Compile(p)
		if (ourErr == nil) != (err == nil) {
			t.Errorf("%q: %v, the library says %v", p, ourErr, err)
			return
		}
		for _, name := range names {
			if fault, known := faults[p]; known && fault == name {
				continue
			}
			if err == nil && ours.MatchString(name) != theirs.Match(name) {
				t.Errorf("%q matches %q: %v, the library says %v", p, name, ours.MatchString(name), theirs.Match(name))
			}
		}
	}
	for _, p := range patterns {
		check(p)
	}
}

// TestPatternsAreLinear: what takes the library for ever.
func TestPatternsAreLinear(t *testing.T) {
	name := strings.Repeat("a", 250)
	for _, p := range []string{strings.Repeat("a*", 2000) + "b", strings.Repeat("[a-z]*", 600) + "b", strings.Repeat("[a]", 1300), strings.Repeat("{a,aa}", 600), strings.Repeat("{*a,b?}", 500) + "b", strings.Repeat("{", 900)} {
		began := time.Now()
		if re, err := pattern("include", p); err == nil && re.MatchString(name) {
			t.Errorf("%.20q matches", p)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%.20q took %s", p, took)
		}
	}
}
