package policy

import (
	"path"
	"regexp"
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

// globs matches a glob; the separators are what * does not cross.
func globs(pattern, s string, separators ...rune) outcome {
	if pattern == "*" || pattern == s {
		return hit
	}
	g, err := glob.Compile(pattern, separators...)
	return outcomeOf(err == nil && g.Match(s), err)
}

// shell matches a shell pattern, in which * does not cross a slash.
func shell(pattern, s string) outcome {
	ok, err := path.Match(pattern, s)
	return outcomeOf(ok, err)
}

// globOrRegexp matches /a regular expression/ or a glob.
func globOrRegexp(pattern, s string) outcome {
	if len(pattern) < 3 || !strings.HasPrefix(pattern, "/") || !strings.HasSuffix(pattern, "/") {
		return globs(pattern, s)
	}
	re, err := regexp.Compile(pattern[1 : len(pattern)-1])
	return outcomeOf(err == nil && re.MatchString(s), err)
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

// allows reads an outcome for a rule that allows.
func (o outcome) allows() bool { return o == hit }

// denies reads an outcome for a rule that denies.
func (o outcome) denies() bool { return o != miss }
