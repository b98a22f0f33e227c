package forge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/rutterhq/rutter"
)

// promise is what an API says that an element has. lacks names the first field
// that is not there; "" means that all are.
type promise interface{ lacks() string }

// unless is for lacks.
func unless(there bool, field string) string {
	if there {
		return ""
	}
	return field
}

// isJSON refuses what cannot be an API's answer: pages for people, and what is cut off.
func isJSON(h http.Header, body []byte) error {
	if text := h.Get("Content-Type"); text != "" {
		kind, _, err := mime.ParseMediaType(text)
		if err == nil && !strings.Contains(kind, "json") {
			return rutter.Errorf(rutter.CodeUnavailable, "the answer is of the kind %s and no JSON: check api, and what stands in front of the service", quote(kind))
		}
	}
	switch trimmed := bytes.TrimLeft(body, " \t\r\n"); {
	case len(trimmed) == 0:
		return rutter.Errorf(rutter.CodeUnavailable, "the answer is empty")
	case trimmed[0] == '<':
		return rutter.Errorf(rutter.CodeUnavailable, "the answer is a page and no JSON: check api, and what stands in front of the service")
	case !json.Valid(body):
		return rutter.Errorf(rutter.CodeUnavailable, "the answer is no whole JSON: it is cut off, or not the API's")
	case trimmed[0] != '{' && trimmed[0] != '[':
		return rutter.Errorf(rutter.CodeUnavailable, "the answer is JSON, but neither an object nor a list: check api")
	}
	return nil
}

// one reads an object.
func one[T promise](r *reply) (T, error) {
	var value *T
	if err := json.Unmarshal(r.body, &value); err != nil || value == nil {
		var none T
		return none, rutter.Errorf(rutter.CodeUnavailable, "the answer is not what the API promises%s", where(err))
	}
	if field := (*value).lacks(); field != "" {
		return *value, rutter.Errorf(rutter.CodeUnavailable, "the answer is not what the API promises: it has no %s", field)
	}
	return *value, nil
}

// array reads an answer that is an array.
func array[T promise](r *reply) ([]T, error) {
	var raw json.RawMessage = r.body
	return elements[T](raw)
}

// elements reads the array within an answer: one that is not there at all is
// not an empty one.
func elements[T promise](raw json.RawMessage) ([]T, error) {
	var values []*T
	if len(raw) == 0 {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the answer is not what the API promises: it has no list in it")
	}
	if err := json.Unmarshal(raw, &values); err != nil || values == nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the answer is not what the API promises: no list%s", where(err))
	}
	out := make([]T, len(values))
	for i, v := range values {
		field := "content"
		if v != nil {
			out[i] = *v
			field = (*v).lacks()
		}
		if field != "" {
			return nil, rutter.Errorf(rutter.CodeUnavailable, "the answer is not what the API promises: element %d has no %s", i+1, field)
		}
	}
	return out, nil
}

func where(err error) string {
	if wrong, ok := err.(*json.UnmarshalTypeError); ok { //nolint:errorlint // Unmarshal wraps nothing
		return fmt.Sprintf(": field %s is a %s", quote(wrong.Field), printable(wrong.Value))
	}
	return ""
}

// said is the message in a refusal, without the login and for one line.
func (s *session) said(body []byte) string {
	var refusal struct {
		Message json.RawMessage `json:"message"`
		Type    string          `json:"__type"`
		Error   json.RawMessage `json:"error"`
		Errors  json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(body, &refusal) != nil {
		return ""
	}
	var parts []string
	if refusal.Type != "" {
		parts = append(parts, refusal.Type[strings.LastIndexByte(refusal.Type, '#')+1:])
	}
	for _, raw := range []json.RawMessage{refusal.Message, refusal.Error, refusal.Errors} {
		if text := message(raw); text != "" {
			parts = append(parts, text)
			break
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + cut(printable(s.login.scrub(strings.Join(parts, ": ")))) + ")"
}

// message finds the text in the forms that the providers have for it.
func message(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	type named struct {
		Message string `json:"message"`
	}
	var single named
	if json.Unmarshal(raw, &single) == nil {
		return single.Message
	}
	var several []named
	if json.Unmarshal(raw, &several) == nil && len(several) > 0 {
		return several[0].Message
	}
	return ""
}

func quote(s string) string { return fmt.Sprintf("%q", cut(printable(s))) }

// printable drops control characters, which a hostile server may send.
func printable(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r <= 0x9f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " ")))
}
