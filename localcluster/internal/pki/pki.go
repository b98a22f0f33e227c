// Package pki makes the certificates and keys of one local cluster: a CA, the
// API server's certificate, an administrator's client certificate and the key
// of service account tokens. They are written once and reused, so that a
// kubeconfig stays valid across restarts.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Files are the paths of what Ensure made.
type Files struct {
	CA, ServerCert, ServerKey, AdminCert, AdminKey, ServiceAccountKey string
}

const validity = 10 * 365 * 24 * time.Hour

// Ensure makes everything in dir that is not there yet.
func Ensure(dir string) (Files, error) {
	f := Files{
		CA: filepath.Join(dir, "ca.crt"), ServerCert: filepath.Join(dir, "apiserver.crt"), ServerKey: filepath.Join(dir, "apiserver.key"),
		AdminCert: filepath.Join(dir, "admin.crt"), AdminKey: filepath.Join(dir, "admin.key"), ServiceAccountKey: filepath.Join(dir, "sa.key"),
	}
	done := filepath.Join(dir, "complete")
	if _, err := os.Stat(done); err == nil {
		return f, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return f, fmt.Errorf("look for certificates in %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return f, fmt.Errorf("make the folder of certificates: %w", err)
	}
	if err := create(f); err != nil {
		return f, err
	}
	return f, write(done, nil)
}

func create(f Files) error {
	caKey, err := newKey("")
	if err != nil {
		return err
	}
	ca := template("rutter-localcluster")
	ca.IsCA, ca.BasicConstraintsValid = true, true
	ca.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	if ca, err = issue(f.CA, ca, ca, &caKey.PublicKey, caKey); err != nil {
		return err
	}
	server := template("kube-apiserver")
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
	if err := leaf(f.ServerCert, f.ServerKey, server, ca, caKey); err != nil {
		return err
	}
	admin := template("admin")
	admin.Subject.Organization = []string{"system:masters"}
	admin.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if err := leaf(f.AdminCert, f.AdminKey, admin, ca, caKey); err != nil {
		return err
	}
	_, err = newKey(f.ServiceAccountKey)
	return err
}

func leaf(certFile, keyFile string, t, ca *x509.Certificate, caKey *ecdsa.PrivateKey) error {
	key, err := newKey(keyFile)
	if err != nil {
		return err
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	_, err = issue(certFile, t, ca, &key.PublicKey, caKey)
	return err
}

func template(name string) *x509.Certificate {
	now := time.Now().Add(-time.Hour)
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: now, NotAfter: now.Add(validity)}
}

func newKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	if file == "" {
		return key, nil
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return key, write(file, &pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func issue(file string, t, parent *x509.Certificate, pub *ecdsa.PublicKey, signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	t.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, t, parent, pub, signer)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", t.Subject.CommonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read back the certificate of %s: %w", t.Subject.CommonName, err)
	}
	return cert, write(file, &pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func write(file string, block *pem.Block) error {
	var data []byte
	if block != nil {
		data = pem.EncodeToMemory(block)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
