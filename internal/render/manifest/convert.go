package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v2"
	node "go.yaml.in/yaml/v3"
)

var (
	// errNoJSON marks a value that YAML has and JSON has not.
	errNoJSON = errors.New("is no value that Kubernetes knows")
	errKey    = errors.New("cannot be a key")
	// errTrailing is for what follows a document without a marker.
	errTrailing = errors.New("a second value follows without a line --- between them")
)

// decodeYAML reads a document with YAML's parser and turns the result into what
// Kubernetes makes of it by way of JSON, without writing and reading that
// JSON: the detour costs more than the parsing. That both agree is fuzzed.
func decodeYAML(data []byte, strict bool) (any, error) {
	if err := checkText(data); err != nil {
		return nil, err
	}
	v, err := parse(data, strict)
	if err != nil && strict && dupKey.MatchString(err.Error()) && bytes.Contains(data, []byte("<<")) {
		// The parser takes a key that overrides a merged one for a repeated key.
		if own := repeatedKey(data); own != nil {
			return nil, own
		}
		v, err = parse(data, false)
	}
	if err != nil {
		return nil, err
	}
	m := measure{max: int64(len(data))}
	return m.convert(v, 0)
}

// parse reads the one document of a text. The parser stops where a document
// ends; what follows would be lost in silence.
func parse(data []byte, strict bool) (v any, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.SetStrict(strict)
	if err := dec.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err //nolint:wrapcheck // syntaxError makes a sentence of it
	}
	var rest any
	if err := dec.Decode(&rest); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errTrailing
		}
		return nil, err
	}
	return v, nil
}

// repeatedKey finds a key that one mapping itself has twice, merged keys aside.
func repeatedKey(data []byte) error {
	var n node.Node
	if err := node.Unmarshal(data, &n); err != nil {
		return err //nolint:wrapcheck // syntaxError makes a sentence of it
	}
	return repeatedIn(&n)
}

func repeatedIn(n *node.Node) error {
	seen := map[string]bool{}
	for i, c := range n.Content {
		if n.Kind == node.MappingNode && i%2 == 0 && c.Kind == node.ScalarNode {
			if seen[c.Value] && c.Tag != "!!merge" {
				return fmt.Errorf("line %d: key %q already set in map", c.Line, c.Value)
			}
			seen[c.Value] = true
		}
		if err := repeatedIn(c); err != nil {
			return err
		}
	}
	return nil
}

// convert turns a value of the parser into a value of an unstructured object.
func (m *measure) convert(v any, depth int) (any, error) {
	if err := m.node(depth); err != nil {
		return nil, err
	}
	switch x := v.(type) {
	case map[any]any:
		return m.mapping(x, depth)
	case []any:
		out := make([]any, len(x))
		for i, item := range x {
			var err error
			if out[i], err = m.convert(item, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case string:
		return m.text(x)
	case int:
		return int64(x), nil
	case uint64:
		return number(strconv.FormatUint(x, 10))
	case float64:
		return fraction(x)
	case time.Time:
		text, err := x.MarshalText()
		if err != nil {
			return nil, fmt.Errorf("the time %q %w", x.String(), errNoJSON)
		}
		return string(text), nil
	case nil, bool, int64:
		return x, nil
	}
	return nil, fmt.Errorf("a value of type %T %w", v, errNoJSON)
}

func (m *measure) mapping(in map[any]any, depth int) (any, error) {
	out := make(map[string]any, len(in))
	for k, v := range in {
		name, err := keyText(k)
		if err != nil {
			return nil, err
		}
		if name, err = m.text(name); err != nil {
			return nil, err
		}
		if _, twice := out[name]; twice {
			// 1 and "1", or yes and "true", are two keys of YAML and one of JSON.
			return nil, fmt.Errorf("key %q already set in map", name)
		}
		if out[name], err = m.convert(v, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keyText is the text that a key has in JSON.
func keyText(k any) (string, error) {
	switch x := k.(type) {
	case string:
		return x, nil
	case int:
		return strconv.Itoa(x), nil
	case int64:
		return strconv.FormatInt(x, 10), nil
	case bool:
		return strconv.FormatBool(x), nil
	case float64:
		return floatKey(x), nil
	case nil:
		return "", fmt.Errorf("null %w: put it in quotes", errKey)
	}
	return "", fmt.Errorf("the value %v %w: put it in quotes", k, errKey)
}

// text counts a string and makes it valid: a !!binary value may hold any bytes.
func (m *measure) text(s string) (string, error) {
	if m.bytes += int64(len(s)); m.bytes > m.maxBytes() {
		return "", m.tooLarge()
	}
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	return s, nil
}

// fraction is an integer where JSON's text of it would be one.
func fraction(f float64) (any, error) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, fmt.Errorf("%v %w: JSON has no such number", f, errNoJSON)
	case f != math.Trunc(f) || math.Abs(f) >= 1e21:
		return f, nil
	case math.Abs(f) <= 1<<53:
		return int64(f), nil
	}
	return number(strconv.FormatFloat(f, 'f', -1, 64))
}

// number is an int64 where the digits fit, else the nearest float64.
func number(digits string) (any, error) {
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s %w", digits, errNoJSON)
	}
	return f, nil
}

// floatKey is a number as Kubernetes writes it where it is a key: with the
// precision of 32 bits, and what does not fit into them as YAML names it.
func floatKey(x float64) string {
	switch s := strconv.FormatFloat(x, 'g', -1, 32); s {
	case "+Inf":
		return ".inf"
	case "-Inf":
		return "-.inf"
	case "NaN":
		return ".nan"
	default:
		return s
	}
}
