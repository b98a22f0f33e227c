package manifest

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

var (
	// errNoJSON marks a value that YAML has and JSON has not.
	errNoJSON = errors.New("is no value that Kubernetes knows")
	errKey    = errors.New("cannot be a key")
)

// decodeYAML reads a document with YAML's parser and turns the result into what
// Kubernetes makes of it by way of JSON, without writing and reading that
// JSON: the detour costs more than the parsing. That both agree is fuzzed.
func decodeYAML(data []byte, unmarshal func([]byte, any) error) (any, error) {
	if err := checkText(data); err != nil {
		return nil, err
	}
	var v any
	if err := unmarshal(data, &v); err != nil {
		return nil, err //nolint:wrapcheck // syntaxError makes a sentence of it
	}
	m := measure{max: int64(len(data))}
	return m.convert(v, 0)
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
		switch {
		case math.IsNaN(x):
			return ".nan", nil
		case math.IsInf(x, 1):
			return ".inf", nil
		case math.IsInf(x, -1):
			return "-.inf", nil
		}
		return strconv.FormatFloat(x, 'g', -1, 32), nil
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
