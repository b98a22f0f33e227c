package forge

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

func newRecorder() *recorder { return httptest.NewRecorder() }

func TestAllowedHosts(t *testing.T) {
	for _, c := range []struct {
		api   string
		hosts []string
		want  bool
	}{
		{"https://git.example.com/api/v3", nil, true},
		{"https://git.example.com/api/v3", []string{"git.example.com"}, true},
		{"https://GIT.example.com/api/v3", []string{"https://git.example.com"}, true},
		{"https://git.example.com/api/v3", []string{"https://git.example.com/"}, true},
		{"https://git.example.com:443/api/v3", []string{"git.example.com:443"}, true},
		{"https://git.example.com/api/v3", []string{"https://git.example.com/api/v3"}, true},
		{"https://git.example.com/other", []string{"https://git.example.com/api/v3"}, false},
		{"https://git.example.com:8443/api/v3", []string{"git.example.com"}, false},
		{"http://git.example.com/api/v3", []string{"https://git.example.com"}, false},
		{"https://git.example.com.evil.example/api/v3", []string{"git.example.com"}, false},
		{"https://evil.example/git.example.com", []string{"git.example.com", "https://git.example.com"}, false},
		{"https://evil.example", []string{"", "::"}, false},
	} {
		u, err := url.Parse(strings.ToLower(strings.Replace(c.api, ":443", "", 1)))
		if err != nil {
			t.Fatal(err)
		}
		if got := allowed(c.hosts, u); got != c.want {
			t.Errorf("%s with %q: %v", c.api, c.hosts, got)
		}
	}
}

// An API that is not on the list is asked nothing, and its login not looked up.
func TestHostThatIsNotAllowed(t *testing.T) {
	for _, u := range providers() {
		s := serve(t, u.protocol)
		opts := testOptions(u)
		opts.Hosts = []string{"git.example.com"}
		opts.Secrets = func(context.Context, rutter.SecretRef) (string, error) {
			t.Errorf("%s: the login is looked up", u.name)
			return secretOf, nil
		}
		_, err := New(opts).Repositories(t.Context(), u.ask(s))
		if rutter.CodeOf(err) != rutter.CodeForbidden || len(s.requests()) != 0 {
			t.Errorf("%s: %v", u.name, err)
		}
	}
}

// A redirect to another host is not followed, so nothing is sent there.
func TestLoginStaysAtHome(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		answer(w, 200, []any{})
	}))
	defer other.Close()
	for _, u := range providers() {
		for _, code := range []int{301, 302, 307, 308} {
			s := serve(t, u.protocol)
			s.change(func(r *http.Request, rec *recorder) {
				rec.Code = code
				rec.Header().Set("Location", other.URL+r.URL.RequestURI())
			})
			_, err := New(testOptions(u)).Repositories(t.Context(), u.ask(s))
			if rutter.CodeOf(err) != rutter.CodeForbidden {
				t.Errorf("%s %d: %v", u.name, code, err)
			}
		}
	}
	if elsewhere.Load() != 0 {
		t.Errorf("another host was asked %d times", elsewhere.Load())
	}
}

// GitHub answers for a renamed repository with its new address.
func TestRenamedRepository(t *testing.T) {
	u := providers()[0]
	s := serve(t, u.protocol)
	s.change(func(r *http.Request, rec *recorder) {
		if strings.Contains(r.URL.Path, "/old/") {
			rec.Code = http.StatusMovedPermanently
			rec.Header().Set("Location", strings.Replace(r.URL.RequestURI(), "/old/", "/"+repoName(0)+"/", 1))
		}
	})
	q := u.pullQuery(s)
	q.Repo = "old"
	got, err := New(testOptions(u)).PullRequests(t.Context(), q)
	if err != nil || len(got) != manyPulls {
		t.Fatal(len(got), err)
	}
}

func TestRefusedAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"169.254.169.254": true, "::ffff:169.254.169.254": true, "64:ff9b::a9fe:a9fe": true, "2002:a9fe:a9fe::1": true, "fe80::1": true, "fd00:ec2::254": true,
		"0.0.0.0": true, "::": true, "224.0.0.1": true, "100.100.100.200": true, "168.63.129.16": true,
		"127.0.0.1": false, "::1": false, "10.0.0.1": false, "192.168.1.1": false, "140.82.112.5": false, "2606:50c0::1": false,
	} {
		if got := isRefused(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for _, api := range []string{"http://169.254.169.254", "http://[fe80::1]", "http://0.0.0.0:8080", "http://[::ffff:169.254.169.254]/x"} {
		looked := func(context.Context, rutter.SecretRef) (string, error) {
			t.Errorf("%s: the login is looked up", api)
			return secretOf, nil
		}
		_, err := New(Options{Secrets: looked, Pause: time.Millisecond}).Repositories(t.Context(), rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: api, Owner: "acme", Token: loginRef})
		if rutter.CodeOf(err) != rutter.CodeForbidden {
			t.Errorf("%s: %v", api, err)
		}
	}
	if err := checkDial("tcp", "169.254.169.254:80", nil); rutter.CodeOf(err) != rutter.CodeForbidden {
		t.Error(err)
	}
}

func TestCertificates(t *testing.T) {
	u := providers()[1]
	s := httptest.NewUnstartedServer(u.protocol)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	q := u.query
	q.API = s.URL
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	opts := testOptions(u)
	opts.ConfigMap = func(_ context.Context, ref rutter.SecretRef) (string, error) {
		return map[string]string{"good": ca, "bad": "no certificate", "none": ""}[ref.Key], nil
	}
	c := New(opts)
	for _, tc := range []struct {
		ca       string
		insecure bool
		want     rutter.Code
	}{
		{"", false, rutter.CodeUnavailable},
		{"good", false, ""},
		{"", false, rutter.CodeUnavailable}, // a connection that was trusted is not used by who does not trust
		{"", true, ""},
		{"", false, rutter.CodeUnavailable},
		{"bad", false, rutter.CodeInvalid},
		{"none", false, rutter.CodeInvalid},
	} {
		q.Insecure, q.CA = tc.insecure, nil
		if tc.ca != "" {
			q.CA = &rutter.SecretRef{Name: "cas", Key: tc.ca}
		}
		if _, err := c.Repositories(t.Context(), q); rutter.CodeOf(err) != tc.want || err != nil && !strings.Contains(err.Error(), "caRef") {
			t.Errorf("ca %q insecure %v: %v", tc.ca, tc.insecure, err)
		}
	}
}

func TestLimits(t *testing.T) {
	u := providers()[0]
	s := serve(t, u.protocol)
	opts := testOptions(u)
	opts.MaxBody = 1000
	if _, err := New(opts).Repositories(t.Context(), u.ask(s)); rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "1000 bytes") {
		t.Errorf("size: %v", err)
	}
	opts = testOptions(u)
	opts.MaxPages = 2
	if _, err := New(opts).PullRequests(t.Context(), u.pullQuery(s)); rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "2 pages") {
		t.Errorf("pages: %v", err)
	}
	opts = testOptions(u)
	opts.Timeout = 50 * time.Millisecond
	stop := make(chan struct{})
	s.change(func(r *http.Request, _ *recorder) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	defer close(stop)
	if _, err := New(opts).Repositories(t.Context(), u.ask(s)); rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "in time") {
		t.Errorf("time: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(opts).Repositories(ctx, u.ask(s)); rutter.CodeOf(err) != rutter.CodeUnavailable {
		t.Errorf("cancelled: %v", err)
	}
}

func TestNoServer(t *testing.T) {
	for _, u := range providers() {
		s := serve(t, u.protocol)
		s.Close()
		_, err := New(testOptions(u)).Repositories(t.Context(), u.ask(s))
		if rutter.CodeOf(err) != rutter.CodeUnavailable || strings.Contains(err.Error(), "?") {
			t.Errorf("%s: %v", u.name, err)
		}
	}
}

func TestDefaultAddresses(t *testing.T) {
	for _, c := range []struct{ provider, api, want string }{
		{rutter.ForgeGitHub, "", "https://api.github.com"},
		{rutter.ForgeGitHub, "https://git.example.com/", "https://git.example.com/api/v3"},
		{rutter.ForgeGitHub, "https://git.example.com/api/v3/", "https://git.example.com/api/v3"},
		{rutter.ForgeGitHub, "https://api.acme.ghe.com", "https://api.acme.ghe.com"},
		{rutter.ForgeGitLab, "", "https://gitlab.com/api/v4"},
		{rutter.ForgeGitLab, "https://git.example.com/gitlab/", "https://git.example.com/gitlab/api/v4"},
		{rutter.ForgeGitea, "https://git.example.com/api/v1", "https://git.example.com/api/v1"},
		{rutter.ForgeBitbucketServer, "https://git.example.com", "https://git.example.com/rest/api/1.0"},
		{rutter.ForgeBitbucketServer, "https://git.example.com/ctx/rest/", "https://git.example.com/ctx/rest/api/1.0"},
		{rutter.ForgeBitbucketCloud, "", "https://api.bitbucket.org/2.0"},
		{rutter.ForgeAzureDevOps, "", "https://dev.azure.com"},
		{rutter.ForgeCodeCommit, "", "https://codecommit.eu-central-1.amazonaws.com"},
	} {
		p, err := providerOf(c.provider)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.api(rutter.ForgeQuery{Provider: c.provider, API: c.api, Owner: "acme", Project: "p", Region: "eu-central-1"})
		if err != nil || got != c.want {
			t.Errorf("%s %q: %q, %v; want %q", c.provider, c.api, got, err, c.want)
		}
	}
}
