package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gobwas/glob"
)

// outcome is what a pattern says of a text.
type outcome int

const (
	miss outcome = iota
	hit
	// unreadable patterns say nothing: a caller that allows takes that as a
	// miss, one that denies as a hit.
	unreadable
)

// allows reads an outcome for a rule that allows.
func (o outcome) allows() bool { return o == hit }

// denies reads an outcome for a rule that denies.
func (o outcome) denies() bool { return o != miss }

// pattern is a glob that is compiled once, with or without a "!" before it.
type pattern struct {
	text string // without the "!"
	deny bool
	glob glob.Glob
	err  error
}

// newPattern compiles a glob; the separators are what * does not cross.
func newPattern(text string, separators ...rune) pattern {
	p := plainPattern(strings.TrimPrefix(text, "!"), separators...)
	p.deny = strings.HasPrefix(text, "!")
	return p
}

// plainPattern compiles a glob in which "!" has no meaning.
func plainPattern(text string, separators ...rune) pattern {
	p := pattern{text: text}
	if text != "" && text != "*" {
		p.glob, p.err = glob.Compile(text, separators...)
	}
	return p
}

func plainPatterns(texts []string) []pattern {
	out := make([]pattern, 0, len(texts))
	for _, t := range texts {
		out = append(out, plainPattern(t))
	}
	return out
}

// match says whether the glob matches; an empty one matches only what is empty.
func (p pattern) match(s string) outcome {
	switch {
	case p.text == "*" || p.text == s:
		return hit
	case p.err != nil:
		return unreadable
	case p.glob != nil && p.glob.Match(s):
		return hit
	}
	return miss
}

// shell matches a shell pattern, in which * does not cross a slash.
func shell(pattern, s string) outcome {
	ok, err := path.Match(pattern, s)
	return outcomeOf(ok, err)
}

// MatchesNamespace reports whether one of some patterns matches a namespace: a
// glob each, or /a regular expression/ (6.9). What cannot be read matches none.
func MatchesNamespace(patterns []string, namespace string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return globOrRegexp(p, namespace).allows() })
}

func globOrRegexp(text, s string) outcome {
	expression, ok := asRegexp(text)
	if !ok {
		return plainPattern(text).match(s)
	}
	re, err := regexp.Compile(expression)
	return outcomeOf(err == nil && re.MatchString(s), err)
}

// asRegexp is the expression between two slashes.
func asRegexp(text string) (string, bool) {
	if len(text) < 3 || !strings.HasPrefix(text, "/") || !strings.HasSuffix(text, "/") {
		return "", false
	}
	return text[1 : len(text)-1], true
}

func outcomeOf(matched bool, err error) outcome {
	switch {
	case err != nil:
		return unreadable
	case matched:
		return hit
	default:
		return miss
	}
}
