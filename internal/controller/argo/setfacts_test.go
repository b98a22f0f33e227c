package argo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/forge"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/paramservice"
	"github.com/rutterhq/rutter/internal/testenv"
)

// rig is the part of the controllers that answers generators, at a namespace of
// a real API server.
type rig struct {
	*applicationSets
	namespace string
	// clock is what Options.Now adds to the time of the machine.
	clock atomic.Int64
}

func newRig(t *testing.T, opts SetOptions) *rig {
	t.Helper()
	env := testenv.Hub(t)
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cl, err := client.New(env.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{namespace: env.Namespace(t)}
	c := New(Options{Namespace: r.namespace, Sets: opts, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Now().Add(time.Duration(r.clock.Load())) }})
	c.client, c.reader, c.mapper = cl, cl, cl.RESTMapper()
	r.applicationSets = c.sets
	return r
}

// of are the facts of a new evaluation of a set.
func (r *rig) of(t *testing.T, namespace, name string) *facts {
	t.Helper()
	set := &v1alpha1.ApplicationSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	set.Spec.Template.Spec.Project = "team"
	return r.facts(t.Context(), set, false)
}

func (r *rig) create(t *testing.T, o client.Object) {
	t.Helper()
	o.SetNamespace(r.namespace)
	if err := r.client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// github answers as that does, and counts.
func github(t *testing.T, answer http.HandlerFunc) (string, *atomic.Int64) {
	t.Helper()
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, &asked
}

// TestAskedOnce: in one evaluation a question has one answer, even a failure;
// the next one asks again.
func TestAskedOnce(t *testing.T) {
	url, asked := github(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/broken/") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"message":"no"}`)
			return
		}
		_, _ = io.WriteString(w, `[]`)
	})
	r := newRig(t, SetOptions{Forges: forge.New(forge.Options{})})
	f := r.of(t, r.namespace, "fleet")
	good := rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: url, Owner: "org", Repo: "fleet"}
	bad, labelled := good, good
	bad.Repo, labelled.Labels = "broken", []string{"preview"}
	for range 3 {
		if _, err := f.PullRequests(good); err != nil {
			t.Fatal(err)
		}
		if _, err := f.PullRequests(bad); rutter.CodeOf(err) != rutter.CodeForbidden {
			t.Fatal(err)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("%d requests for 2 questions", n)
	}
	if _, err := f.PullRequests(labelled); err != nil || asked.Load() != 3 {
		t.Errorf("another question: %v, %d requests", err, asked.Load())
	}
	if questions, repeated := r.Questions(); questions != 3 || repeated != 4 {
		t.Errorf("%d questions, %d repeated", questions, repeated)
	}
	if _, err := r.of(t, r.namespace, "fleet").PullRequests(good); err != nil || asked.Load() != 4 {
		t.Errorf("the next evaluation: %v, %d requests", err, asked.Load())
	}
}

// TestWhoMayAsk is reference 5.14.
func TestWhoMayAsk(t *testing.T) {
	url, asked := github(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `[]`) })
	q := rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: url, Owner: "org", Repo: "fleet"}
	app := q
	app.AppSecret = "app"
	forges := forge.New(forge.Options{})
	refuse := func(_ context.Context, name, project string) error {
		return rutter.Errorf(rutter.CodeForbidden, "%s is not for %s", name, project)
	}
	for name, tc := range map[string]struct {
		opts      SetOptions
		elsewhere bool
		query     rutter.ForgeQuery
		says      string
	}{
		"turned off":          {SetOptions{}, false, q, "turned off"},
		"here":                {SetOptions{Forges: forges}, false, q, ""},
		"elsewhere":           {SetOptions{Forges: forges}, true, q, "--allowed-scm-providers"},
		"elsewhere, listed":   {SetOptions{Forges: forges, ForgesListed: true}, true, q, ""},
		"the App of another":  {SetOptions{Forges: forges, PermitApp: refuse}, false, app, "app is not for team"},
		"no App is asked for": {SetOptions{Forges: forges, PermitApp: refuse}, false, q, ""},
	} {
		r, before := newRig(t, tc.opts), asked.Load()
		namespace := r.namespace
		if tc.elsewhere {
			namespace = "elsewhere"
		}
		_, err := r.of(t, namespace, "fleet").PullRequests(tc.query)
		switch {
		case tc.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.says != "" && (rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), tc.says) || asked.Load() != before):
			t.Errorf("%s: %v, %d requests", name, err, asked.Load()-before)
		}
	}
}

// TestOutage: who waits for a dead service in vain keeps the others from doing
// so for a while; a service that refuses at once is asked by all.
func TestOutage(t *testing.T) {
	var r *rig
	dead, asked := github(t, func(w http.ResponseWriter, _ *http.Request) {
		r.clock.Add(int64(slowFailure))
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, `{"message":"later"}`)
	})
	alive, answered := github(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `[]`) })
	r = newRig(t, SetOptions{Forges: forge.New(forge.Options{Pause: time.Millisecond})})
	q := func(url, repo string) rutter.ForgeQuery {
		return rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: url, Owner: "org", Repo: repo}
	}
	if _, err := r.of(t, r.namespace, "a").PullRequests(q(dead, "a")); rutter.CodeOf(err) != rutter.CodeUnavailable || strings.Contains(err.Error(), "left alone") {
		t.Fatal(err)
	}
	first := asked.Load()
	if _, err := r.of(t, r.namespace, "b").PullRequests(q(dead, "b")); rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "left alone") {
		t.Errorf("another set: %v", err)
	}
	if _, err := r.of(t, r.namespace, "c").PullRequests(q(alive, "c")); err != nil || answered.Load() != 1 {
		t.Errorf("another service: %v", err)
	}
	if asked.Load() != first {
		t.Errorf("the dead service was asked again %d times", asked.Load()-first)
	}
	r.clock.Add(int64(outagePause))
	if _, err := r.of(t, r.namespace, "b").PullRequests(q(dead, "b")); strings.Contains(fmt.Sprint(err), "left alone") || asked.Load() == first {
		t.Errorf("after the pause: %v", err)
	}
}

// TestOutageIsProbedByOne: when the pause is over, one set finds out for all.
func TestOutageIsProbedByOne(t *testing.T) {
	var o outages
	at := time.Unix(1_700_000_000, 0)
	dead := rutter.Errorf(rutter.CodeUnavailable, "no answer")
	admitted := func(want bool, why string) {
		t.Helper()
		if err := o.admit("s", at); (err == nil) != want {
			t.Errorf("%s: %v", why, err)
		}
	}
	o.note("s", at.Add(-slowFailure), at, dead)
	admitted(false, "in the pause")
	at = at.Add(outagePause)
	admitted(true, "the first after the pause")
	admitted(false, "while it waits")
	o.note("s", at, at.Add(slowFailure), dead)
	admitted(false, "it waited in vain")
	at = at.Add(slowFailure + outagePause)
	admitted(true, "the first after that pause")
	o.leave("s")
	admitted(true, "it was given up")
	o.note("s", at.Add(-slowFailure), at, dead)
	at = at.Add(outagePause)
	admitted(true, "the first again")
	o.note("s", at, at.Add(time.Second), rutter.Errorf(rutter.CodeForbidden, "no"))
	admitted(true, "the service answers")
	admitted(true, "and all may ask")
}

// asService is how the composition root lets services of parameters be asked.
type asService struct{ *paramservice.Client }

func (s asService) Ask(ctx context.Context, to ParameterService, set string, input map[string]any) ([]map[string]any, error) {
	return s.Client.Ask(ctx, paramservice.Service{BaseURL: to.BaseURL, Token: to.Token}, set, input)
}

// TestPlugin: where the service is and how to log in comes from the control
// plane's namespace, and no error shows a token.
func TestPlugin(t *testing.T) {
	var logins []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		logins = append(logins, r.Header.Get("Authorization"))
		_ = json.NewEncoder(w).Encode(map[string]any{"output": map[string]any{"parameters": []any{map[string]any{"name": "a"}}}})
	}))
	t.Cleanup(s.Close)
	r := newRig(t, SetOptions{Parameters: asService{paramservice.New()}})
	secret := func(name string, labels, data map[string]string) {
		r.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, StringData: data})
	}
	secret("argocd-secret", nil, map[string]string{"plugin.token": "t0ken-1\n"})
	secret("shared", map[string]string{"app.kubernetes.io/part-of": "argocd"}, map[string]string{"token": "t0ken-2"})
	secret("private", nil, map[string]string{"token": "t0ken-3"})
	for name, tc := range map[string]struct {
		data  map[string]string
		login string
		says  string
	}{
		"argocd-secret":  {map[string]string{"baseUrl": s.URL, "token": "$plugin.token"}, "Bearer t0ken-1", ""},
		"named-secret":   {map[string]string{"baseUrl": s.URL + "/", "token": "$shared:token", "requestTimeout": "5"}, "Bearer t0ken-2", ""},
		"no-label":       {map[string]string{"baseUrl": s.URL, "token": "$private:token"}, "", "app.kubernetes.io/part-of: argocd"},
		"no-secret":      {map[string]string{"baseUrl": s.URL, "token": "$gone:token"}, "", "gone"},
		"no-key":         {map[string]string{"baseUrl": s.URL, "token": "$shared:tokens"}, "", `no key "tokens"`},
		"written-out":    {map[string]string{"baseUrl": s.URL, "token": "t0ken-4"}, "", "not the token itself"},
		"no-base-url":    {map[string]string{"token": "$plugin.token"}, "", "has no baseUrl"},
		"not-a-number":   {map[string]string{"baseUrl": s.URL, "token": "$plugin.token", "requestTimeout": "5s"}, "", "requestTimeout"},
		"no-time-at-all": {map[string]string{"baseUrl": s.URL, "token": "$plugin.token", "requestTimeout": "0"}, "", "requestTimeout"},
	} {
		r.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: tc.data})
		logins = nil
		f := r.of(t, r.namespace, "fleet")
		q := generate.PluginQuery{ConfigMap: name, Namespace: r.namespace, Set: "fleet", Input: map[string]any{"tier": "gold"}}
		items, err := f.PluginParameters(q)
		if strings.Contains(fmt.Sprint(err), "t0ken") {
			t.Errorf("%s: the error shows a token: %v", name, err)
		}
		if tc.says != "" {
			if err == nil || !strings.Contains(err.Error(), tc.says) || len(logins) > 0 {
				t.Errorf("%s: %v, asked with %q", name, err, logins)
			}
			continue
		}
		if _, again := f.PluginParameters(q); err != nil || again != nil {
			t.Errorf("%s: %v, %v", name, err, again)
		}
		if d := cmp.Diff([]map[string]any{{"name": "a"}}, items) + cmp.Diff([]string{tc.login}, logins); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if _, err := r.of(t, r.namespace, "fleet").PluginParameters(generate.PluginQuery{ConfigMap: "gone"}); err == nil {
		t.Error("a ConfigMap that is not there")
	}
}
