package paramservice

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

// TestAsk: what a service answers is complete or an error, and no error shows
// the token.
func TestAsk(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the token went to another host: %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	answer := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const jsonType = "application/json"
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		timeout time.Duration
		want    []map[string]any
		code    rutter.Code
	}{
		"parameters":      {handler: answer(200, jsonType, `{"output":{"parameters":[{"a":1,"b":{"c":[true]}},{}]}}`), want: []map[string]any{{"a": json.Number("1"), "b": map[string]any{"c": []any{true}}}, {}}},
		"none":            {handler: answer(200, jsonType, `{"output":{"parameters":[]}}`), want: []map[string]any{}},
		"no list":         {handler: answer(200, jsonType, `{"output":{}}`), code: rutter.CodeInvalid},
		"a null list":     {handler: answer(200, jsonType, `{"output":{"parameters":null}}`), code: rutter.CodeInvalid},
		"a null item":     {handler: answer(200, jsonType, `{"output":{"parameters":[null]}}`), code: rutter.CodeInvalid},
		"other JSON":      {handler: answer(200, jsonType, `[]`), code: rutter.CodeUnavailable},
		"a page":          {handler: answer(200, "text/html; charset=utf-8", `<html>log in</html>`), code: rutter.CodeUnavailable},
		"a page as JSON":  {handler: answer(200, jsonType, `<html>log in</html>`), code: rutter.CodeUnavailable},
		"half an answer":  {handler: answer(200, jsonType, `{"output":{"parameters":[{"a":`), code: rutter.CodeUnavailable},
		"more than JSON":  {handler: answer(200, jsonType, `{"output":{"parameters":[]}}{}`), code: rutter.CodeUnavailable},
		"cut off":         {handler: cutOff, code: rutter.CodeUnavailable},
		"too large":       {handler: answer(200, jsonType, strings.Repeat(" ", maxAnswer+1)), code: rutter.CodeInvalid},
		"a wrong login":   {handler: answer(401, "text/plain", "bad t0ken!"), code: rutter.CodeForbidden},
		"not found":       {handler: answer(404, "text/plain", "no"), code: rutter.CodeInvalid},
		"down":            {handler: answer(503, "text/plain", "t0ken! later"), code: rutter.CodeUnavailable},
		"busy":            {handler: answer(429, "text/plain", ""), code: rutter.CodeUnavailable},
		"another address": {handler: http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect).ServeHTTP, code: rutter.CodeInvalid},
		"slow":            {handler: func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); <-r.Context().Done() }, timeout: 20 * time.Millisecond, code: rutter.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			var got struct {
				auth, path string
				body       map[string]any
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got.auth, got.path = r.Header.Get("Authorization"), r.Method+" "+r.URL.Path
				raw, _ := io.ReadAll(r.Body)
				_ = json.Unmarshal(raw, &got.body)
				tc.handler(w, r)
			}))
			defer server.Close()
			items, err := New().Ask(t.Context(), Service{BaseURL: server.URL + "/base/", Token: "t0ken!", Timeout: tc.timeout}, "fleet", map[string]any{"k": "v"})
			if code := rutter.CodeOf(err); code != tc.code {
				t.Fatalf("code %q, want %q: %v", code, tc.code, err)
			}
			if err != nil && strings.Contains(err.Error(), "t0ken!") {
				t.Errorf("the error shows the token: %v", err)
			}
			if diff := cmp.Diff(tc.want, items); diff != "" {
				t.Error(diff)
			}
			want := map[string]any{"applicationSetName": "fleet", "input": map[string]any{"parameters": map[string]any{"k": "v"}}}
			if diff := cmp.Diff(want, got.body); diff != "" || got.auth != "Bearer t0ken!" || got.path != "POST /base/api/v1/getparams.execute" {
				t.Errorf("asked %s as %q: %s", got.path, got.auth, diff)
			}
		})
	}
}

// cutOff promises more than it sends.
func cutOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, `{"output":{"parameters":[]}}`)
}

// TestAddress: what is no address of a service is refused, and nobody is asked.
func TestAddress(t *testing.T) {
	for _, base := range []string{"", "service:8080", "ftp://x", "http://", "://"} {
		if _, err := New().Ask(t.Context(), Service{BaseURL: base}, "s", nil); rutter.CodeOf(err) != rutter.CodeInvalid {
			t.Errorf("%q: %v", base, err)
		}
	}
	if _, err := New().Ask(t.Context(), Service{BaseURL: "http://u:hunter2@127.0.0.1:1"}, "s", nil); rutter.CodeOf(err) != rutter.CodeUnavailable || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}
