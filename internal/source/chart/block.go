package chart

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rutterhq/rutter"
)

// blockReader takes an index in YAML's block style apart by its indentation,
// and has only the few lines of each entry that matter parsed as YAML:
//
//	entries:
//	  name:            a chart, at the indentation of the first one
//	  - version: 1.0   an entry, at the indentation of the chart's first dash
//	    urls:          a field, at the indentation of the entry's first one
//	    - https://...  all that is indented deeper, or a dash beside it
//
// That is sound because what belongs to a field is indented deeper than it, be
// it text of several lines or a list. What is laid out in another way is parsed
// as a whole, up to a size, or left out.
type blockReader struct {
	in  *bufio.Reader
	out *collector

	// inside is true below "entries:".
	inside bool
	// name is the chart; its column, those of its entries' dashes and of the
	// entry's fields follow. -1 is not known yet.
	name    string
	chartAt int
	dashAt  int
	fieldAt int
	// taking is true while lines belong to a field that matters.
	taking bool
	// text are the lines that matter of the entry, or all of a chart or of
	// everything (whole) that is laid out in another way.
	text  bytes.Buffer
	whole bool
	spoil bool
}

// line is a line without its end.
type line struct {
	// at is the column of its first character, -1 for a line without any.
	at   int
	text []byte
	// long is a line of which only the beginning is here.
	long bool
}

// read takes the index apart to its end.
func (b *blockReader) read() error {
	b.chartAt, b.dashAt, b.fieldAt = -1, -1, -1
	for {
		l, err := b.next()
		if errors.Is(err, io.EOF) {
			return b.finish()
		}
		if err != nil {
			return err
		}
		if l.at < 0 || l.text[l.at] == '#' && !b.within(l) {
			continue
		}
		if err := b.line(l); err != nil {
			return err
		}
	}
}

// within tells of a line that may be a comment, and may be text, that it lies
// within something that is taken, where YAML's own parser decides.
func (b *blockReader) within(l line) bool {
	return b.whole && l.at > b.chartAt || b.taking && l.at > b.fieldAt
}

// next reads a line; of one that is longer than what an entry may be, the rest
// is passed over.
func (b *blockReader) next() (line, error) {
	var l line
	for {
		part, err := b.in.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !full && (!errors.Is(err, io.EOF) || len(part) == 0 && l.text == nil) {
			return l, err //nolint:wrapcheck // io.EOF, or the body's
		}
		switch {
		case !full && l.text == nil:
			l.text = part // good until the next call
		case len(l.text)+len(part) <= maxEntry && !l.long:
			l.text = append(bytes.Clone(l.text), part...)
		default:
			l.long = true
		}
		if !full {
			break
		}
	}
	l.text = bytes.TrimRight(l.text, " \r\n")
	l.at = len(l.text) - len(bytes.TrimLeft(l.text, " "))
	if l.at == len(l.text) {
		l.at = -1
	}
	return l, nil
}

func (b *blockReader) line(l line) error {
	if l.at == 0 {
		return b.top(l)
	}
	if !b.inside {
		return nil
	}
	if b.whole && b.chartAt < 0 { // "entries: {" goes on
		b.take(l, 0)
		return nil
	}
	if b.chartAt < 0 {
		b.chartAt = l.at
	}
	dash := l.text[l.at] == '-' && (len(l.text) == l.at+1 || l.text[l.at+1] == ' ')
	switch {
	case l.at < b.chartAt:
		return rutter.Errorf(rutter.CodeInvalid, "its index is no valid YAML: a chart is indented less than the first")
	case l.at == b.chartAt && !dash:
		return b.chart(l)
	case b.whole:
		b.take(l, 0)
		return nil
	case dash && (b.dashAt < 0 || l.at == b.dashAt):
		return b.entry(l)
	case b.dashAt < 0 || l.at <= b.dashAt:
		b.spoil = true // neither an entry nor within one
		return nil
	}
	b.field(l)
	return nil
}

// top is a line that begins in the first column: a field of the index itself.
func (b *blockReader) top(l line) error {
	if text := string(l.text); text == "---" || text == "..." || l.text[0] == '%' {
		return nil
	}
	if b.whole && b.chartAt < 0 && (l.text[0] == '}' || l.text[0] == ']') {
		b.take(l, 0)
		return nil
	}
	if err := b.endChart(); err != nil {
		return err
	}
	key, rest, ok := cutKey(l.text)
	if !ok {
		return rutter.Errorf(rutter.CodeInvalid, "its index is no valid YAML: %.60q is no field of it", l.text)
	}
	if b.inside = key == "entries"; !b.inside {
		return nil
	}
	b.out.entries = true
	b.chartAt = -1
	if rest != "" && rest != "null" && rest != "~" {
		b.whole = true
		b.text.WriteString(rest + "\n")
	}
	return nil
}

// chart is a line that names the next chart.
func (b *blockReader) chart(l line) error {
	if err := b.endChart(); err != nil {
		return err
	}
	key, rest, ok := cutKey(l.text[l.at:])
	if !ok || l.long {
		b.name = ""
		return b.out.skip()
	}
	b.name = key
	if rest != "" {
		b.whole = true
		b.take(line{text: l.text[l.at:]}, 0)
	}
	return nil
}

// entry is a line with the dash of the next entry.
func (b *blockReader) entry(l line) error {
	if err := b.endEntry(); err != nil {
		return err
	}
	b.dashAt = l.at
	after := bytes.TrimLeft(l.text[l.at+1:], " ")
	if len(after) == 0 {
		return nil
	}
	// The first field stands beside the dash.
	text := bytes.Clone(l.text)
	text[l.at] = ' '
	b.field(line{at: len(text) - len(after), text: text, long: l.long})
	return nil
}

// field is a line within an entry.
func (b *blockReader) field(l line) {
	if b.fieldAt < 0 {
		b.fieldAt = l.at
	}
	if l.at == b.fieldAt && l.text[l.at] != '-' {
		if key, _, ok := cutKey(l.text[l.at:]); l.text[l.at] == '{' {
			b.taking = true // an entry in one line
		} else if ok {
			b.taking = key == "version" || key == "urls" || key == "digest"
		}
	}
	if l.at < b.fieldAt {
		b.spoil = true
	}
	if b.taking {
		b.take(l, b.fieldAt)
	}
}

// take keeps a line, without the indentation that all have.
func (b *blockReader) take(l line, indent int) {
	if l.long || b.text.Len()+len(l.text) > maxEntry {
		b.spoil = true
		return
	}
	b.text.Write(l.text[min(indent, len(l.text)):])
	b.text.WriteByte('\n')
}

// endEntry adds the entry whose lines were taken.
func (b *blockReader) endEntry() error {
	open := b.dashAt >= 0
	text, spoilt := b.text.Bytes(), b.spoil
	b.text.Reset()
	b.taking, b.spoil, b.fieldAt = false, false, -1
	if !open && !spoilt {
		return nil
	}
	if spoilt || b.name == "" {
		return b.out.skip()
	}
	e, ok := plainEntry(text)
	if !ok {
		e = listed{}
		if yaml.Unmarshal(text, &e) != nil {
			return b.out.skip()
		}
	}
	return b.out.add(b.name, e)
}

// plainEntry reads the lines of an entry that is written as nearly all are, for
// which YAML's parser would take ten times as long; false for any other.
func plainEntry(text []byte) (e listed, ok bool) {
	inURLs := false
	for raw := range bytes.Lines(text) {
		l := strings.TrimRight(string(raw), "\n")
		if item, is := strings.CutPrefix(strings.TrimLeft(l, " "), "- "); is && inURLs {
			if !plainScalar(item) {
				return e, false
			}
			e.URLs = append(e.URLs, item)
			continue
		}
		key, value, _ := strings.Cut(l, ":")
		value = strings.TrimPrefix(value, " ")
		inURLs = key == "urls"
		switch {
		case inURLs && value == "" && e.URLs == nil:
		case key == "version" && e.Version == "" && plainScalar(value):
			e.Version = value
		case key == "digest" && e.Digest == "" && (plainScalar(value) || len(value) == 64 && parseDigest(value) != (digest{})):
			e.Digest = value
		default:
			return e, false
		}
	}
	return e, true
}

// plainScalar tells of a text that is itself in YAML: it has a dot or a slash,
// so it is no word with a meaning, and nothing that means something there. What
// looks like a number is one to YAML, too, and written as it stands.
func plainScalar(s string) bool {
	if s == "" || !strings.ContainsAny(s, "./") || !isAlphanumeric(s[0]) || s[len(s)-1] == ':' {
		return false
	}
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && !strings.ContainsRune("._+/:%=-~", rune(s[i])) {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// endChart adds what is left of the chart.
func (b *blockReader) endChart() error {
	defer func() { b.name, b.dashAt = "", -1 }()
	if !b.whole {
		return b.endEntry()
	}
	text, spoilt := bytes.Clone(b.text.Bytes()), b.spoil
	b.text.Reset()
	b.whole, b.spoil = false, false
	if spoilt {
		return b.out.skip()
	}
	return b.out.yaml(text)
}

func (b *blockReader) finish() error { return b.endChart() }

// cutKey splits "key: value"; a key may be in quotes, and a comment is no value.
func cutKey(text []byte) (key, rest string, ok bool) {
	s := string(text)
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') {
		end := strings.IndexByte(s[1:], s[0])
		if end < 0 {
			return "", "", false
		}
		key, rest = s[1:1+end], strings.TrimLeft(s[end+2:], " ")
		if !strings.HasPrefix(rest, ":") {
			return "", "", false
		}
		rest = rest[1:]
	} else {
		at := strings.Index(s+" ", ": ")
		if at < 0 {
			return "", "", false
		}
		key, rest = strings.TrimRight(s[:at], " "), s[min(at+1, len(s)):]
	}
	rest = strings.TrimSpace(rest)
	if strings.HasPrefix(rest, "#") {
		rest = ""
	}
	return key, rest, true
}
