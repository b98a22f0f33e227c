package remote

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

// clientPair is a certificate and key as a Secret holds them.
func clientPair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// TestClientCertificate shows a certificate to nobody but whom it is meant for:
// not to another path of the host, and not where the host redirects to.
func TestClientCertificate(t *testing.T) {
	var seen []string
	serve := func() *httptest.Server {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, fmt.Sprintf("%s %d", r.URL.Path, len(r.TLS.PeerCertificates)))
			if to := r.URL.Query().Get("to"); to != "" {
				http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			}
		}))
		s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	home, away := serve(), serve()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: home.Certificate().Raw}))
	cert, key := clientPair(t)
	k := NewKeyring().With([]rutter.RepoCredential{{URL: home.URL + "/team", TLSClientCert: cert, TLSClientKey: key}}, rutter.RepoTrust{CAs: map[string]string{"127.0.0.1": ca}})
	defer k.Close()
	tests := []struct{ url, want string }{
		{home.URL + "/team/x", "/team/x 1"},
		{home.URL + "/team/x?to=" + away.URL + "/y", "/team/x 1,/y 0"},
		{home.URL + "/team/x?to=/else", "/team/x 1,/else 0"},
		{home.URL + "/teams", "/teams 0"},
	}
	for _, tc := range tests {
		seen = nil
		a, err := ParseWeb(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		access := k.Choose(a, "")
		resp, err := k.Do(t.Context(), access, Request{URL: a.URL(), Bounds: []Bound{access.Bound()}})
		if err != nil {
			t.Errorf("%s: %v", tc.url, err)
			continue
		}
		_ = resp.Body.Close()
		if got := strings.Join(seen, ","); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.url, got, tc.want)
		}
	}
}

// TestInsecureIsForItsHost checks every other server that a request leads to.
func TestInsecureIsForItsHost(t *testing.T) {
	away := httptest.NewTLSServer(http.NotFoundHandler())
	defer away.Close()
	home := httptest.NewTLSServer(http.RedirectHandler(away.URL+"/x", http.StatusFound))
	defer home.Close()
	k := NewKeyring().With([]rutter.RepoCredential{{URL: home.URL, Insecure: true}}, rutter.RepoTrust{})
	a, _ := ParseWeb(home.URL)
	resp, err := k.Do(t.Context(), k.Choose(a, ""), Request{URL: a.URL()})
	if err == nil {
		_ = resp.Body.Close()
	}
	if rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "not trusted") {
		t.Errorf("got %v", err)
	}
}

// TestDowngrade refuses to go on without TLS where it began with it.
func TestDowngrade(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	home := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer home.Close()
	k := NewKeyring().With([]rutter.RepoCredential{{URL: home.URL, Insecure: true}}, rutter.RepoTrust{})
	a, _ := ParseWeb(home.URL)
	resp, err := k.Do(t.Context(), k.Choose(a, ""), Request{URL: a.URL()})
	if err == nil {
		_ = resp.Body.Close()
	}
	if rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), "from https to http") {
		t.Errorf("got %v", err)
	}
}

func TestBody(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "12345") }))
	defer server.Close()
	k := NewKeyring()
	a, _ := ParseWeb(server.URL)
	for most, want := range map[int64]string{4: "larger than 4 bytes", 5: "", 6: ""} {
		resp, err := k.Do(t.Context(), k.Choose(a, ""), Request{URL: a.URL()})
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(Body("it", Access{}, resp, most))
		_ = resp.Body.Close()
		if want == "" && (err != nil || string(data) != "12345") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("up to %d: %q, %v", most, data, err)
		}
	}
}
