package e2e

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// breaker is a reverse proxy before a server that goes on working: it counts
// what passes, and breaks the requests that a test tells it to break.
type breaker struct {
	server  *httptest.Server
	forward *httputil.ReverseProxy

	mu     sync.Mutex
	faults []*fault
	// passed has "METHOD path" of all requests.
	passed []string
	open   map[*http.Request]context.CancelFunc
}

// act is what becomes of one request; forward would answer it.
type act = func(w http.ResponseWriter, r *http.Request, forward http.Handler)

// fault is what becomes of some requests.
type fault struct {
	matches func(*http.Request) bool
	act     act
	// left is how many more requests it is for.
	left int
	// hit has a value for each request that was broken, as far as it has room.
	hit chan struct{}
}

// always is a number of requests that no test comes to.
const always = 1 << 30

// breakHTTP stands before a plain HTTP server.
func breakHTTP(t *testing.T, target string) *breaker {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	b := newBreaker(u, nil)
	b.server = httptest.NewUnstartedServer(b)
	b.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	b.server.Start()
	b.forward.ModifyResponse = func(r *http.Response) error { // a service that names its own address means this one
		if link := r.Header.Get("Link"); link != "" {
			r.Header.Set("Link", strings.ReplaceAll(link, target, b.server.URL))
		}
		return nil
	}
	t.Cleanup(b.close)
	return b
}

// breakAPI stands before an API server, and logs in there as rc does, whoever asks.
func breakAPI(t *testing.T, rc *rest.Config) *breaker {
	t.Helper()
	u, err := url.Parse(rc.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(rc)
	if err != nil {
		t.Fatal(err)
	}
	b := newBreaker(u, transport)
	b.server = httptest.NewUnstartedServer(b)
	b.server.EnableHTTP2 = true
	b.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	b.server.StartTLS()
	t.Cleanup(b.close)
	return b
}

func newBreaker(target *url.URL, transport http.RoundTripper) *breaker {
	b := &breaker{open: map[*http.Request]context.CancelFunc{}}
	b.forward = &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if transport != nil {
				r.Out.Header.Del("Authorization") // the transport has its own
			}
		},
	}
	return b
}

func (b *breaker) close() {
	b.drop(anything)
	b.server.CloseClientConnections()
	b.server.Close()
}

// rest is how to reach the API server through the breaker.
func (b *breaker) rest() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.server.Certificate().Raw})
	return &rest.Config{Host: b.server.URL, BearerToken: "of-nobody", TLSClientConfig: rest.TLSClientConfig{CAData: ca}, QPS: -1}
}

// ServeHTTP implements http.Handler.
func (b *breaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r = r.WithContext(ctx)
	b.mu.Lock()
	b.open[r] = cancel
	var broken *fault
	for _, f := range b.faults {
		if f.left > 0 && f.matches(r) {
			broken = f
			f.left--
			break
		}
	}
	b.passed = append(b.passed, r.Method+" "+r.URL.Path)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.open, r)
	}()
	if broken == nil {
		b.forward.ServeHTTP(w, r)
		return
	}
	select {
	case broken.hit <- struct{}{}:
	default:
	}
	broken.act(w, r, b.forward)
}

// inject breaks the next requests of a kind.
func (b *breaker) inject(times int, matches func(*http.Request) bool, do act) *fault {
	f := &fault{matches: matches, act: do, left: times, hit: make(chan struct{}, 1024)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, f)
	return f
}

// swap breaks all requests of a kind from now on, and no others.
func (b *breaker) swap(matches func(*http.Request) bool, do act) *fault {
	f := &fault{matches: matches, act: do, left: always, hit: make(chan struct{}, 1024)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = []*fault{f}
	return f
}

// mend breaks nothing any more.
func (b *breaker) mend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = nil
}

// drop ends the requests of a kind that are being answered, such as watches.
func (b *breaker) drop(matches func(*http.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for r, cancel := range b.open {
		if matches(r) {
			cancel()
		}
	}
}

// paths are those of the requests of a method whose path has some text.
func (b *breaker) paths(method, text string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, p := range b.passed {
		if m, path, _ := strings.Cut(p, " "); m == method && strings.Contains(path, text) {
			out = append(out, path)
		}
	}
	return out
}

// await waits until the fault broke n requests.
func (f *fault) await(t *testing.T, n int) {
	t.Helper()
	timeout := time.After(patience)
	for i := range n {
		select {
		case <-f.hit:
		case <-timeout:
			t.Fatalf("%d requests were broken within %s, wanted %d", i, patience, n)
		case <-t.Context().Done():
			t.Fatal("the test has ended")
		}
	}
}

func anything(*http.Request) bool { return true }

// about matches requests whose path ends with some text.
func about(suffix string) func(*http.Request) bool {
	return func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, suffix) }
}

// fail answers with a status and no more.
func fail(status int) act {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		http.Error(w, http.StatusText(status), status)
	}
}

// page answers with a page for people, and that all is well.
func page(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<!DOCTYPE html><html><body><h1>We are being maintained</h1></body></html>")
}

// hangUp ends the connection without an answer.
func hangUp(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// cutAfter passes so many bytes of the answer on and then ends the connection.
func cutAfter(n int) act {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		forward.ServeHTTP(&cutting{ResponseWriter: w, left: n}, r)
		panic(http.ErrAbortHandler) // an answer that was shorter ends as badly
	}
}

type cutting struct {
	http.ResponseWriter

	left int
}

// Write implements http.ResponseWriter.
func (c *cutting) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	c.left -= n
	if err == nil && c.left == 0 {
		err = io.ErrShortWrite
	}
	return n, err
}

// Unwrap lets the proxy flush.
func (c *cutting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// tamper changes a whole answer.
func tamper(change func(rec *httptest.ResponseRecorder, body string) string) act {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		rec := httptest.NewRecorder()
		r.Header.Del("Accept-Encoding")
		forward.ServeHTTP(rec, r)
		body := change(rec, rec.Body.String())
		maps.Copy(w.Header(), rec.Header())
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(rec.Code)
		_, _ = io.Copy(w, bytes.NewBufferString(body))
	}
}

// half is the first half of an answer, as if it were all.
func half(_ *httptest.ResponseRecorder, body string) string { return body[:len(body)/2] }
