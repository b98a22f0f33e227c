package substitute

import (
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rutterhq/rutter"
)

// The operators that are not written as they are named here.
const (
	opLength    = "length"
	opSubstring = ":"
)

// maxOutput bounds what the values make of one text.
const maxOutput = 16 << 20

type evaluation struct {
	lookup func(name string) (value string, set bool)
	size   int
}

func (e *evaluation) all(nodes []node) (string, error) {
	var b strings.Builder
	for _, n := range nodes {
		s, err := e.one(n)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func (e *evaluation) one(n node) (string, error) {
	out := n.text
	if n.expr != nil {
		var err error
		if out, err = e.expression(n.expr); err != nil {
			return "", err
		}
	}
	if e.size += len(out); e.size > maxOutput {
		return "", rutter.Errorf(rutter.CodeInvalid, "with its variables filled in it is larger than %d MiB", maxOutput>>20)
	}
	return out, nil
}

// hasDefault reports whether an operator says itself what an unset variable is.
// The four with a colon and = all do the same, as they do in Flux.
func hasDefault(op string) bool {
	switch op {
	case "=", ":=", ":-", ":?", ":+":
		return true
	}
	return false
}

func (e *evaluation) expression(x *expression) (string, error) {
	// Arguments come first, so an unset variable in a default is an error even
	// where the default is not used.
	args := make([]string, len(x.args))
	for i, a := range x.args {
		var err error
		if args[i], err = e.one(a); err != nil {
			return "", err
		}
	}
	value, set := e.lookup(x.name)
	if !set && !hasDefault(x.op) {
		return "", rutter.Errorf(rutter.CodeInvalid, "variable not set (strict mode): %q: set it in postBuild, or give it a default as in ${%s:=value}", x.name, x.name)
	}
	return apply(x, value, args)
}

func apply(x *expression, value string, args []string) (string, error) {
	switch x.op {
	case opLength:
		return strconv.Itoa(len(value)), nil
	case "^":
		return mapFirst(value, unicode.ToUpper), nil
	case "^^":
		return strings.ToUpper(value), nil
	case ",":
		return mapFirst(value, unicode.ToLower), nil
	case ",,":
		return strings.ToLower(value), nil
	case opSubstring:
		return substring(x.name, value, args)
	case "#":
		return trimPrefix(value, args[0], false)
	case "##":
		return trimPrefix(value, args[0], true)
	case "%":
		return trimSuffix(value, args[0], false)
	case "%%":
		return trimSuffix(value, args[0], true)
	case "/", "//", "/#", "/%":
		return replace(x.op, value, args), nil
	}
	if value == "" {
		return strings.Join(args, ""), nil
	}
	return value, nil
}

func mapFirst(s string, change func(rune) rune) string {
	if s == "" {
		return s
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(change(r)) + s[n:]
}

// substring counts in bytes; what is no number leaves the value whole.
func substring(name, value string, args []string) (string, error) {
	from, err := strconv.Atoi(args[0])
	if err != nil {
		return value, nil //nolint:nilerr // as in bash
	}
	if from < 0 {
		from = max(len(value)+from, 0)
	}
	from = min(from, len(value))
	if len(args) == 1 {
		return value[from:], nil
	}
	length, err := strconv.Atoi(args[1])
	if err != nil {
		return value, nil //nolint:nilerr // as in bash
	}
	if length < 0 {
		return "", rutter.Errorf(rutter.CodeInvalid, "%s: a length of %d is negative: give the number of bytes to keep", name, length)
	}
	return value[from : from+min(length, len(value)-from)], nil
}

// maxGlobbed bounds the values that a pattern is tried on: each prefix is tried,
// so the work grows with the square.
const maxGlobbed = 8192

// trimPrefix takes the shortest or the longest prefix off that a pattern
// matches, of at least one byte. A pattern that is none matches nothing.
func trimPrefix(s, pattern string, longest bool) (string, error) {
	if !strings.ContainsAny(pattern, `*?[\`) {
		return strings.TrimPrefix(s, pattern), nil
	}
	if len(s) > maxGlobbed {
		return "", rutter.Errorf(rutter.CodeInvalid, "a value of more than %d bytes is too long for a pattern with * ? or [", maxGlobbed)
	}
	// A star goes across slashes, so a byte that is in no YAML stands for them.
	const stand = "\x00"
	pattern, plain := strings.ReplaceAll(pattern, "/", stand), strings.ReplaceAll(s, "/", stand)
	found := 0
	for n := 1; n <= len(s); n++ {
		ok, err := path.Match(pattern, plain[:n])
		if err != nil {
			return s, nil //nolint:nilerr // as in Flux
		}
		if ok {
			found = n
			if !longest {
				break
			}
		}
	}
	return s[found:], nil
}

// trimSuffix is trimPrefix from the other end.
func trimSuffix(s, pattern string, longest bool) (string, error) {
	out, err := trimPrefix(reverse(s), reverse(pattern), longest)
	return reverse(out), err
}

func reverse(s string) string {
	r := []rune(s)
	for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
		r[i], r[j] = r[j], r[i]
	}
	return string(r)
}

// replace takes the pattern literally. Without a replacement, one at an end is left alone.
func replace(op, value string, args []string) string {
	with := ""
	if len(args) > 1 {
		with = args[1]
	}
	switch old := args[0]; {
	case op == "/":
		return strings.Replace(value, old, with, 1)
	case op == "//":
		return strings.ReplaceAll(value, old, with)
	case len(args) < 2:
		return value
	case op == "/#" && strings.HasPrefix(value, old):
		return with + value[len(old):]
	case op == "/%" && strings.HasSuffix(value, old):
		return strings.TrimSuffix(value, old) + with
	}
	return value
}
