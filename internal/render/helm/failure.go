package helm

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/rutterhq/rutter"
)

// parseError is a text given to tpl that is no template. The text itself may
// hold a secret and is not repeated.
type parseError struct{ err error }

// Error implements error.
func (e *parseError) Error() string { return "tpl: the text is no template: " + problem(e.err) }

// Unwrap returns the cause.
func (e *parseError) Unwrap() error { return e.err }

// place is how text/template names a position.
var place = regexp.MustCompile(`template: ([^:\s]+):(\d+)(?::\d+)?: `)

// failure translates an error of text/template: which file and line of the
// chart, and what is wrong, without the way through the includes.
func (e *engine) failure(err error) error {
	out := &rutter.Error{Code: rutter.CodeInvalid, File: e.page, Message: problem(err)}
	if m := place.FindStringSubmatch(err.Error()); m != nil {
		out.File = m[1]
		out.Line, _ = strconv.Atoi(m[2])
	}
	var said *userError
	switch {
	case e.guard.stopped != nil:
		out.Message = e.guard.stopped.Error()
	case errors.As(err, &said):
		out.Message = said.msg
	}
	if e.guard.stopped == nil && e.run.secret != nil && e.run.secret() {
		out.Message = e.withoutSecrets(out.Message)
	}
	out.Message = fmt.Sprintf("chart %s: %s", e.run.chart, oneLine(out.Message))
	return out
}

// calling is the part of a message that comes from a template's own text.
var calling = regexp.MustCompile(`^executing "[^"]*" at <[^>]*>: (?:error calling \w+)?`)

// withoutSecrets keeps of a message what stands in the chart itself: values that
// were opened by a key, or read from a cluster, may be in the rest.
func (e *engine) withoutSecrets(message string) string {
	for _, p := range e.run.pages {
		if bytes.Contains(p.text, []byte(message)) {
			return message // what it says with fail or required
		}
	}
	const withheld = "(what it says is withheld: the render has read secret values)"
	if at := calling.FindString(message); at != "" && !strings.HasPrefix(message, `executing "`+rootName+`"`) {
		return at + " " + withheld
	}
	return "the template fails " + withheld
}

// problem is the innermost message.
func problem(err error) string {
	text := err.Error()
	if all := place.FindAllStringIndex(text, -1); len(all) > 0 {
		text = text[all[len(all)-1][1]:]
	}
	return strings.TrimPrefix(text, "template: ")
}

// inChart makes the file of a template's error a path in the repository.
func (p *pass) inChart(err error, c *chart.Chart) error {
	var e *rutter.Error
	if errors.As(err, &e) && e.File != "" {
		placed := *e
		placed.File = p.where(c)(e.File)
		return &placed
	}
	return err
}

// schemaProblem lists what does not fit: the place in the values, and why.
// The values themselves are not repeated.
func schemaProblem(err error) string {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return err.Error()
	}
	p := message.NewPrinter(language.English)
	var out []string
	var walk func(*jsonschema.ValidationError)
	walk = func(v *jsonschema.ValidationError) {
		if len(v.Causes) == 0 {
			out = append(out, fmt.Sprintf("/%s: %s", strings.Join(v.InstanceLocation, "/"), withoutGot(v.ErrorKind, p)))
		}
		for _, c := range v.Causes {
			walk(c)
		}
	}
	walk(v)
	return strings.Join(out, "; ")
}

// withoutGot is the reason without the value, which some reasons quote.
func withoutGot(k jsonschema.ErrorKind, p *message.Printer) string {
	switch k := k.(type) {
	case *kind.Pattern:
		return "does not match the pattern " + k.Want
	case *kind.Format:
		return "is no valid " + k.Want
	case *kind.ContentEncoding, *kind.ContentMediaType:
		return "does not have the declared content"
	}
	return k.LocalizedString(p)
}
