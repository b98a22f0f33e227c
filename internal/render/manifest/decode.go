package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/rutterhq/rutter"
)

// Decode reads one document as kubectl would (YAML 1.1, and JSON), with whole
// numbers as int64. A key that appears twice is an error. Errors name the file,
// the document and the line in the file.
func Decode(doc Document, file string) (any, error) {
	if line := invalidLine(doc.Data); line > 0 {
		return nil, doc.numbered(notUTF8(file, doc.First+line-1))
	}
	if isJSON(doc.Data) {
		return decodeJSON(doc, file)
	}
	v, err := decodeYAML(doc.Data, true)
	if err != nil {
		return nil, syntaxError(err, doc, file)
	}
	return v, nil
}

// DecodeLenient is Decode for the output of a template: of a key that appears
// twice the last one counts, as it does for Helm, and a warning says so.
func DecodeLenient(doc Document, file string) (v any, warning string, err error) {
	v, strict := decodeYAML(doc.Data, true)
	if strict == nil {
		return v, "", nil
	}
	if v, err = decodeYAML(doc.Data, false); err != nil {
		return nil, "", &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "the rendered text is not valid YAML: " + plain(err)}
	}
	return v, fmt.Sprintf("%s: the rendered object repeats a key, the last one is used: %s", file, plain(strict)), nil
}

// DecodeJSON reads a file that holds exactly one JSON value.
func DecodeJSON(data []byte, file string) (any, error) {
	text, err := toUTF8(data, file)
	if err != nil {
		return nil, err
	}
	return decodeJSON(Document{Line: 1, First: 1, Data: text}, file)
}

// isJSON tells whether a document is a JSON object. JSON is YAML but for a few
// things, such as tabs before a key, so it is read as what it is.
func isJSON(data []byte) bool {
	body := bytes.TrimLeft(data, " \t\r\n")
	return len(body) > 0 && body[0] == '{' && json.Valid(data)
}

func decodeJSON(doc Document, file string) (any, error) {
	if err := checkText(doc.Data); err != nil {
		return nil, syntaxError(err, doc, file)
	}
	var v any
	repeated, err := kjson.UnmarshalStrict(doc.Data, &v)
	if err != nil {
		line := doc.First
		if ok, at := kjson.SyntaxErrorOffset(err); ok {
			line += bytes.Count(doc.Data[:min(int(at), len(doc.Data))], []byte("\n"))
		}
		return nil, doc.numbered(invalidAt(file, line, "is not one valid JSON value: %s", plain(err)))
	}
	if len(repeated) > 0 {
		// YAML's reader knows the line.
		_, err := parse(doc.Data, true)
		if e, ok := errors.AsType[*rutter.Error](syntaxError(err, doc, file)); ok && strings.Contains(e.Message, twice) {
			return nil, e
		}
		return nil, doc.numbered(invalidAt(file, doc.Line, "a key %s: %s: remove one of them", twice, plain(repeated[0])))
	}
	var m measure
	if err := m.value(v, 0); err != nil {
		return nil, syntaxError(err, doc, file)
	}
	return v, nil
}

const twice = "appears twice in one mapping"

var (
	atLine = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\s+)?line (\d+): `)
	dupKey = regexp.MustCompile(`key "?(.+?)"? already set in map`)
	// oneShort are the errors whose line the parser counts from zero.
	oneShort = regexp.MustCompile(`^did not find expected (?:key|'-'|',' or|node content|<)`)
	noJSON   = regexp.MustCompile(`(?i)(?:^|[\s:,\[{-])[-+]?\.(?:inf|nan)\b`)
)

// syntaxError moves a parser's line number to the file's.
func syntaxError(err error, doc Document, file string) error {
	if err == nil {
		return nil
	}
	e := &rutter.Error{Code: rutter.CodeInvalid, File: file, Line: doc.Line}
	text := plain(err)
	if m := atLine.FindStringSubmatch(text); m != nil {
		if n, convErr := strconv.Atoi(m[1]); convErr == nil {
			e.Line = doc.First + n - 1
		}
		text = text[len(m[0]):]
		if oneShort.MatchString(text) {
			e.Line++
		}
		e.Line = max(doc.First, min(e.Line, doc.lastLine()))
	}
	switch m := dupKey.FindStringSubmatch(text); {
	case m != nil:
		e.Message = fmt.Sprintf("the key %q %s: remove one of them", m[1], twice)
	case strings.Contains(text, "control characters"):
		line, char := controlLine(doc.Data)
		e.Line = doc.First + max(line, 1) - 1
		e.Message = fmt.Sprintf("is not valid YAML: the character %U is not allowed: remove it, or save the file as UTF-8", char)
	case errors.Is(err, errNoJSON):
		e.Line = doc.First + lineOf(doc.Data, noJSON)
		e.Message = text
	case isLimit(err):
		e.Message = text
	default:
		e.Message = "is not valid YAML: " + text
	}
	return doc.numbered(e)
}

// lastLine is that of the last line which is not blank: a parser that looks for
// an end is past it when it complains.
func (d Document) lastLine() int {
	return d.First + bytes.Count(bytes.TrimRight(d.Data, " \t\r\n"), []byte("\n"))
}

// lineOf returns how many lines precede the first match; zero without one.
func lineOf(data []byte, what *regexp.Regexp) int {
	at := what.FindIndex(data)
	if at == nil {
		return 0
	}
	return bytes.Count(data[:at[1]], []byte("\n"))
}

// numbered says in an error which document of the file it is about.
func (d Document) numbered(err error) error {
	if e, ok := errors.AsType[*rutter.Error](err); ok && d.Number > 0 {
		e.Message += fmt.Sprintf(" (document %d)", d.Number)
	}
	return err
}

// plain is the error's text on one line, without the names of the parser's layers.
func plain(err error) string {
	s := err.Error()
	for _, layer := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:"} {
		s = strings.TrimPrefix(s, layer)
	}
	return strings.Join(strings.Fields(s), " ")
}
