package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/testenv"
)

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestRemove: whatever ran for a member ends with it.
func TestRemove(t *testing.T) {
	f := newFaulty(t)
	before := runtime.NumGoroutine()
	r, m := f.member(t, newSink(), rutter.ClusterInfo{})
	for _, gvk := range []rutter.GVK{configMap, widget, node, {Group: "no", Version: "v1", Kind: "No"}} {
		m.Watch(gvk)
	}
	f.on("GET /api/v1/namespaces/a/configmaps/hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ended := make(chan error, 1)
	go func() { _, err := m.Get(t.Context(), configMap, "a", "hangs"); ended <- err }()
	testenv.Eventually(t, 5*time.Second, func() error {
		if !m.Synced(configMap) || f.count("watch") < 3 || f.count("GET /api/v1/namespaces") == 0 {
			return fmt.Errorf("not at work yet")
		}
		return nil
	})
	r.Remove(f.URL + "/")
	if err := <-ended; rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "no longer declared") {
		t.Errorf("a call in flight: %v", err)
	}
	if _, err := r.Lookup(rutter.Target{Server: f.URL}); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Errorf("still there: %v", err)
	}
	m.Watch(configMap)
	f.CloseClientConnections()
	testenv.Eventually(t, 5*time.Second, func() error {
		if now := runtime.NumGoroutine(); now > before {
			buf := make([]byte, 1<<16)
			return fmt.Errorf("%d goroutines before, %d after:\n%s", before, now, buf[:runtime.Stack(buf, true)])
		}
		return nil
	})
}

// TestReplace: what is declared anew goes on with what was watched, in a later
// epoch; what only got other labels is not disturbed.
func TestReplace(t *testing.T) {
	f, s := newFaulty(t), newSink()
	f.on("list "+collection, listOf("1", "", object("one", "1"), object("two", "1")))
	r, m := f.member(t, s, rutter.ClusterInfo{})
	m.Watch(configMap)
	testenv.Eventually(t, 5*time.Second, s.holds("one", "two"))
	cred := rutter.ClusterCredential{BearerToken: "t", TLS: rutter.ClusterTLS{CAData: f.ca()}}
	labelled := rutter.ClusterInfo{Name: "other", Server: f.URL, Labels: map[string]string{"env": "prod"}}
	if err := r.Set(labelled, cred); err != nil {
		t.Fatal(err)
	}
	if r.at(f.URL).member != m || m.Info().Labels["env"] != "prod" || r.List()[0].Name != "other" {
		t.Error("labels alone must not begin a new connection, and must be known")
	}
	f.on("list "+collection, listOf("2", "", object("two", "1")))
	cred.BearerToken = "new"
	if err := r.Set(labelled, cred); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 5*time.Second, s.holds("two"))
	if f.login() != "Bearer new" {
		t.Errorf("the old login is used: %q", f.login())
	}
	if err := r.Set(labelled, rutter.ClusterCredential{TLS: rutter.ClusterTLS{CAData: []byte("rubbish")}}); rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Errorf("a CA that is none: %v", err)
	}
	r.SetBroken(labelled, rutter.Errorf(rutter.CodeInvalid, "key config: rubbish"))
	if _, err := r.Lookup(rutter.Target{Server: f.URL}); err == nil || !strings.Contains(err.Error(), "rubbish") {
		t.Errorf("broken: %v", err)
	}
	if st, ok := r.Status(f.URL); !ok || st.Reachable || st.Err == nil {
		t.Errorf("status of what is broken: %+v", st)
	}
}

// TestOutageOutlivesReplacement: a member that was away counts as away until it
// answers, also when it is declared anew, and not once it is removed.
func TestOutageOutlivesReplacement(t *testing.T) {
	f, s := newFaulty(t), newSink()
	r := New(Options{Logger: slog.New(slog.DiscardHandler), Sink: s, timing: hasty})
	t.Cleanup(r.Close)
	info := rutter.ClusterInfo{Name: "faulty", Server: f.URL}
	if err := r.Set(info, rutter.ClusterCredential{}); err != nil { // does not know the CA
		t.Fatal(err)
	}
	_, err := r.at(f.URL).member.Get(t.Context(), configMap, "a", "x")
	if rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown CA: %v", err)
	}
	testenv.Eventually(t, 5*time.Second, s.check(func() bool { return s.down != nil }))
	if err := r.Set(info, rutter.ClusterCredential{TLS: rutter.ClusterTLS{CAData: f.ca()}}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 5*time.Second, s.check(func() bool { return s.down == nil }))
	if err := r.Set(info, rutter.ClusterCredential{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 5*time.Second, s.check(func() bool { return s.down != nil }))
	r.Remove(f.URL)
	testenv.Eventually(t, 5*time.Second, s.check(func() bool { return s.down == nil }))
}

// TestLocal: a Secret overrides the control plane's own cluster, with its login
// when it names none, and taking it back restores it.
func TestLocal(t *testing.T) {
	f := newFaulty(t)
	r := New(Options{Logger: slog.New(slog.DiscardHandler), Sink: newSink(), timing: hasty})
	t.Cleanup(r.Close)
	own := &rest.Config{Host: f.URL, BearerToken: "own", TLSClientConfig: rest.TLSClientConfig{CAData: f.ca()}}
	if err := r.SetLocal(own); err != nil {
		t.Fatal(err)
	}
	who := func(name string) string {
		t.Helper()
		c, err := r.Lookup(rutter.Target{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if c.Info().Server != LocalServer {
			t.Errorf("server %s", c.Info().Server)
		}
		_, _ = c.Mapping(t.Context(), configMap)
		return f.login()
	}
	if got := who(LocalName); got != "Bearer own" {
		t.Errorf("its own login: %q", got)
	}
	if err := r.Set(rutter.ClusterInfo{Name: "hub", Server: LocalServer + "/", Labels: map[string]string{"a": "b"}}, rutter.ClusterCredential{}); err != nil {
		t.Fatal(err)
	}
	if got := who("hub"); got != "Bearer own" {
		t.Errorf("a Secret without a login: %q", got)
	}
	if err := r.SetLocal(own); err != nil || r.at(LocalServer).info.Name != "hub" {
		t.Errorf("the Secret goes before: %v", err)
	}
	r.Remove(LocalServer)
	if got := who(LocalName); got != "Bearer own" {
		t.Errorf("taken back: %q", got)
	}
}

// TestLogins: every form of a cluster's credentials reaches the server.
func TestLogins(t *testing.T) {
	f := newFaulty(t)
	f.TLS.ClientAuth = tls.RequestClientCert
	var peer atomic.Value
	f.on("GET /version", func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			peer.Store(r.TLS.PeerCertificates[0].Subject.Organization[0])
		}
		say(http.StatusOK, `{"gitVersion":"v1.30.0"}`)(w, r)
	})
	cert := f.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	var proxied atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied.Add(1)
		tunnel(w, r)
	}))
	t.Cleanup(proxy.Close)
	ca := rutter.ClusterTLS{CAData: f.ca()}
	for name, tc := range map[string]struct {
		cred  rutter.ClusterCredential
		login string
	}{
		"token":       {rutter.ClusterCredential{BearerToken: "abc", TLS: ca}, "Bearer abc"},
		"basic":       {rutter.ClusterCredential{Username: "u", Password: "p", TLS: ca}, "Basic " + base64.StdEncoding.EncodeToString([]byte("u:p"))},
		"insecure":    {rutter.ClusterCredential{TLS: rutter.ClusterTLS{Insecure: true}}, ""},
		"server name": {rutter.ClusterCredential{TLS: rutter.ClusterTLS{CAData: f.ca(), ServerName: "example.com"}}, ""},
		"certificate": {rutter.ClusterCredential{TLS: rutter.ClusterTLS{CAData: f.ca(), CertData: pemOf(cert.Certificate[0]), KeyData: keyPEM}}, ""},
		"proxy":       {rutter.ClusterCredential{BearerToken: "abc", TLS: ca, ProxyURL: proxy.URL}, "Bearer abc"},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Options{Logger: slog.New(slog.DiscardHandler), Sink: newSink(), UserAgent: "rutter/test"})
			t.Cleanup(r.Close)
			if err := r.Set(rutter.ClusterInfo{Name: name, Server: f.URL}, tc.cred); err != nil {
				t.Fatal(err)
			}
			if version, _, err := r.at(f.URL).member.Version(t.Context()); err != nil || version != "v1.30.0" {
				t.Fatalf("%q, %v", version, err)
			}
			if got := f.login(); got != tc.login {
				t.Errorf("login %q, want %q", got, tc.login)
			}
		})
	}
	if peer.Load() == nil {
		t.Error("the client's certificate was not shown")
	}
	if proxied.Load() == 0 {
		t.Error("the proxy was not used")
	}
}

// tunnel is what a proxy does for CONNECT.
func tunnel(w http.ResponseWriter, r *http.Request) {
	up, err := net.Dial("tcp", r.Host)
	if err != nil || r.Method != http.MethodConnect {
		http.Error(w, "no", http.StatusBadGateway)
		return
	}
	// The answer goes out after the connection is ours: what the client sends at
	// once would otherwise be read by the server.
	down, read, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(down, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() { defer up.Close(); _, _ = io.Copy(up, read) }()
	defer down.Close()
	_, _ = io.Copy(down, up)
}

// TestExec (threat V8): a credential plugin runs only where an operator allowed
// its command, and what is in its arguments stays data.
func TestExec(t *testing.T) {
	f := newFaulty(t)
	dir := t.TempDir()
	plugin, marker := filepath.Join(dir, "plugin"), filepath.Join(dir, "ran")
	script := "#!/bin/sh\nprintf '%s|' \"$@\" > " + marker + "\n" +
		`echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-plugin"}}'` + "\n"
	if err := os.WriteFile(plugin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{"--flag; touch " + filepath.Join(dir, "injected"), "$(id)", "-x"}
	cred := rutter.ClusterCredential{TLS: rutter.ClusterTLS{CAData: f.ca()}, Exec: &rutter.ExecProvider{Command: plugin, Args: args, APIVersion: "client.authentication.k8s.io/v1"}}
	info := rutter.ClusterInfo{Name: "exec", Server: f.URL}
	for name, allow := range map[string]func(string) bool{"nothing is allowed": nil, "another is allowed": func(c string) bool { return c == "plugin" }} {
		r := New(Options{Logger: slog.New(slog.DiscardHandler), Sink: newSink(), AllowExec: allow})
		if err := r.Set(info, cred); rutter.CodeOf(err) != rutter.CodeForbidden {
			t.Errorf("%s: %v", name, err)
		}
		r.Close()
	}
	if _, err := os.Stat(marker); err == nil {
		t.Fatal("the plugin ran although nobody allowed it")
	}
	r := New(Options{Logger: slog.New(slog.DiscardHandler), Sink: newSink(), AllowExec: func(c string) bool { return c == plugin }})
	t.Cleanup(r.Close)
	if err := r.Set(info, cred); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.at(f.URL).member.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.login(); got != "Bearer from-plugin" {
		t.Errorf("login %q", got)
	}
	if got, _ := os.ReadFile(marker); string(got) != strings.Join(args, "|")+"|" {
		t.Errorf("arguments %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "injected")); err == nil {
		t.Error("an argument was run")
	}
}

// TestBadDeclarations: what cannot be used is refused by its field, and no
// error shows a secret.
func TestBadDeclarations(t *testing.T) {
	r := New(Options{Logger: slog.New(slog.DiscardHandler), Sink: newSink()})
	t.Cleanup(r.Close)
	good := "https://127.0.0.1:1"
	for name, tc := range map[string]struct {
		server string
		cred   rutter.ClusterCredential
		field  string
	}{
		"no scheme":          {"10.0.0.1:6443", rutter.ClusterCredential{}, "server"},
		"a login in the URL": {"https://u:hunter2@10.0.0.1", rutter.ClusterCredential{}, "server"},
		"a file":             {"file:///etc/passwd", rutter.ClusterCredential{}, "server"},
		"proxy":              {good, rutter.ClusterCredential{ProxyURL: "hunter2"}, "config.proxyUrl"},
		"proxy scheme":       {good, rutter.ClusterCredential{ProxyURL: "ftp://u:hunter2@x"}, "config.proxyUrl"},
		"key without cert":   {good, rutter.ClusterCredential{TLS: rutter.ClusterTLS{CertData: []byte("hunter2"), KeyData: []byte("hunter2")}}, "config.tlsClientConfig"},
		"CA and insecure":    {good, rutter.ClusterCredential{TLS: rutter.ClusterTLS{Insecure: true, CAData: []byte("hunter2")}}, "config.tlsClientConfig"},
		"two logins":         {good, rutter.ClusterCredential{Username: "u", Password: "hunter2", BearerToken: "hunter2"}, "credentials"},
	} {
		err := r.Set(rutter.ClusterInfo{Name: "bad", Server: tc.server}, tc.cred)
		if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), tc.field) || !strings.Contains(err.Error(), "cluster bad") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: a secret is shown: %v", name, err)
		}
	}
}
