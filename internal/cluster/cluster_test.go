package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/local"
	"github.com/rutterhq/rutter/internal/testenv"
)

var configMap = rutter.GVK{Version: "v1", Kind: "ConfigMap"}

// sink records what it is shown.
type sink struct {
	mu      sync.Mutex
	live    map[rutter.Ref]int64 // epoch
	data    map[rutter.Ref]map[string]any
	listed  map[rutter.GVK]int64
	tainted map[rutter.GVK]error
	taints  map[rutter.GVK]int
	down    error
}

func newSink() *sink {
	return &sink{live: map[rutter.Ref]int64{}, data: map[rutter.Ref]map[string]any{}, listed: map[rutter.GVK]int64{}, tainted: map[rutter.GVK]error{}, taints: map[rutter.GVK]int{}}
}

func (s *sink) Observed(ev rutter.LiveEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := rutter.RefOf(ev.Object)
	if ev.Deleted {
		delete(s.live, ref)
		return
	}
	s.live[ref] = ev.Epoch
	s.data[ref], _, _ = unstructured.NestedMap(ev.Object.Object, "data")
}

func (s *sink) Listed(_ string, gvk rutter.GVK, epoch int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed[gvk] = epoch
	for ref, seen := range s.live {
		if ref.Kind == gvk.Kind && seen < epoch {
			delete(s.live, ref)
		}
	}
}

func (s *sink) Tainted(_ string, gvk rutter.GVK, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.tainted, gvk)
	} else {
		s.tainted[gvk] = err
		s.taints[gvk]++
	}
}

func (s *sink) Reachable(_ string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

func (s *sink) check(ok func() bool) func() error {
	return func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if ok() {
			return nil
		}
		return fmt.Errorf("live %v, listed %v, tainted %v, down %v", s.live, s.listed, s.tainted, s.down)
	}
}

func connect(t *testing.T, rc *rest.Config, s *sink) *member {
	t.Helper()
	r := New(Options{Logger: slog.New(slog.DiscardHandler), Sink: s})
	t.Cleanup(r.Close)
	if err := r.SetLocal(rc); err != nil {
		t.Fatal(err)
	}
	c, err := r.Lookup(rutter.Target{Name: LocalName})
	if err != nil {
		t.Fatal(err)
	}
	return c.(*member)
}

func cm(ns, name string, data map[string]any, marked bool) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": ns, "name": name}, "data": data}}
	if marked {
		u.SetLabels(map[string]string{rutter.LabelUnit: "x"})
	}
	return u
}

func TestApply(t *testing.T) {
	env := testenv.Hub(t)
	ns, m, ctx := env.Namespace(t), connect(t, env.RESTConfig(), newSink()), t.Context()
	first, err := m.Apply(ctx, cm(ns, "a", map[string]any{"k": "1", "gone": "x"}, true), rutter.ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dry, err := m.Apply(ctx, cm(ns, "a", map[string]any{"k": "2"}, true), rutter.ApplyOptions{DryRun: true})
	if err != nil || dry.GetResourceVersion() != first.GetResourceVersion() {
		t.Errorf("a dry run changed the object: %v", err)
	}
	second, err := m.Apply(ctx, cm(ns, "a", map[string]any{"k": "2"}, true), rutter.ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, there, _ := unstructured.NestedString(second.Object, "data", "gone"); there {
		t.Error("a field that is no longer sent must go")
	}
	same, err := m.Apply(ctx, cm(ns, "a", map[string]any{"k": "2"}, true), rutter.ApplyOptions{})
	if err != nil || same.GetResourceVersion() != second.GetResourceVersion() {
		t.Errorf("an apply that changes nothing must write nothing: %v", err)
	}
	bad := cm(ns, "bad", nil, true)
	bad.Object["dota"] = map[string]any{"k": "v"}
	if _, err := m.Apply(ctx, bad, rutter.ApplyOptions{}); rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "dota") {
		t.Errorf("an unknown field must be refused by its name: %v", err)
	}
	if _, err := m.Apply(ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "nope.io/v1", "kind": "Nope", "metadata": map[string]any{"name": "x"}}}, rutter.ApplyOptions{}); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Errorf("a kind that is not served: %v", err)
	}
	if err := m.Delete(ctx, configMap, ns, "a", rutter.DeleteOptions{UID: "00000000-0000-0000-0000-000000000000"}); err != nil {
		t.Errorf("another UID is no error: %v", err)
	}
	if _, err := m.Get(ctx, configMap, ns, "a"); err != nil {
		t.Errorf("an object with another UID was deleted: %v", err)
	}
	if err := errors.Join(m.Delete(ctx, configMap, ns, "a", rutter.DeleteOptions{UID: string(second.GetUID()), Propagation: "background"}), m.Delete(ctx, configMap, ns, "a", rutter.DeleteOptions{})); err != nil {
		t.Errorf("deleting what is gone is no error: %v", err)
	}
	if _, err := m.Get(ctx, configMap, ns, "a"); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Errorf("still there: %v", err)
	}
}

// TestAdopt: what kubectl applied on the client's side is taken over, so that
// what Git does not declare goes.
func TestAdopt(t *testing.T) {
	env := testenv.Hub(t)
	ns, m := env.Namespace(t), connect(t, env.RESTConfig(), newSink())
	old := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}}, Data: map[string]string{"keep": "1", "stale": "1"}}
	if _, err := env.Client(t).CoreV1().ConfigMaps(ns).Create(t.Context(), old, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"}); err != nil {
		t.Fatal(err)
	}
	live, err := m.Apply(t.Context(), cm(ns, "a", map[string]any{"keep": "1"}, true), rutter.ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if data, _, _ := unstructured.NestedStringMap(live.Object, "data"); len(data) != 1 {
		t.Errorf("the former manager's field stays: %v", data)
	}
	for _, e := range live.GetManagedFields() {
		if e.Manager != rutter.FieldManager {
			t.Errorf("a stale owner stays: %s", e.Manager)
		}
	}
}

// TestWatch: only marked objects are seen, and what went while nobody looked is
// found by the next listing.
func TestWatch(t *testing.T) {
	env := testenv.Hub(t)
	ns, s := env.Namespace(t), newSink()
	p, err := local.NewProxy(t.Context(), env.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	direct, m, ctx := connect(t, env.RESTConfig(), newSink()), connect(t, p.RESTConfig(env.RESTConfig()), s), t.Context()
	for name, marked := range map[string]bool{"ours": true, "foreign": false, "later": true} {
		if _, err := direct.Apply(ctx, cm(ns, name, map[string]any{"k": "1"}, marked), rutter.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ref := func(name string) rutter.Ref { return rutter.Ref{Kind: "ConfigMap", Namespace: ns, Name: name} }
	has := func(name string) bool { _, ok := s.live[ref(name)]; return ok }
	m.Watch(configMap)
	testenv.Eventually(t, 10*time.Second, s.check(func() bool { return s.listed[configMap] == 1 && has("ours") && has("later") && !has("foreign") }))
	if _, err := direct.Apply(ctx, cm(ns, "ours", map[string]any{"k": "2"}, true), rutter.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 10*time.Second, s.check(func() bool { return s.data[ref("ours")]["k"] == "2" }))
	p.Cut()
	if err := direct.Delete(ctx, configMap, ns, "later", rutter.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 20*time.Second, s.check(func() bool { return s.down != nil }))
	if _, err := m.Get(ctx, configMap, ns, "ours"); rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "since") {
		t.Errorf("a cluster that is away must fail fast and say since when: %v", err)
	}
	p.Restore()
	testenv.Eventually(t, 30*time.Second, s.check(func() bool { return s.down == nil && has("ours") && !has("later") }))
}

// TestKinds: a kind appears with its definition, and one that is not served
// taints nobody else.
func TestKinds(t *testing.T) {
	env := testenv.Hub(t)
	s := newSink()
	m, ctx := connect(t, env.RESTConfig(), s), t.Context()
	ns := env.Namespace(t)
	group := "x" + strings.ReplaceAll(ns, "-", "") + ".example.com"
	widget := rutter.GVK{Group: group, Version: "v1", Kind: "Widget"}
	m.Watch(configMap)
	m.Watch(widget)
	testenv.Eventually(t, 10*time.Second, s.check(func() bool { return s.tainted[widget] != nil && s.listed[configMap] > 0 }))
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets." + group},
		"spec": map[string]any{"group": group, "scope": "Namespaced", "names": map[string]any{"kind": "Widget", "plural": "widgets"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}}}
	if _, err := m.Apply(ctx, crd, rutter.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.Delete(t.Context(), rutter.GVKOf(crd), "", crd.GetName(), rutter.DeleteOptions{})
	})
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Widget", "metadata": map[string]any{"name": "w", "namespace": ns, "labels": map[string]any{rutter.LabelUnit: "x"}}}}
	if _, err := m.Apply(ctx, obj, rutter.ApplyOptions{}); err != nil {
		t.Errorf("an object right after its definition: %v", err)
	}
	testenv.Eventually(t, 15*time.Second, s.check(func() bool {
		_, seen := s.live[rutter.RefOf(obj)]
		return seen && s.tainted[widget] == nil
	}))
	version, apis, err := m.Version(ctx)
	if err != nil || version != "v1.37.2" || len(apis) < 20 {
		t.Errorf("version %q, %d APIs, %v", version, len(apis), err)
	}
}

func TestLookup(t *testing.T) {
	r := New(Options{Logger: slog.New(slog.DiscardHandler), Sink: newSink()})
	t.Cleanup(r.Close)
	for i, name := range []string{"one", "twice", "twice"} {
		info := rutter.ClusterInfo{Name: name, Server: fmt.Sprintf("https://127.0.0.1:1%d/", i)}
		if err := r.Set(info, rutter.ClusterCredential{BearerToken: "t"}); err != nil {
			t.Fatal(err)
		}
	}
	r.SetBroken(rutter.ClusterInfo{Name: "broken", Server: "https://127.0.0.1:99"}, errors.New("key config: not valid JSON"))
	for name, tc := range map[string]struct {
		target rutter.Target
		code   rutter.Code
	}{
		"by server, with a slash": {rutter.Target{Server: "https://127.0.0.1:10/"}, ""},
		"by name":                 {rutter.Target{Name: "one"}, ""},
		"ambiguous":               {rutter.Target{Name: "twice"}, rutter.CodeInvalid},
		"unknown name":            {rutter.Target{Name: "none"}, rutter.CodeNotFound},
		"unknown server":          {rutter.Target{Server: "https://x"}, rutter.CodeNotFound},
		"broken":                  {rutter.Target{Name: "broken"}, rutter.CodeInternal},
	} {
		if _, err := r.Lookup(tc.target); rutter.CodeOf(err) != tc.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	marker := t.TempDir() + "/ran"
	err := r.Set(rutter.ClusterInfo{Name: "exec", Server: "https://x"}, rutter.ClusterCredential{Exec: &rutter.ExecProvider{Command: "touch", Args: []string{marker}}})
	if rutter.CodeOf(err) != rutter.CodeForbidden {
		t.Errorf("a credential plugin that nobody allowed: %v", err)
	}
}

// TestRefusals: the server's words come through, with a code.
func TestRefusals(t *testing.T) {
	var calls int
	mux := http.NewServeMux()
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "slow down", http.StatusTooManyRequests)
			return
		}
		_, _ = w.Write([]byte(`{}`))
	})
	mux.HandleFunc("/denied", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","message":"secrets is forbidden","reason":"Forbidden"}`))
	})
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	m := connect(t, &rest.Config{Host: srv.URL}, newSink())
	if _, err := m.do(t.Context(), request{method: http.MethodGet, path: "/busy"}); err != nil || calls != 2 {
		t.Errorf("a busy server is asked again: %v after %d calls", err, calls)
	}
	if _, err := m.do(t.Context(), request{method: http.MethodGet, path: "/denied"}); rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), "secrets is forbidden") {
		t.Errorf("refused: %v", err)
	}
	if _, err := m.do(t.Context(), request{method: http.MethodGet, path: "/elsewhere"}); err == nil {
		t.Error("a redirect must not be followed: credentials would go along")
	}
}

func (s *sink) taintOf(gvk rutter.GVK) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tainted[gvk]
}
