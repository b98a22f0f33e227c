package manifest

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// Decode reads one document as kubectl would (YAML 1.1, JSON is YAML), with
// whole numbers as int64. A key that appears twice is an error. Errors name
// file and the line in it.
func Decode(doc Document, file string) (any, error) {
	js, err := yaml.YAMLToJSONStrict(doc.Data)
	if err != nil {
		return nil, syntaxError(err, doc, file)
	}
	return fromJSON(js, doc, file)
}

// DecodeLenient is Decode for the output of a template: of a key that appears
// twice the last one counts, as it does for Helm, and a warning says so.
func DecodeLenient(doc Document, file string) (v any, warning string, err error) {
	js, strict := yaml.YAMLToJSONStrict(doc.Data)
	if strict != nil {
		if js, err = yaml.YAMLToJSON(doc.Data); err != nil {
			return nil, "", &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "the rendered text is not valid YAML: " + plain(err)}
		}
		warning = fmt.Sprintf("%s: the rendered object repeats a key, the last one is used: %s", file, plain(strict))
	}
	v, err = fromJSON(js, doc, file)
	return v, warning, err
}

// DecodeJSON reads a file that holds exactly one JSON value.
func DecodeJSON(data []byte, file string) (any, error) {
	var v any
	repeated, err := kjson.UnmarshalStrict(data, &v)
	if err != nil {
		e := &rutter.Error{Code: rutter.CodeInvalid, File: file, Line: 1, Message: "is not one valid JSON value: " + plain(err)}
		if ok, at := kjson.SyntaxErrorOffset(err); ok {
			e.Line += bytes.Count(data[:min(int(at), len(data))], []byte("\n"))
		}
		return nil, e
	}
	if len(repeated) > 0 {
		return nil, &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "a key appears twice in one mapping: " + plain(repeated[0]) + ": remove one of them"}
	}
	return v, nil
}

func fromJSON(js []byte, doc Document, file string) (any, error) {
	var v any
	if err := utiljson.Unmarshal(js, &v); err != nil {
		return nil, &rutter.Error{Code: rutter.CodeInvalid, File: file, Line: doc.Line, Message: "cannot be read as JSON", Err: err}
	}
	return v, nil
}

var (
	atLine = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\s+)?line (\d+): `)
	dupKey = regexp.MustCompile(`key "?(.+?)"? already set in map`)
)

// syntaxError moves a parser's line number to the file's.
func syntaxError(err error, doc Document, file string) error {
	e := &rutter.Error{Code: rutter.CodeInvalid, File: file, Line: doc.Line}
	text := plain(err)
	if m := atLine.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		e.Line = doc.First + n - 1
		text = text[len(m[0]):]
	}
	if m := dupKey.FindStringSubmatch(text); m != nil {
		e.Message = fmt.Sprintf("the key %q appears twice in one mapping: remove one of them", m[1])
		return e
	}
	e.Message = "is not valid YAML: " + text
	return e
}

// plain is the error's text on one line, without the names of the parser's layers.
func plain(err error) string {
	s := err.Error()
	for _, layer := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:"} {
		s = strings.TrimPrefix(s, layer)
	}
	return strings.Join(strings.Fields(s), " ")
}
