package paramservice

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

const token = "s3cr3t-t0ken"

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// TestAsk is what goes over the wire and what comes back.
func TestAsk(t *testing.T) {
	var got *http.Request
	var body string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got, body = r, string(raw)
		_, _ = io.WriteString(w, `{"output":{"parameters":[{"name":"a","replicas":12345678901234567890,"nested":{"x":[1]}},{}]}}`)
	})
	items, err := New(Options{}).Ask(t.Context(), rutter.ParameterService{BaseURL: s.URL + "/base/", Token: token}, "fleet", map[string]any{"tier": "gold", "n": 3})
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{{"name": "a", "replicas": json.Number("12345678901234567890"), "nested": map[string]any{"x": []any{json.Number("1")}}}, {}}
	if d := cmp.Diff(want, items); d != "" {
		t.Error(d)
	}
	if got.Method != http.MethodPost || got.URL.Path != "/base/api/v1/getparams.execute" || got.Header.Get("Authorization") != "Bearer "+token || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s %v", got.Method, got.URL, got.Header)
	}
	if want := `{"applicationSetName":"fleet","input":{"parameters":{"n":3,"tier":"gold"}}}`; body != want {
		t.Errorf("body %s, want %s", body, want)
	}
}

func TestNoInputIsAnEmptyObject(t *testing.T) {
	var body string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		body = string(raw)
		_, _ = io.WriteString(w, `{"output":{"parameters":[]}}`)
	})
	items, err := New(Options{}).Ask(t.Context(), rutter.ParameterService{BaseURL: s.URL, Token: token}, "fleet", nil)
	if err != nil || len(items) != 0 || body != `{"applicationSetName":"fleet","input":{"parameters":{}}}` {
		t.Errorf("%v, %v, %s", items, err, body)
	}
}

// TestNoAnswer is everything that must not be read as an empty list.
func TestNoAnswer(t *testing.T) {
	text := func(code int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"output":{"parameters":[{"name":"a"}`)
	}
	const good = `{"output":{"parameters":[]}}`
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		code   rutter.Code
		says   string
	}{
		"HTML with 200":         {text(200, "text/html", "<!doctype html><title>Log in</title>"), rutter.CodeUnavailable, "HTML"},
		"cut off":               {cut, rutter.CodeUnavailable, "cut off"},
		"cut off, whole length": {text(200, "application/json", `{"output":{"parameters":[{"name":"a"}`), rutter.CodeUnavailable, "cannot be read"},
		"empty body":            {text(200, "application/json", ""), rutter.CodeUnavailable, "cannot be read"},
		"something behind it":   {text(200, "application/json", good+good), rutter.CodeUnavailable, "cannot be read"},
		"no output":             {text(200, "application/json", `{}`), rutter.CodeUnavailable, "output.parameters"},
		"no parameters":         {text(200, "application/json", `{"output":{}}`), rutter.CodeUnavailable, "output.parameters"},
		"null":                  {text(200, "application/json", `{"output":{"parameters":null}}`), rutter.CodeUnavailable, "output.parameters"},
		"an object":             {text(200, "application/json", `{"output":{"parameters":{"name":"a"}}}`), rutter.CodeUnavailable, "cannot be read"},
		"a text among them":     {text(200, "application/json", `{"output":{"parameters":[{},"a"]}}`), rutter.CodeUnavailable, "parameters[1]"},
		"null among them":       {text(200, "application/json", `{"output":{"parameters":[null]}}`), rutter.CodeUnavailable, "parameters[0]"},
		"too large":             {text(200, "application/json", good+strings.Repeat(" ", 2000)), rutter.CodeUnavailable, "larger than 1024"},
		"no content":            {text(204, "application/json", ""), rutter.CodeUnavailable, "204"},
		"unauthorized":          {text(401, "text/plain", "who is "+token+"?"), rutter.CodeForbidden, "who is ***?"},
		"forbidden":             {text(403, "application/json", `{"error":"no"}`), rutter.CodeForbidden, `{"error":"no"}`},
		"bad request":           {text(400, "text/plain", "no such tier\nat all"), rutter.CodeInvalid, "no such tier at all"},
		"not there":             {text(404, "text/html", "<html>"), rutter.CodeUnavailable, "check baseUrl"},
		"asked too often":       {text(429, "text/plain", ""), rutter.CodeUnavailable, "429"},
		"broken":                {text(500, "text/plain", strings.Repeat("x", 10000)), rutter.CodeUnavailable, "…"},
		"panics":                {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, rutter.CodeUnavailable, "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tc.answer)
			items, err := New(Options{MaxBody: 1024}).Ask(t.Context(), rutter.ParameterService{BaseURL: s.URL, Token: token}, "fleet", nil)
			if items != nil || rutter.CodeOf(err) != tc.code || !strings.Contains(fmt.Sprint(err), tc.says) {
				t.Errorf("%v, %s: %v; want %s with %q", items, rutter.CodeOf(err), err, tc.code, tc.says)
			}
			if strings.Contains(fmt.Sprint(err), token) || len(fmt.Sprint(err)) > 500 {
				t.Errorf("the error says too much: %v", err)
			}
		})
	}
}

// TestRedirect proves that the token stays where it belongs, even on one host.
func TestRedirect(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		asked := false
		thief := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			asked = true
			_, _ = io.WriteString(w, `{"output":{"parameters":[]}}`)
		})
		s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL+"/here", code) })
		_, err := New(Options{}).Ask(t.Context(), rutter.ParameterService{BaseURL: s.URL, Token: token}, "fleet", nil)
		if asked || rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), thief.URL) {
			t.Errorf("%d: asked %v, %v", code, asked, err)
		}
	}
}

func TestTime(t *testing.T) {
	end := make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-end:
		}
	})
	t.Cleanup(func() { close(end) })
	began := time.Now()
	_, err := New(Options{}).Ask(t.Context(), rutter.ParameterService{BaseURL: s.URL, Token: token, TimeoutSeconds: 1}, "fleet", nil)
	if rutter.CodeOf(err) != rutter.CodeUnavailable || time.Since(began) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := New(Options{}).Ask(ctx, rutter.ParameterService{BaseURL: s.URL, Token: token}, "fleet", nil); rutter.CodeOf(err) != rutter.CodeUnavailable {
		t.Errorf("cancelled: %v", err)
	}
}

func TestAddress(t *testing.T) {
	for base, ok := range map[string]bool{
		"http://plugin.argocd.svc:8080": true, "https://plugin/": true, "http://[::1]:80/x": true,
		"": false, "plugin:8080": false, "ftp://plugin": false, "http://me:hunter2@plugin": false, "http://plugin?x=hunter2": false, "http://plugin#hunter2": false, "http://%zzhunter2": false,
	} {
		_, err := address(base)
		if (err == nil) != ok || err != nil && (rutter.CodeOf(err) != rutter.CodeInvalid || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v", base, err)
		}
	}
	_, err := New(Options{}).Ask(t.Context(), rutter.ParameterService{BaseURL: "http://127.0.0.1:1", Token: "a\nb"}, "fleet", nil)
	if rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Errorf("a token of two lines: %v", err)
	}
}
