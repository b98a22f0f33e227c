package daemon

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/controller/argo"
	"github.com/rutterhq/rutter/internal/forge"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/testenv"
)

// controlPlane is a namespace of a real API server and what it holds.
type controlPlane struct {
	client.Client
	namespace string
}

func newControlPlane(t *testing.T) controlPlane {
	t.Helper()
	env := testenv.Hub(t)
	c, err := NewClient(env.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return controlPlane{c, env.Namespace(t)}
}

func (c controlPlane) options(t *testing.T, cfg SetConfig) (argo.SetOptions, error) {
	t.Helper()
	return setOptions(t.Context(), cfg, c, c.namespace, slog.New(slog.DiscardHandler))
}

func (c controlPlane) configMap(t *testing.T, name string, data map[string]string) {
	t.Helper()
	if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}, Data: data}); err != nil {
		t.Fatal(err)
	}
}

func (c controlPlane) secret(t *testing.T, name string, labels, data map[string]string) {
	t.Helper()
	err := c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name, Labels: labels}, StringData: data})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSetOptions: the keys of an existing installation hold, and flags win.
func TestSetOptions(t *testing.T) {
	c := newControlPlane(t)
	ignore := cmpopts.IgnoreFields(argo.SetOptions{}, "Forges", "Parameters", "PermitApp", "Generate")
	got, err := c.options(t, SetConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(argo.SetOptions{AllowOverride: true}, got, ignore); d != "" || got.Forges == nil || got.Parameters == nil {
		t.Errorf("nothing said: %s", d)
	}
	c.configMap(t, "argocd-cmd-params-cm", map[string]string{
		"applicationsetcontroller.policy":                         "create-update",
		"applicationsetcontroller.global.preserved.annotations":   "a, b",
		"applicationsetcontroller.global.preserved.labels":        "c",
		"applicationsetcontroller.dryrun":                         "true",
		"applicationsetcontroller.concurrent.reconciliations.max": "7",
		"applicationsetcontroller.enable.new.git.file.globbing":   "true",
		"applicationsetcontroller.requeue.after":                  "90s",
		"applicationsetcontroller.allowed.scm.providers":          "https://git.example.com/, ghe.example.com",
		"rutter.applicationset.deletion.budget":                   "10% min 5",
		"applicationsetcontroller.log.level":                      "whatever",
	})
	got, err = c.options(t, SetConfig{})
	if err != nil {
		t.Fatal(err)
	}
	want := argo.SetOptions{
		Policy: v1alpha1.ApplicationsSyncPolicyCreateUpdate, PreservedAnnotations: []string{"a", "b"}, PreservedLabels: []string{"c"},
		DryRun: true, Concurrency: 7, ForgesListed: true, Budget: &generate.Budget{Budget: rutter.Budget{Percent: 10, Min: 5}},
	}
	if d := cmp.Diff(want, got, ignore); d != "" || !got.Generate.NewFileGlobbing || got.Generate.Requeue.Polled != 90*time.Second {
		t.Errorf("by keys: %s, %+v", d, got.Generate)
	}
	got, err = c.options(t, SetConfig{Policy: "sync", PolicyOverride: "true", DryRun: "false", DeletionBudget: "2", EnableSCMProviders: "false"})
	if err != nil || got.Policy != "sync" || !got.AllowOverride || got.DryRun || got.Budget.Min != 2 || got.Forges != nil || got.Concurrency != 7 {
		t.Errorf("by flags: %+v, %v", got, err)
	}
}

// TestOverrideTurnedOff: without a policy of the operator's, his refusal of the sets'
// own makes the default hold for all.
func TestOverrideTurnedOff(t *testing.T) {
	got, err := newControlPlane(t).options(t, SetConfig{PolicyOverride: "false"})
	if err != nil || got.Policy != v1alpha1.ApplicationsSyncPolicySync || got.AllowOverride {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSetMistakes: a mistake ends the start, and says where it is and what to write.
func TestSetMistakes(t *testing.T) {
	text := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(text, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newControlPlane(t)
	for name, tc := range map[string]struct {
		cfg  SetConfig
		says []string
	}{
		"policy":      {SetConfig{Policy: "upsert"}, []string{"--policy", "create-only"}},
		"bool":        {SetConfig{DryRun: "maybe"}, []string{"--applicationset-dry-run", "true or false"}},
		"strict":      {SetConfig{StrictTokenRef: "yes!"}, []string{"--enable-tokenref-strict-mode", "true or false"}},
		"turned off":  {SetConfig{EnableSCMProviders: "off!"}, []string{"--enable-scm-providers", "true or false"}},
		"number":      {SetConfig{Concurrency: "0"}, []string{"--applicationset-concurrency", "1 or more"}},
		"pause":       {SetConfig{RequeueAfter: "180"}, []string{"--applicationset-requeue-after", "3m"}},
		"budget":      {SetConfig{DeletionBudget: "lots"}, []string{"--deletion-budget", "10% min 5"}},
		"host":        {SetConfig{AllowedSCMProviders: "git.example.com,ftp://x"}, []string{"--allowed-scm-providers", "ftp://x", "beginning of an API"}},
		"no file":     {SetConfig{SCMRootCA: "/does/not/exist"}, []string{"--scm-root-ca-path", "/does/not/exist"}},
		"no PEM":      {SetConfig{SCMRootCA: text}, []string{"--scm-root-ca-path", "PEM"}},
		"still noted": {SetConfig{SCMRootCA: text, EnableSCMProviders: "false"}, []string{"--scm-root-ca-path"}},
	} {
		_, err := c.options(t, tc.cfg)
		for _, s := range tc.says {
			if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(fmt.Sprint(err), s) {
				t.Errorf("%s: %v; want it to say %q", name, err, s)
			}
		}
	}
	c.configMap(t, "argocd-cmd-params-cm", map[string]string{"applicationsetcontroller.concurrent.reconciliations.max": "many"})
	_, err := c.options(t, SetConfig{})
	if !strings.Contains(fmt.Sprint(err), "argocd-cmd-params-cm: applicationsetcontroller.concurrent.reconciliations.max") {
		t.Errorf("a key: %v", err)
	}
}

// service is a server that answers as GitHub does, and remembers who asked.
type service struct {
	*httptest.Server
	mu     sync.Mutex
	logins []string
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.logins = append(s.logins, r.Header.Get("Authorization"))
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Ratelimit-Limit", "5000")
		w.Header().Set("X-Ratelimit-Remaining", "4321")
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"1"`)
		if r.URL.Path != "/api/v3/repos/org/fleet/pulls" {
			w.WriteHeader(http.StatusNotFound)
		}
		_ = json.NewEncoder(w).Encode([]any{})
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.logins...)
}

// TestForgeLogins: a login is read from where the reference says, goes to hosts
// that are allowed, and one that is not there is never "no such repository".
func TestForgeLogins(t *testing.T) {
	c := newControlPlane(t)
	c.secret(t, "token", nil, map[string]string{"token": "t0ken\n"})
	c.secret(t, "labelled", map[string]string{"argocd.argoproj.io/secret-type": "scm-creds"}, map[string]string{"token": "t0ken"})
	c.secret(t, "no-app", map[string]string{"argocd.argoproj.io/secret-type": "repo-creds"}, map[string]string{"url": "https://github.com/org"})
	c.secret(t, "not-shared", nil, map[string]string{"url": "https://github.com/org", "githubAppID": "1", "githubAppPrivateKey": "k"})
	here, there := newService(t), newService(t)
	ref := func(name, key string) *rutter.SecretRef {
		return &rutter.SecretRef{Namespace: c.namespace, Name: name, Key: key}
	}
	for name, tc := range map[string]struct {
		cfg   SetConfig
		query rutter.ForgeQuery
		code  rutter.Code
		says  string
		login string
	}{
		"a token":             {query: rutter.ForgeQuery{API: here.URL, Token: ref("token", "token")}, login: "Bearer t0ken"},
		"no login":            {query: rutter.ForgeQuery{API: here.URL}},
		"no such Secret":      {query: rutter.ForgeQuery{API: here.URL, Token: ref("gone", "token")}, code: rutter.CodeInvalid, says: "there is no Secret"},
		"no such key":         {query: rutter.ForgeQuery{API: here.URL, Token: ref("token", "tokens")}, code: rutter.CodeInvalid, says: `no key "tokens"`},
		"strict":              {cfg: SetConfig{StrictTokenRef: "true"}, query: rutter.ForgeQuery{API: here.URL, Token: ref("token", "token")}, code: rutter.CodeForbidden, says: "scm-creds"},
		"strict, labelled":    {cfg: SetConfig{StrictTokenRef: "true"}, query: rutter.ForgeQuery{API: here.URL, Token: ref("labelled", "token")}, login: "Bearer t0ken"},
		"allowed":             {cfg: SetConfig{AllowedSCMProviders: here.URL}, query: rutter.ForgeQuery{API: here.URL, Token: ref("token", "token")}, login: "Bearer t0ken"},
		"not allowed":         {cfg: SetConfig{AllowedSCMProviders: here.URL}, query: rutter.ForgeQuery{API: there.URL, Token: ref("token", "token")}, code: rutter.CodeForbidden, says: "does not allow"},
		"no such App":         {query: rutter.ForgeQuery{API: here.URL, AppSecret: "gone"}, code: rutter.CodeInvalid, says: "there is no Secret"},
		"no App":              {query: rutter.ForgeQuery{API: here.URL, AppSecret: "no-app"}, code: rutter.CodeInvalid, says: "githubAppID"},
		"an App that is none": {query: rutter.ForgeQuery{API: here.URL, AppSecret: "not-shared"}, code: rutter.CodeForbidden, says: "repo-creds"},
		"no such authority":   {query: rutter.ForgeQuery{API: here.URL, CA: ref("ca", "ca.crt")}, code: rutter.CodeInvalid, says: "there is no ConfigMap"},
		"no such repository":  {query: rutter.ForgeQuery{API: here.URL, Owner: "other"}, code: rutter.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			opts, err := c.options(t, tc.cfg)
			if err != nil {
				t.Fatal(err)
			}
			tc.query.Provider, tc.query.Repo = rutter.ForgeGitHub, "fleet"
			if tc.query.Owner == "" {
				tc.query.Owner = "org"
			}
			before := len(here.asked())
			_, err = opts.Forges.PullRequests(t.Context(), tc.query)
			if rutter.CodeOf(err) != tc.code || !strings.Contains(fmt.Sprint(err), tc.says) || strings.Contains(fmt.Sprint(err), "t0ken") {
				t.Errorf("%s: %v; want %q with %q", rutter.CodeOf(err), err, tc.code, tc.says)
			}
			asked := here.asked()[before:]
			if err == nil && (len(asked) == 0 || asked[0] != tc.login) || tc.code != "" && tc.code != rutter.CodeNotFound && len(asked) > 0 {
				t.Errorf("asked with %q", asked)
			}
		})
	}
	if logins := there.asked(); len(logins) > 0 {
		t.Errorf("a host that is not allowed was asked: %v", logins)
	}
}

// TestAppOfAProject: a login that belongs to a project serves that one alone.
func TestAppOfAProject(t *testing.T) {
	c := newControlPlane(t)
	creds := map[string]string{"argocd.argoproj.io/secret-type": "repo-creds"}
	c.secret(t, "shared", creds, map[string]string{"url": "https://github.com/org", "githubAppID": "1", "githubAppPrivateKey": "k"})
	c.secret(t, "scoped", creds, map[string]string{"url": "https://github.com/org", "githubAppID": "1", "githubAppPrivateKey": "k", "project": "team"})
	opts, err := c.options(t, SetConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		secret, project string
		code            rutter.Code
	}{
		"shared":              {"shared", "team", ""},
		"shared, no project":  {"shared", "", ""},
		"its project":         {"scoped", "team", ""},
		"another project":     {"scoped", "other", rutter.CodeForbidden},
		"a templated project": {"scoped", "", rutter.CodeForbidden},
	} {
		if err := opts.PermitApp(t.Context(), tc.secret, tc.project); rutter.CodeOf(err) != tc.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestForgeMetrics: what is asked, what had not changed and what is left show.
func TestForgeMetrics(t *testing.T) {
	c := newControlPlane(t)
	c.secret(t, "token", nil, map[string]string{"token": "t0ken"})
	opts, err := c.options(t, SetConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s := newService(t)
	q := rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: s.URL, Owner: "org", Repo: "fleet", Token: &rutter.SecretRef{Namespace: c.namespace, Name: "token", Key: "token"}}
	for range 3 {
		if _, err := opts.Forges.PullRequests(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	f, ok := opts.Forges.(*forge.Client)
	if !ok {
		t.Fatal("the forges are not those that are measured")
	}
	own := prometheus.NewRegistry()
	own.MustRegister(forges{f})
	page := httptest.NewRecorder()
	promhttp.HandlerFor(own, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	got := map[string]string{}
	for line := range strings.Lines(page.Body.String()) {
		if series, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && series != "#" {
			name, _, _ := strings.Cut(strings.TrimPrefix(series, "rutter_forge_"), "{")
			got[name] = value
		}
	}
	want := map[string]string{"requests_total": "3", "not_modified_total": "2", "quota_waits_total": "0", "quota_refused_total": "0", "quota_remaining": "4321", "quota_limit": "5000"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
