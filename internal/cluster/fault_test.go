package cluster

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/local"
	"github.com/rutterhq/rutter/internal/testenv"
)

var (
	widget = rutter.GVK{Group: "example.com", Version: "v1", Kind: "Widget"}
	node   = rutter.GVK{Version: "v1", Kind: "Node"}
	hasty  = timing{call: 1500 * time.Millisecond, probeEvery: 200 * time.Millisecond, probe: 200 * time.Millisecond, retryMin: 40 * time.Millisecond, retryMax: 200 * time.Millisecond}
)

// faulty is an HTTP server that behaves as an API server until told otherwise.
type faulty struct {
	*httptest.Server

	mu     sync.Mutex
	seen   []string // method, path and the parts of the query that matter
	logins []string
	rules  map[string]http.HandlerFunc // by "list /path", "watch /path", "GET /path"
}

const groupsCore = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":""},"versions":[{"version":"v1","freshness":"Current","resources":[
	{"resource":"configmaps","scope":"Namespaced","responseKind":{"kind":"ConfigMap"},"verbs":["get","create"]},
	{"resource":"nodes","scope":"Cluster","responseKind":{"kind":"Node"},"verbs":["get","create"]}]}]}]}`

func groupsOf(freshness, resources string) string {
	return fmt.Sprintf(`{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","freshness":%q,"resources":[%s]}]}]}`, freshness, resources)
}

const widgets = `{"resource":"widgets","scope":"Namespaced","responseKind":{"kind":"Widget"},"verbs":["get","create"]}`

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	f := &faulty{rules: map[string]http.HandlerFunc{}}
	f.Server = httptest.NewUnstartedServer(f)
	f.EnableHTTP2 = true
	f.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are a part of the tests
	f.StartTLS()
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	f.on("GET /version", say(http.StatusOK, `{"gitVersion":"v1.30.0"}`))
	f.on("GET /api", say(http.StatusOK, groupsCore))
	f.on("GET /apis", say(http.StatusOK, groupsOf("Current", widgets)))
	return f
}

func say(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

func (f *faulty) on(what string, h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules[what] = h
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := r.Method + " " + r.URL.Path
	if q := r.URL.Query(); q.Has("watch") {
		what = "watch " + r.URL.Path
	} else if q.Has("limit") {
		what = "list " + r.URL.Path
	}
	f.mu.Lock()
	f.seen = append(f.seen, what)
	f.logins = append(f.logins, r.Header.Get("Authorization"))
	h := f.rules[what]
	f.mu.Unlock()
	switch {
	case h != nil:
		h(w, r)
	case strings.HasPrefix(what, "list"):
		say(http.StatusOK, `{"metadata":{"resourceVersion":"1"},"items":[]}`)(w, r)
	case strings.HasPrefix(what, "watch"):
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		say(http.StatusNotFound, "404 page not found")(w, r)
	}
}

func (f *faulty) count(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, s := range f.seen {
		if strings.HasPrefix(s, what) {
			n++
		}
	}
	return n
}

// login is the Authorization of the last request.
func (f *faulty) login() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.logins[len(f.logins)-1]
}

// ca trusts the server's certificate.
func (f *faulty) ca() []byte { return pemOf(f.Certificate().Raw) }

func (f *faulty) member(t *testing.T, s rutter.LiveSink, info rutter.ClusterInfo) (*Registry, *member) {
	t.Helper()
	r := New(Options{Logger: slog.New(slog.DiscardHandler), Sink: s, timing: hasty})
	t.Cleanup(r.Close)
	info.Name, info.Server = "faulty", f.URL
	if err := r.Set(info, rutter.ClusterCredential{BearerToken: "t", TLS: rutter.ClusterTLS{CAData: f.ca()}}); err != nil {
		t.Fatal(err)
	}
	return r, r.at(f.URL).member
}

func object(name, rv string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"a","resourceVersion":%q,"labels":{"rutter.dev/unit":"x"}}}`, name, rv)
}

func listOf(rv, next string, items ...string) http.HandlerFunc {
	return say(http.StatusOK, fmt.Sprintf(`{"apiVersion":"v1","items":[%s],"metadata":{"resourceVersion":%q,"continue":%q},"kind":"ConfigMapList"}`, strings.Join(items, ","), rv, next))
}

// streamOf sends frames, and then keeps the connection open or ends it.
func streamOf(keep bool, frames ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(strings.Join(frames, "\n") + "\n"))
		w.(http.Flusher).Flush()
		if keep {
			<-r.Context().Done()
		}
	}
}

func (s *sink) names() []string {
	names := make([]string, 0, len(s.live))
	for ref := range s.live {
		names = append(names, ref.Name)
	}
	slices.Sort(names)
	return names
}

func (s *sink) holds(names ...string) func() error {
	return s.check(func() bool { return slices.Equal(s.names(), names) })
}

const collection = "/api/v1/configmaps"

// TestFrames: a frame of the wrong form is left out, a torn one costs a new
// connection from where the watch was, and nothing else is lost.
func TestFrames(t *testing.T) {
	f, s := newFaulty(t), newSink()
	f.on("list "+collection, listOf("5", "", object("one", "3"), `"no object"`, `{"metadata":{}}`, object("two", "4")))
	f.on("watch "+collection, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("resourceVersion") {
		case "5":
			streamOf(false, `{"type":"ADDED","object":"no object"}`, `{"type":"SURPRISE","object":{}}`, `{"type":"ADDED","object":`+object("three", "6")+`}`, `{"type":"ADD`, `}{`)(w, r)
		case "6":
			streamOf(true, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}`, `{"type":"DELETED","object":`+object("one", "8")+`}`, `{"type":"MODIFIED","object":`+object("four", "9")+`}`)(w, r)
		default:
			t.Errorf("watched from %s", r.URL.Query())
		}
	})
	_, m := f.member(t, s, rutter.ClusterInfo{})
	m.Watch(configMap)
	testenv.Eventually(t, 5*time.Second, s.holds("four", "three", "two"))
	if n := f.count("list " + collection); n != 1 {
		t.Errorf("%d listings where a new connection was enough", n)
	}
}

// TestRelist: a position that is too old, said in any of the three ways, means
// a new listing with a higher epoch, and no taint.
func TestRelist(t *testing.T) {
	gone := `{"kind":"Status","status":"Failure","code":410,"reason":"Expired","message":"too old resource version"}`
	for name, where := range map[string]string{"as a frame": "frame", "as an answer": "answer", "in the middle of a list": "page"} {
		t.Run(name, func(t *testing.T) {
			f, s := newFaulty(t), newSink()
			var lists, pages int
			f.on("list "+collection, func(w http.ResponseWriter, r *http.Request) {
				switch lists++; {
				case r.URL.Query().Get("continue") != "":
					if pages++; pages == 1 {
						say(http.StatusGone, gone)(w, r)
						return
					}
					listOf("20", "", object("last", "12"))(w, r)
				case where == "page":
					listOf("20", "next", object("first", "11"))(w, r)
				case lists == 1:
					listOf("5", "", object("old", "3"))(w, r)
				default:
					listOf("20", "", object("first", "11"), object("last", "12"))(w, r)
				}
			})
			f.on("watch "+collection, func(w http.ResponseWriter, r *http.Request) {
				switch rv := r.URL.Query().Get("resourceVersion"); {
				case rv == "20":
					streamOf(true)(w, r)
				case where == "frame":
					streamOf(true, `{"type":"ERROR","object":`+gone+`}`)(w, r)
				default:
					say(http.StatusGone, gone)(w, r)
				}
			})
			_, m := f.member(t, s, rutter.ClusterInfo{})
			m.Watch(configMap)
			testenv.Eventually(t, 5*time.Second, s.holds("first", "last"))
			testenv.Eventually(t, 5*time.Second, s.check(func() bool { return s.listed[configMap] == 2 || where == "page" && s.listed[configMap] >= 2 }))
			if s.ever(configMap) {
				t.Error("the kind was tainted")
			}
		})
	}
}

// TestTaint: what is wrong with one kind is said of that kind alone, is tried
// again with pauses, and is taken back when it is over.
func TestTaint(t *testing.T) {
	conversion := `{"kind":"Status","code":500,"reason":"InternalError","message":"conversion webhook for example.com/v1 failed"}`
	for name, h := range map[string]http.HandlerFunc{
		"refused":                 say(http.StatusForbidden, `{"kind":"Status","reason":"Forbidden","message":"widgets is forbidden"}`),
		"a conversion that fails": say(http.StatusInternalServerError, conversion),
		"its server is not there": say(http.StatusServiceUnavailable, "service unavailable"),
		"it is never initialised": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "1")
			say(http.StatusTooManyRequests, "storage is initializing")(w, r)
		},
		"no answer for this kind":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"an answer that is no list": say(http.StatusOK, `["hello"]`),
		"a list without a position": say(http.StatusOK, `{"items":[]}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they only wait
			f, s := newFaulty(t), newSink()
			f.on("list /apis/example.com/v1/widgets", h)
			_, m := f.member(t, s, rutter.ClusterInfo{})
			m.Watch(configMap)
			m.Watch(widget)
			testenv.Eventually(t, 8*time.Second, s.check(func() bool { return s.tainted[widget] != nil && s.listed[configMap] > 0 }))
			if s.ever(configMap) || s.down != nil || m.Synced(widget) || !m.Synced(configMap) {
				t.Error("it is the matter of one kind alone")
			}
			before := f.count("list /apis/example.com/v1/widgets")
			time.Sleep(300 * time.Millisecond)
			if n := f.count("list /apis/example.com/v1/widgets") - before; n > 6 {
				t.Errorf("tried %d times in 300 ms", n)
			}
			f.on("list /apis/example.com/v1/widgets", listOf("1", ""))
			testenv.Eventually(t, 8*time.Second, s.check(func() bool { return s.tainted[widget] == nil && s.listed[widget] > 0 }))
		})
	}
}

// TestFruitlessWatch: a kind that can be listed and not watched is tainted too,
// and does not make the cluster list it without end.
func TestFruitlessWatch(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"an error at once":  streamOf(false, `{"type":"ERROR","object":{"kind":"Status","code":500,"message":"conversion failed"}}`),
		"refused":           say(http.StatusInternalServerError, `{"kind":"Status","message":"no"}`),
		"too old each time": streamOf(false, `{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they only wait
			f, s := newFaulty(t), newSink()
			f.on("watch "+collection, h)
			_, m := f.member(t, s, rutter.ClusterInfo{})
			m.Watch(configMap)
			if name != "too old each time" {
				testenv.Eventually(t, 5*time.Second, func() error {
					if !s.ever(configMap) {
						return fmt.Errorf("not tainted")
					}
					return nil
				})
			}
			time.Sleep(time.Second)
			if n := f.count("list " + collection); n > 20 { // without pauses it would be hundreds
				t.Errorf("listed %d times", n)
			}
		})
	}
}

// TestRestricted: a member that is restricted to namespaces is read there only.
func TestRestricted(t *testing.T) {
	f, s := newFaulty(t), newSink()
	f.on("list /api/v1/namespaces/a/configmaps", listOf("1", "", object("in-a", "1")))
	f.on("list /api/v1/namespaces/b/configmaps", listOf("1", "", strings.ReplaceAll(object("in-b", "1"), `"a"`, `"b"`)))
	_, m := f.member(t, s, rutter.ClusterInfo{Namespaces: []string{"a", "b"}})
	m.Watch(configMap)
	m.Watch(node)
	testenv.Eventually(t, 5*time.Second, s.holds("in-a", "in-b"))
	testenv.Eventually(t, 5*time.Second, s.check(func() bool { return s.listed[node] > 0 }))
	listings := func() int64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.listed[node]
	}
	first := listings()
	time.Sleep(200 * time.Millisecond)
	if f.count("list /api/v1/nodes")+f.count("list /api/v1/configmaps") != 0 {
		t.Errorf("looked outside: %v", f.seen)
	}
	if listings() != first {
		t.Error("a kind with nothing to look at is listed again and again")
	}
}

// TestHang: a member that accepts and never answers is found out, holds nobody,
// costs others nothing, and is used again when it answers.
func TestHang(t *testing.T) {
	f, other, s := newFaulty(t), newFaulty(t), newSink()
	p, err := local.NewProxy(t.Context(), &rest.Config{Host: f.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	r := New(Options{Logger: slog.New(slog.DiscardHandler), Sink: s, timing: hasty})
	t.Cleanup(r.Close)
	info := rutter.ClusterInfo{Name: "hung", Server: p.URL()}
	if err := r.Set(info, rutter.ClusterCredential{TLS: rutter.ClusterTLS{CAData: f.ca(), ServerName: "example.com"}}); err != nil {
		t.Fatal(err)
	}
	_, good := other.member(t, newSink(), rutter.ClusterInfo{})
	m := r.at(p.URL()).member
	f.on("list "+collection, listOf("1", "", object("one", "1"), object("two", "1")))
	m.Watch(configMap)
	testenv.Eventually(t, 5*time.Second, s.holds("one", "two"))
	p.Hang()
	var wg sync.WaitGroup
	for range 50 { // more than there are turns to write
		wg.Go(func() {
			if _, err := m.Apply(t.Context(), cm("a", "x", nil, true), rutter.ApplyOptions{}); rutter.CodeOf(err) != rutter.CodeUnavailable {
				t.Errorf("a hung cluster: %v", err)
			}
		})
	}
	var slowest time.Duration
	for range 200 {
		began := time.Now()
		if _, err := good.Get(t.Context(), configMap, "a", "x"); rutter.CodeOf(err) != rutter.CodeNotFound {
			t.Errorf("another cluster: %v", err)
		}
		slowest = max(slowest, time.Since(began))
	}
	if slowest > 500*time.Millisecond {
		t.Errorf("a call to another cluster took %s", slowest)
	}
	began := time.Now()
	wg.Wait()
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("calls were held for %s", took)
	}
	testenv.Eventually(t, 5*time.Second, s.check(func() bool { return s.down != nil }))
	st, _ := r.Status(p.URL())
	if st.Reachable || st.Err == nil || time.Since(st.Since) > 10*time.Second || st.Version != "v1.30.0" && st.Version != "" || st.Watches != 1 {
		t.Errorf("status %+v", st)
	}
	began = time.Now()
	if _, err := m.Get(t.Context(), configMap, "a", "x"); rutter.CodeOf(err) != rutter.CodeUnavailable || time.Since(began) > 50*time.Millisecond || !strings.Contains(err.Error(), "does not answer since") {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	f.on("list "+collection, listOf("9", "", object("two", "1")))
	f.on("watch "+collection, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("resourceVersion") == "1" { // the server was started anew meanwhile
			say(http.StatusGone, `{"kind":"Status","code":410,"message":"too old"}`)(w, r)
			return
		}
		streamOf(true)(w, r)
	})
	p.Restore()
	testenv.Eventually(t, 10*time.Second, s.check(func() bool { return s.down == nil && slices.Equal(s.names(), []string{"two"}) }))
}

// TestStaleGroup: an API whose server is away is not known to lack a kind, and
// its known kinds stay known.
func TestStaleGroup(t *testing.T) {
	f := newFaulty(t)
	_, m := f.member(t, newSink(), rutter.ClusterInfo{})
	if _, err := m.Mapping(t.Context(), widget); err != nil {
		t.Fatal(err)
	}
	f.on("GET /apis", say(http.StatusOK, groupsOf("Stale", "")))
	m.discovery.expire()
	gadget := rutter.GVK{Group: "example.com", Version: "v1", Kind: "Gadget"}
	if _, err := m.Mapping(t.Context(), gadget); rutter.CodeOf(err) != rutter.CodeUnavailable {
		t.Errorf("a kind that could not be looked up: %v", err)
	}
	if err := m.Delete(t.Context(), gadget, "a", "x", rutter.DeleteOptions{}); rutter.CodeOf(err) != rutter.CodeUnavailable {
		t.Errorf("its objects are not known to be gone: %v", err)
	}
	if _, err := m.Mapping(t.Context(), widget); err != nil {
		t.Errorf("a known kind is forgotten: %v", err)
	}
	if _, err := m.Mapping(t.Context(), configMap); err != nil {
		t.Errorf("the other groups: %v", err)
	}
	f.on("GET /apis", say(http.StatusOK, groupsOf("Current", "")))
	m.discovery.expire()
	if _, err := m.Mapping(t.Context(), gadget); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Errorf("a kind that is not there: %v", err)
	}
	if _, err := m.Mapping(t.Context(), widget); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Errorf("a kind that went: %v", err)
	}
	if err := m.Delete(t.Context(), widget, "a", "x", rutter.DeleteOptions{}); err != nil {
		t.Errorf("the objects of a kind that is gone are gone: %v", err)
	}
}

// TestDiscoveryIsShared: misses do not flood a server with discoveries.
func TestDiscoveryIsShared(t *testing.T) {
	f := newFaulty(t)
	_, m := f.member(t, newSink(), rutter.ClusterInfo{})
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			_, err := m.Mapping(t.Context(), rutter.GVK{Group: "no", Version: "v1", Kind: "No"})
			if rutter.CodeOf(err) != rutter.CodeNotFound {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := f.count("GET /apis"); n > 2 {
		t.Errorf("%d discoveries", n)
	}
}

// TestNames: a name cannot lead to another path.
func TestNames(t *testing.T) {
	f := newFaulty(t)
	_, m := f.member(t, newSink(), rutter.ClusterInfo{})
	for _, bad := range []string{"..", ".", "../../kube-system/configmaps/x", "x/status", "a%2fb"} {
		for _, at := range [][2]string{{"a", bad}, {bad, "x"}} {
			_, err := m.Apply(t.Context(), cm(at[0], at[1], nil, true), rutter.ApplyOptions{})
			_, err2 := m.Get(t.Context(), configMap, at[0], at[1])
			err3 := m.Delete(t.Context(), configMap, at[0], at[1], rutter.DeleteOptions{})
			for _, err := range []error{err, err2, err3} {
				if rutter.CodeOf(err) != rutter.CodeInvalid {
					t.Errorf("%v: %v", at, err)
				}
			}
		}
	}
	if _, err := m.Get(t.Context(), configMap, "", "x"); rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "needs a namespace") {
		t.Errorf("no namespace: %v", err)
	}
	if n := f.count("GET /api/v1/") + f.count("PATCH") + f.count("DELETE"); n != 0 {
		t.Errorf("%d requests were made", n)
	}
	_, _ = m.Get(t.Context(), configMap, "a", "q?x=y")
	if n := f.count("GET /api/v1/namespaces/a/configmaps/q?x=y"); n != 1 {
		t.Errorf("a strange name must stay a name: %v", f.seen)
	}
}

// TestBusy: a server that says it is busy is left alone for as long as it says,
// by everybody, and fewer write at a time.
func TestBusy(t *testing.T) {
	f := newFaulty(t)
	var mu sync.Mutex
	var calls []time.Time
	f.on("PATCH /api/v1/namespaces/a/configmaps/x", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		calls = append(calls, time.Now())
		n := len(calls)
		mu.Unlock()
		if n == 1 {
			w.Header().Set("Retry-After", "1")
			say(http.StatusTooManyRequests, `{"kind":"Status","code":429,"message":"too many requests"}`)(w, r)
			return
		}
		say(http.StatusOK, object("x", "1"))(w, r)
	})
	r, m := f.member(t, newSink(), rutter.ClusterInfo{})
	if _, err := m.Apply(t.Context(), cm("a", "x", nil, true), rutter.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if gap := calls[1].Sub(calls[0]); gap < 900*time.Millisecond {
		t.Errorf("asked again after %s", gap)
	}
	if m.writers.limit > 17 {
		t.Errorf("as many writers as before: %v", m.writers.limit)
	}
	if n := r.Requests()["apply"]; n != 1 {
		t.Errorf("counted %d applies", n)
	}
}

// TestBrokenConnection: a call whose connection broke is made again, once, and
// not at all where it would be made twice.
func TestBrokenConnection(t *testing.T) {
	f := newFaulty(t)
	var calls int
	abort := func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 1 {
			panic(http.ErrAbortHandler)
		}
		say(http.StatusOK, object("x", "1"))(w, r)
	}
	f.on("PATCH /api/v1/namespaces/a/configmaps/x", abort)
	f.on("POST /api/v1/namespaces/a/configmaps", abort)
	_, m := f.member(t, newSink(), rutter.ClusterInfo{})
	if _, err := m.Apply(t.Context(), cm("a", "x", nil, true), rutter.ApplyOptions{}); err != nil || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
	calls = 0
	named := cm("a", "", nil, true)
	named.SetGenerateName("x-")
	if _, err := m.Apply(t.Context(), named, rutter.ApplyOptions{}); rutter.CodeOf(err) != rutter.CodeUnavailable || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestStatusErrors(t *testing.T) {
	for _, tc := range []struct {
		code int
		body string
		want rutter.Code
		text string
	}{
		{403, `{"kind":"Status","message":"secrets is\n forbidden","reason":"Forbidden"}`, rutter.CodeForbidden, "secrets is forbidden"},
		{409, `{"kind":"Status","message":"changed"}`, rutter.CodeConflict, "changed"},
		{422, `{"kind":"Status","message":"spec.x: Invalid value"}`, rutter.CodeInvalid, "spec.x: Invalid value"},
		{500, `{"kind":"Status","message":"failed to create typed patch object (a/b; v1): .x: field not declared in schema"}`, rutter.CodeInvalid, "failed to create typed patch object (a/b; v1): .x: field not declared in schema"},
		{500, `oops`, rutter.CodeInternal, "oops"},
		{502, ``, rutter.CodeUnavailable, "Bad Gateway"},
		{404, `404 page not found`, rutter.CodeNotFound, "404 page not found"},
		{404, `{"some":"json"}`, rutter.CodeNotFound, `{"some":"json"}`},
	} {
		err := statusError(tc.code, []byte(tc.body))
		if rutter.CodeOf(err) != tc.want || err.Error() != tc.text {
			t.Errorf("%d %s: %s %q", tc.code, tc.body, rutter.CodeOf(err), err)
		}
		if s, ok := refused(err); !ok || int(s.Code) != tc.code {
			t.Errorf("the status is lost: %+v", s)
		}
	}
}

// ever reports whether a kind was tainted at any time.
func (s *sink) ever(gvk rutter.GVK) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taints[gvk] > 0
}
