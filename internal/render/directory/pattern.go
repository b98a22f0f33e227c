package directory

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/rutterhq/rutter"
)

// maxPattern bounds a pattern: nobody writes more by hand.
const maxPattern = 4096

// pattern compiles an include or exclude pattern; nil for none. It is a glob in
// the dialect of github.com/gobwas/glob without separators: * and ** match
// anything, slashes too, ? one character, [abc], [!abc] and [a-z] one of a
// class, {a,b} one of several patterns, and \ takes the meaning of what
// follows. It is matched as a regular expression, because that library's own
// matcher takes exponential time on patterns such as a*a*a*a*b.
func pattern(field, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no pattern
	}
	if len(text) > maxPattern {
		return nil, rutter.Errorf(rutter.CodeInvalid, "directory.%s is longer than %d characters: name folders instead of files", field, maxPattern)
	}
	t := &translation{in: []rune(text)}
	err := t.all()
	if err == nil {
		var re *regexp.Regexp
		if re, err = regexp.Compile(`\A(?s:` + t.out.String() + `)\z`); err == nil {
			return re, nil
		}
	}
	return nil, rutter.Errorf(rutter.CodeInvalid, "directory.%s: %q is not a pattern: %w", field, text, err)
}

// translation turns a glob into the text of a regular expression.
type translation struct {
	in    []rune
	at    int
	depth int // of braces
	out   strings.Builder
}

func (t *translation) all() error {
	for t.at < len(t.in) {
		c := t.in[t.at]
		t.at++
		switch {
		case c == '*':
			t.out.WriteString(".*")
			for t.at < len(t.in) && t.in[t.at] == '*' {
				t.at++
			}
		case c == '?':
			t.out.WriteString(".")
		case c == '{':
			t.depth++
			t.out.WriteString("(?:")
		case c == '}' && t.depth > 0:
			t.depth--
			t.out.WriteString(")")
		case c == ',' && t.depth > 0:
			t.out.WriteString("|")
		case c == '[':
			if err := t.class(); err != nil {
				return err
			}
		case c == '\\':
			if t.at < len(t.in) {
				t.literal(t.in[t.at])
				t.at++
			}
		default:
			t.literal(c)
		}
	}
	// A brace that is not closed ends with the pattern.
	t.out.WriteString(strings.Repeat(")", t.depth))
	return nil
}

func (t *translation) literal(c rune) { t.out.WriteString(regexp.QuoteMeta(string(c))) }

// class reads what follows a bracket: one range, or some characters.
func (t *translation) class() error {
	t.out.WriteByte('[')
	if t.peek(0) == '!' {
		t.out.WriteByte('^')
		t.at++
	}
	if t.peek(1) == '-' {
		lo, hi := t.peek(0), t.peek(2)
		if hi == 0 || t.peek(3) != ']' {
			return fmt.Errorf("the class at character %d must be one range such as [a-z], or some characters", t.at)
		}
		if hi < lo {
			return fmt.Errorf("the range %c-%c is empty", lo, hi)
		}
		fmt.Fprintf(&t.out, `\x{%X}-\x{%X}]`, lo, hi)
		t.at += 4
		return nil
	}
	some := false
	for ; t.at < len(t.in); t.at++ {
		c := t.in[t.at]
		if c == ']' {
			if !some {
				return fmt.Errorf("the class at character %d is empty", t.at)
			}
			t.at++
			t.out.WriteByte(']')
			return nil
		}
		if c == '\\' && t.at+1 < len(t.in) {
			t.at++
			c = t.in[t.at]
		}
		fmt.Fprintf(&t.out, `\x{%X}`, c)
		some = true
	}
	return errors.New("a bracket is not closed")
}

// peek is the character n after the next one, or zero.
func (t *translation) peek(n int) rune {
	if t.at+n < len(t.in) {
		return t.in[t.at+n]
	}
	return 0
}
