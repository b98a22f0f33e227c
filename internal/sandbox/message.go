package sandbox

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxStderr is what is kept of a program's messages: the end of them.
const maxStderr = 8 << 10

// tail keeps the last bytes that are written to it.
type tail struct {
	limit int
	data  []byte
	cut   bool
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > t.limit {
		p, t.cut = p[len(p)-t.limit:], true
	}
	if over := len(t.data) + len(p) - t.limit; over > 0 {
		t.data, t.cut = append(t.data[:0], t.data[over:]...), true
	}
	t.data = append(t.data, p...)
	return n, nil
}

// text returns whole lines of printable text, without the secrets.
func (t *tail) text(secrets []string) string {
	data := t.data
	if t.cut {
		// Half a line may hold half a secret.
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return strings.TrimSpace(Scrub(printable(string(data)), secrets))
}

// printable drops what could play tricks on a terminal or a page.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) && r != utf8.RuneError {
			return r
		}
		return -1
	}, escapes.ReplaceAllString(s, ""))
}

var (
	escapes  = regexp.MustCompile("\x1b\\[[0-9;?]*[ -/]*[@-~]")
	userinfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/@:]*:[^\s/@]*@`)
)

// minSecret is how long a text must be to be taken for a secret: "true" or "443" is
// in every message.
const minSecret = 6

// Scrub replaces secrets in a text by ***, and passwords in URLs.
func Scrub(text string, secrets []string) string {
	secrets = slices.Clone(secrets)
	// The longest first: one may be a part of another.
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, s := range secrets {
		if len(s) >= minSecret {
			text = strings.ReplaceAll(text, s, "***")
		}
		// A secret of many lines may show one of them.
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); len(line) >= 2*minSecret && line != s {
				text = strings.ReplaceAll(text, line, "***")
			}
		}
	}
	return userinfo.ReplaceAllString(text, "${1}***@")
}
