package pki_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"github.com/rutterhq/rutter/localcluster/internal/pki"
)

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func leaf(t *testing.T, cert, key string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatalf("certificate and key do not belong together: %v", err)
	}
	return pair.Leaf
}

func TestEnsure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	f, err := pki.Ensure(dir)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(read(t, f.CA)) {
		t.Fatal("the CA is no certificate")
	}
	server, admin := leaf(t, f.ServerCert, f.ServerKey), leaf(t, f.AdminCert, f.AdminKey)
	for _, name := range []string{"127.0.0.1", "kubernetes.default.svc"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("the server as %s: %v", name, err)
		}
	}
	if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: "example.com"}); err == nil {
		t.Error("the server passes for a name that is not its own")
	}
	client := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := admin.Verify(client); err != nil || len(admin.Subject.Organization) != 1 || admin.Subject.Organization[0] != "system:masters" {
		t.Errorf("the administrator: %v, %v", admin.Subject, err)
	}
	if _, err := server.Verify(client); err == nil {
		t.Error("the server's certificate passes for a client's")
	}
	for _, key := range []string{f.ServerKey, f.AdminKey, f.ServiceAccountKey} {
		if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", key, info.Mode(), err)
		}
	}
}

// TestEnsureAgain: what was handed out stays valid; what was left half made by a
// crash was never handed out and is made anew, all of it.
func TestEnsureAgain(t *testing.T) {
	dir := t.TempDir()
	f, err := pki.Ensure(dir)
	if err != nil {
		t.Fatal(err)
	}
	before := read(t, f.AdminCert)
	if _, err := pki.Ensure(dir); err != nil || !bytes.Equal(before, read(t, f.AdminCert)) {
		t.Errorf("a second start made other certificates: %v", err)
	}
	for _, file := range []string{filepath.Join(dir, "complete"), f.AdminKey} {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if f, err = pki.Ensure(dir); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(read(t, f.CA))
	if _, err := leaf(t, f.ServerCert, f.ServerKey).Verify(x509.VerifyOptions{Roots: roots}); err != nil {
		t.Errorf("the server's certificate is of another CA: %v", err)
	}
	leaf(t, f.AdminCert, f.AdminKey)
}
