package generate

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWildmatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          bool
	}{
		{"a/*/c", "a/b/c", true},
		{"a/*/c", "a/b/x/c", true},
		{"a?c", "a/c", true},
		{"*.yaml", "deep/er/x.yaml", true},
		{"**/x.yaml", "x.yaml", false},
		{"**/x.yaml", "a/b/x.yaml", true},
		{"[a-c]x", "bx", true},
		{"[!a-c]x", "bx", false},
		{"[^a-c]x", "dx", true},
		{"[]a]", "]", true},
		{"[[:digit:]]", "7", true},
		{"[[:alpha:]]", "7", false},
		{`\*`, "*", true},
		{`\*`, "x", false},
		{"[a", "a", false},
		{"", "", true},
		{"*", "", true},
		{"é?", "éü", true},
		{strings.Repeat("a*", 30) + "b", strings.Repeat("a", 200), false},
	} {
		if got := wildmatch(tc.pattern, tc.name); got != tc.want {
			t.Errorf("wildmatch(%q, %q) = %v, want %v", tc.pattern, tc.name, got, tc.want)
		}
	}
}

func TestFilePattern(t *testing.T) {
	for _, tc := range []struct {
		pattern, file, reason string
		want                  bool
	}{
		{"a", "a/b/c.yaml", "the name of a directory selects all in it", true},
		{"a/", "a/b/c.yaml", "with a slash too", true},
		{"a", "ab", "but not what begins like it", false},
		{".", "x/y", "the root is a directory", true},
		{"./a//b", "a/b/c.yaml", "paths are cleaned as git does", true},
		{"c.yaml", "a/c.yaml", "a plain name is a path from the root", false},
		{"*/c.yaml", ".h/c.yaml", "hidden directories are searched", true},
	} {
		p, err := newFilePattern(tc.pattern, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.matches(tc.file); got != tc.want {
			t.Errorf("%q, %q: %v, but %s", tc.pattern, tc.file, got, tc.reason)
		}
	}
	for _, pattern := range []string{"", "/a", ":(exclude)a"} {
		if _, err := newFilePattern(pattern, false); err == nil {
			t.Errorf("%q is accepted", pattern)
		}
	}
	if _, err := newFilePattern("a/[", true); err == nil {
		t.Error("a class that does not end is accepted")
	}
}

// FuzzWildmatch compares with path.Match, which has the same meaning for names
// without slashes and patterns without the extensions.
func FuzzWildmatch(f *testing.F) {
	for _, s := range [][2]string{{"a*b", "axxb"}, {"[a-z]?", "qq"}, {`\[x`, "[x"}, {"*a*", "bab"}, {"[^x]", "y"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		got := wildmatch(pattern, name)
		if strings.ContainsAny(pattern+name, "/!") || strings.Contains(pattern, "[]") || strings.Contains(pattern, "[^]") ||
			strings.Contains(pattern, "[:") || strings.Contains(pattern, "-") && strings.Contains(pattern, "[") ||
			!utf8.ValidString(pattern) || !utf8.ValidString(name) {
			return
		}
		if want, err := path.Match(pattern, name); err == nil && got != want {
			t.Errorf("wildmatch(%q, %q) = %v, path.Match says %v", pattern, name, got, want)
		}
	})
}

// FuzzLeads holds that pruning the walk never loses a file that matches.
func FuzzLeads(f *testing.F) {
	f.Add("clusters/*/config.yaml", "clusters/a/b/config.yaml", false)
	f.Add("a/**/b", "a/x/y/b", true)
	f.Add("[a/b]c", "ac", false)
	f.Fuzz(func(t *testing.T, pattern, file string, segments bool) {
		p, err := newFilePattern(pattern, segments)
		if err != nil || path.Clean(file) != file || strings.HasPrefix(file, "/") || strings.HasPrefix(file, "..") || !p.matches(file) {
			return
		}
		for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
			if !p.leads(dir) {
				t.Fatalf("%q matches %q, but %q is not entered", pattern, file, dir)
			}
		}
	})
}

// FuzzFastTemplate holds that a text is rendered as the sum of its parts: what
// is unknown stays, and without parameters nothing changes.
func FuzzFastTemplate(f *testing.F) {
	for _, s := range []string{"a{{x}}b", "{{ x }}", "{{}}", "{{{x}}}", "{{x", "}}{{x}}{{", "{{ {{x}} }}"} {
		f.Add(s, "value")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		same, unknown, err := newFastEngine().render(text, nil)
		if err != nil || same != text {
			t.Fatalf("without parameters %q became %q (%v)", text, same, err)
		}
		params := map[string]any{"number": 1}
		for _, k := range unknown {
			if k != "" && k != "number" {
				params[k] = value
			}
		}
		_, left, _ := newFastEngine().render(text, params)
		for _, k := range left {
			if k != "" && k != "number" {
				t.Fatalf("%q has the key %q, and it was not replaced in %q", params, k, text)
			}
		}
	})
}
