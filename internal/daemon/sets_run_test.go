package daemon

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/testenv"
)

const previews = `
metadata: {name: previews}
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators:
    - matrix:
        generators:
          - list: {elements: [{repo: fleet}]}
          - pullRequest:
              github: {owner: org, repo: '{{.repo}}', api: %q, tokenRef: {secretName: token, key: token}}
  template:
    metadata: {name: 'pr-{{.number}}'}
    spec:
      project: default
      source: {repoURL: %q, path: ., targetRevision: '{{.head_sha}}'}
      destination: {server: https://kubernetes.default.svc, namespace: previews}
`

// hub is a server with pull requests.
type hub struct {
	*httptest.Server
	mu    sync.Mutex
	open  []int
	asked int
}

func newHub(t *testing.T, open ...int) *hub {
	t.Helper()
	h := &hub{open: open}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/api/") {
			http.NotFound(w, r) // the Applications' own repository: nobody looks into it here
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asked++
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v3/repos/org/fleet/pulls" || r.Header.Get("Authorization") != "Bearer t0ken" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"message":"Bad credentials"}`)
			return
		}
		list := []any{}
		for _, n := range h.open {
			list = append(list, map[string]any{"number": n, "title": "t", "user": map[string]any{"login": "me"}, "labels": []any{},
				"head": map[string]any{"ref": fmt.Sprintf("b%d", n), "sha": strings.Repeat(fmt.Sprint(n%10), 40)}, "base": map[string]any{"ref": "main"}})
		}
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hub) set(open ...int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = open
}

func (h *hub) requests() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked
}

// settled waits until nobody has asked for a moment.
func (h *hub) settled() int {
	for n := h.requests(); ; {
		time.Sleep(500 * time.Millisecond)
		next := h.requests()
		if next == n {
			return n
		}
		n = next
	}
}

// tell sends what GitHub sends.
func tell(t *testing.T, addr, event, repo, page string) {
	t.Helper()
	body := fmt.Sprintf(`{"action":"opened","number":2,"ref":"refs/heads/main","repository":{"full_name":"org/%s","html_url":%q,"clone_url":%q,"default_branch":"main"}}`, repo, page+"/org/"+repo, page+"/org/"+repo)
	mac := hmac.New(sha256.New, []byte("hook"))
	mac.Write([]byte(body))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/api/webhook", bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Github-Event", event)
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("webhook: %d", resp.StatusCode)
	}
}

// TestPullRequestWebhook: an opened pull request has its Application within
// seconds, though nobody polls for half an hour, and asks nobody about others.
// The question came out of a matrix: its repository is written nowhere in the set.
func TestPullRequestWebhook(t *testing.T) {
	c := newControlPlane(t)
	rc := testenv.Hub(t).RESTConfig()
	if err := Install(t.Context(), rc, c.namespace); err != nil {
		t.Fatal(err)
	}
	h := newHub(t, 1)
	c.secret(t, "token", nil, map[string]string{"token": "t0ken"})
	c.secret(t, "argocd-secret", nil, map[string]string{"webhook.github.secret": "hook"})
	var set v1alpha1.ApplicationSet
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, previews, h.URL, h.URL+"/org/fleet"), &set); err != nil {
		t.Fatal(err)
	}
	set.Namespace = c.namespace
	if err := c.Create(t.Context(), &set); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	listening, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{REST: rc, Namespace: c.namespace, DataDir: t.TempDir(), Workers: 1, Listening: func(addr string) { listening <- addr }})
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	addr := <-listening
	c.awaitApps(t, "pr-1")

	before := h.settled()
	h.set(1, 2)
	tell(t, addr, "pull_request", "another", h.URL)
	tell(t, addr, "push", "fleet", h.URL)
	time.Sleep(300 * time.Millisecond)
	if n := h.requests() - before; n > 0 {
		t.Errorf("%d requests for events that concern nobody", n)
	}
	tell(t, addr, "pull_request", "fleet", h.URL)
	c.awaitApps(t, "pr-1", "pr-2")
	h.set(2)
	tell(t, addr, "pull_request", "fleet", h.URL)
	c.awaitApps(t, "pr-2")

	page, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer page.Body.Close()
	text, _ := io.ReadAll(page.Body)
	for _, want := range []string{"rutter_forge_requests_total ", "rutter_applicationset_questions_total "} {
		if !strings.Contains(string(text), "\n"+want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
}

// awaitApps waits until exactly these Applications are there.
func (c controlPlane) awaitApps(t *testing.T, want ...string) {
	t.Helper()
	testenv.Eventually(t, 30*time.Second, func() error {
		var apps v1alpha1.ApplicationList
		if err := c.List(t.Context(), &apps, client.InNamespace(c.namespace)); err != nil {
			return err
		}
		var got []string
		for i := range apps.Items {
			if apps.Items[i].DeletionTimestamp == nil { // what it deployed is the engine's to remove
				got = append(got, apps.Items[i].Name)
			}
		}
		slices.Sort(got)
		if slices.Equal(got, want) {
			return nil
		}
		var set v1alpha1.ApplicationSet
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: "previews"}, &set); err != nil && !meta.IsNoMatchError(err) {
			return err
		}
		return fmt.Errorf("applications %v, want %v; %+v", got, want, set.Status.Conditions)
	})
}
