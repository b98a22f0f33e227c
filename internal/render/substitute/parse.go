package substitute

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rutterhq/rutter"
)

// node is a piece of text, or an expression.
type node struct {
	text string
	expr *expression
}

// expression is ${name}, ${#name} or ${name op arguments}.
type expression struct {
	name, op string
	// args are the arguments. Those of a default are the pieces of one.
	args []node
}

// The parser's errors have the words that Flux uses, which people search for.
const (
	badSubstitution = "bad substitution"
	missingBrace    = "missing closing brace"
	noName          = "unable to parse variable name"
	noArgument      = "unable to parse substitution within function"
)

// maxDepth bounds expressions in the defaults of expressions.
const maxDepth = 64

type parser struct {
	text  string
	pos   int
	depth int
}

// parse reads a whole text.
func parse(text string) ([]node, error) {
	p := &parser{text: text}
	var out []node
	for p.pos < len(p.text) {
		if p.at("${") {
			start := p.pos
			e, err := p.expression()
			if err != nil {
				return nil, p.failed(start, err)
			}
			out = append(out, node{expr: e})
			continue
		}
		out = append(out, node{text: p.until("", escapeDollar)})
	}
	return out, nil
}

// failed shows the beginning of the expression in question: the text before
// evaluation holds no values.
func (p *parser) failed(start int, err error) error {
	shown, _, _ := strings.Cut(p.text[start:], "\n")
	if len(shown) > 60 {
		shown = shown[:60] + "..."
	}
	return rutter.Errorf(rutter.CodeInvalid, "%w in %q: write $${ for a literal ${", err, strings.ToValidUTF8(shown, "?"))
}

func syntax(what string) error { return rutter.Errorf(rutter.CodeInvalid, "%s", what) }

func (p *parser) at(s string) bool { return strings.HasPrefix(p.text[p.pos:], s) }

// next is the next byte, 0 at the end.
func (p *parser) next() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

// accept passes over s when it comes next.
func (p *parser) accept(s string) bool {
	if !p.at(s) {
		return false
	}
	p.pos += len(s)
	return true
}

// What is an escape depends on where: in text two dollars are one, in the
// arguments of a replacement a backslash also takes a slash or itself.
type escapes int

const (
	escapeNone escapes = iota
	escapeDollar
	escapeAll
)

// until returns the text up to an expression, or to one of the stops, which
// are bytes. An escaped character is never a stop nor the beginning of an expression.
func (p *parser) until(stops string, esc escapes) string {
	var b strings.Builder
	for p.pos < len(p.text) && !p.at("${") {
		switch {
		case esc != escapeNone && p.at("$$"),
			esc == escapeAll && (p.at(`\/`) || p.at(`\\`)):
			b.WriteByte(p.text[p.pos+1])
			p.pos += 2
			continue
		case strings.IndexByte(stops, p.text[p.pos]) >= 0:
			return b.String()
		}
		b.WriteByte(p.text[p.pos])
		p.pos++
	}
	return b.String()
}

// name returns letters, digits and underscores.
func (p *parser) name() string {
	start := p.pos
	for p.pos < len(p.text) {
		r, n := utf8.DecodeRuneInString(p.text[p.pos:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' {
			break
		}
		p.pos += n
	}
	return p.text[start:p.pos]
}

// expression reads from ${ to the brace that closes it.
func (p *parser) expression() (*expression, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, syntax("expressions are nested too deeply")
	}
	p.pos += len("${")
	if p.accept("#") {
		e := &expression{op: opLength, name: p.name()}
		if e.name == "" || !p.accept("}") {
			return nil, syntax(badSubstitution)
		}
		return e, nil
	}
	e := &expression{name: p.name()}
	if e.name == "" {
		return nil, syntax(noName)
	}
	return e, p.operation(e)
}

// operation reads what stands behind the name.
func (p *parser) operation(e *expression) error {
	switch c := p.next(); c {
	case ':':
		for _, op := range []string{":=", ":-", ":?", ":+"} {
			if p.accept(op) {
				e.op = op
				return p.pieces(e)
			}
		}
		return p.substring(e)
	case '=':
		p.pos++
		e.op = "="
		return p.pieces(e)
	case ',', '^':
		for len(e.op) < 2 && (p.next() == ',' || p.next() == '^') {
			e.op += string(p.next())
			p.pos++
		}
		return p.end()
	case '/':
		return p.replacement(e)
	case '#', '%':
		for len(e.op) < 2 && p.next() == c {
			e.op += string(c)
			p.pos++
		}
		if err := p.argument(e, "}", escapeNone); err != nil {
			return err
		}
		return p.end()
	}
	if !p.accept("}") {
		return syntax(missingBrace)
	}
	return nil
}

func (p *parser) end() error {
	if !p.accept("}") {
		return syntax(badSubstitution)
	}
	return nil
}

// argument reads one argument, which is an expression or a text that is not empty.
func (p *parser) argument(e *expression, stops string, esc escapes) error {
	if p.at("${") {
		inner, err := p.expression()
		e.args = append(e.args, node{expr: inner})
		return err
	}
	before := p.pos
	text := p.until(stops, esc)
	if p.pos == before {
		return syntax(noArgument)
	}
	e.args = append(e.args, node{text: text})
	return nil
}

// pieces reads a default, in which texts and expressions alternate.
func (p *parser) pieces(e *expression) error {
	for p.next() != '}' {
		if err := p.argument(e, "}", escapeNone); err != nil {
			return err
		}
	}
	return p.end()
}

// substring reads :offset or :offset:length.
func (p *parser) substring(e *expression) error {
	e.op = opSubstring
	p.pos++
	if err := p.argument(e, ":}", escapeNone); err != nil {
		return err
	}
	if p.accept("}") {
		return nil
	}
	if p.next() != ':' {
		return syntax(badSubstitution)
	}
	for p.accept(":") {
	}
	if err := p.argument(e, "}", escapeNone); err != nil {
		return err
	}
	return p.end()
}

// replacement reads /pattern/text, with an operator behind the first slash. What
// comes up to the second one is the pattern, whatever it is.
func (p *parser) replacement(e *expression) error {
	p.pos++
	e.op = "/"
	if c := p.next(); c == '/' || c == '#' || c == '%' {
		e.op += string(c)
		p.pos++
	}
	if p.next() == '/' {
		e.args = append(e.args, node{})
	} else if err := p.argument(e, "/", escapeAll); err != nil {
		return err
	}
	if p.next() != '/' {
		return syntax(badSubstitution)
	}
	for p.accept("/") {
	}
	if p.next() != '}' {
		if err := p.argument(e, "}", escapeAll); err != nil {
			return err
		}
	}
	return p.end()
}
