package git

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/rutterhq/rutter"
)

// proxyServer connects clients to where they want to go, by HTTP CONNECT or
// SOCKS5, and notes where that was. It wants ann's password.
type proxyServer struct {
	http, socks string

	mu      sync.Mutex
	targets []string
}

const proxyPassword = "pr0xy-s3cr3t"

func serveProxy(t *testing.T) *proxyServer {
	t.Helper()
	p := &proxyServer{}
	p.http = p.listen(t, p.connect)
	p.socks = p.listen(t, p.socks5)
	return p
}

func (p *proxyServer) listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l.Addr().String()
}

func (p *proxyServer) connect(conn net.Conn) {
	in := bufio.NewReader(conn)
	req, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", req.Header.Get("Proxy-Authorization"))
	if user, password, _ := req.BasicAuth(); req.Method != http.MethodConnect || user != "ann" || password != proxyPassword {
		_, _ = io.WriteString(conn, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		return
	}
	p.join(conn, in, req.Host, "HTTP/1.1 200 OK\r\n\r\n")
}

func (p *proxyServer) socks5(conn net.Conn) {
	b := make([]byte, 512)
	read := func(n int) []byte { _, _ = io.ReadFull(conn, b[:n]); return b[:n] }
	methods := int(read(2)[1])
	read(methods)
	_, _ = conn.Write([]byte{5, 2})
	user := string(read(int(read(2)[1])))
	password := string(read(int(read(1)[0])))
	if user != "ann" || password != proxyPassword {
		_, _ = conn.Write([]byte{1, 1})
		return
	}
	_, _ = conn.Write([]byte{1, 0})
	var host string
	switch head := read(4); head[3] {
	case 1:
		host = net.IP(read(4)).String()
	case 3:
		host = string(read(int(read(1)[0])))
	}
	port := binary.BigEndian.Uint16(read(2))
	p.join(conn, conn, net.JoinHostPort(host, big.NewInt(int64(port)).String()), string([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0}))
}

func (p *proxyServer) join(conn net.Conn, in io.Reader, target, answer string) {
	p.mu.Lock()
	p.targets = append(p.targets, target)
	p.mu.Unlock()
	out, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer out.Close()
	_, _ = io.WriteString(conn, answer)
	go func() { _, _ = io.Copy(out, in); out.(*net.TCPConn).CloseWrite() }()
	_, _ = io.Copy(conn, out)
}

func (p *proxyServer) seen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := strings.Join(p.targets, " ")
	p.targets = nil
	return out
}

// TestProxies fetches by real proxies over HTTPS and SSH. A proxy's password
// goes nowhere else.
func TestProxies(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	web := serveHTTP(t, o, true, nil)
	shell := serveSSH(t, filepath.Dir(o.bare))
	p := serveProxy(t)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))
	trust := rutter.RepoTrust{CAs: map[string]string{"127.0.0.1": ca}, KnownHosts: knownhosts.Line([]string{knownhosts.Normalize(shell.addr)}, shell.host.PublicKey())}
	sshURL := "ssh://git@" + shell.addr + "/fleet.git"
	with := func(scheme, at, password string) string { return scheme + "://ann:" + password + "@" + at }
	tests := []struct {
		name, url, proxy string
		via              string // the address that the proxy is asked for
		code             rutter.Code
	}{
		{"https by CONNECT", web.URL + "/fleet.git", with("http", p.http, proxyPassword), web.Listener.Addr().String(), ""},
		{"https by SOCKS5", web.URL + "/fleet.git", with("socks5h", p.socks, proxyPassword), web.Listener.Addr().String(), ""},
		{"ssh by CONNECT", sshURL, with("http", p.http, proxyPassword), shell.addr, ""},
		{"ssh by SOCKS5", sshURL, with("socks5", p.socks, proxyPassword), shell.addr, ""},
		{"https, refused by CONNECT", web.URL + "/fleet.git", with("http", p.http, proxyPassword+"x"), "", rutter.CodeUnavailable},
		{"ssh, refused by CONNECT", sshURL, with("http", p.http, proxyPassword+"x"), "", rutter.CodeUnavailable},
		{"ssh, refused by SOCKS5", sshURL, with("socks5", p.socks, proxyPassword+"x"), "", rutter.CodeUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			logger, log := logged()
			// A folder whose name has to be quoted, twice.
			f := newFetcher(t, Options{Dir: filepath.Join(t.TempDir(), "it's 100%h a $HOME"), Logger: logger})
			f.SetCredentials([]rutter.RepoCredential{{URL: tt.url, SSHPrivateKey: shell.key, Proxy: tt.proxy}}, trust)
			began := time.Now()
			s, err := f.Snapshot(t.Context(), rutter.Repo{URL: tt.url, Revision: "main"}, rutter.ResolveOptions{})
			if rutter.CodeOf(err) != tt.code {
				t.Fatalf("%v; want code %q", err, tt.code)
			}
			if err == nil {
				wantFile(t, s, "f", "1")
			} else if strings.Contains(err.Error(), proxyPassword) {
				t.Errorf("the error tells the proxy's password: %v", err)
			}
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("it took %v: something was waited for in vain", took)
			}
			if got := p.seen(); tt.via != "" && !strings.HasPrefix(got, tt.via) || tt.via == "" && got != "" {
				t.Errorf("the proxy was asked for %q, want %q", got, tt.via)
			}
			if strings.Contains(log.String(), proxyPassword) {
				t.Errorf("the log tells the proxy's password: %s", log)
			}
			noSecretOnDisk(t, f.opts.Dir, proxyPassword)
		})
	}
}

func TestBypasses(t *testing.T) {
	tests := []struct {
		list, host, port string
		want             bool
	}{
		{"", "git.example.com", "", false},
		{"*", "git.example.com", "", true},
		{"example.com", "git.example.com", "", true},
		{"example.com", "example.com", "", true},
		{"example.com", "evilexample.com", "", false},
		{".example.com, other", "git.example.com", "", true},
		{"*.example.com", "git.example.com", "", true},
		{"a,git.example.com:8443", "git.example.com", "8443", true},
		{"git.example.com:8443", "git.example.com", "443", false},
		{"10.0.0.0/8", "10.1.2.3", "", true},
		{"10.0.0.0/8", "11.1.2.3", "", false},
		{"10.0.0.0/8", "ten.example.com", "", false},
		{"[::1]", "::1", "", true},
		{"GIT.example.com", "git.Example.com.", "", true},
	}
	for _, tt := range tests {
		if got := bypasses(tt.list, tt.host, tt.port); got != tt.want {
			t.Errorf("bypasses(%q, %s, %s) = %v", tt.list, tt.host, tt.port, got)
		}
	}
}

// authority signs certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	cert, _, key := a.issue(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.pem = cert
	block, _ := pem.Decode([]byte(cert))
	var err error
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		t.Fatal(err)
	}
	a.key = key
	return a
}

// issue returns a certificate and its key in PEM.
func (a *authority) issue(t *testing.T, c *x509.Certificate) (cert, key string, private *ecdsa.PrivateKey) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "rutter test"}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, private
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &private.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})), private
}

// serveMutualTLS serves o to those who show a certificate of the authority.
func serveMutualTLS(t *testing.T, o *origin, a *authority) *webServer {
	t.Helper()
	plain := serveHTTP(t, o, false, nil)
	cert, key, _ := a.issue(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	s := &webServer{Server: httptest.NewUnstartedServer(plain.Config.Handler)}
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots, MinVersion: tls.VersionTLS12}
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestClientCertificate(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	a := newAuthority(t)
	s := serveMutualTLS(t, o, a)
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	cert, key, _ := a.issue(t, &x509.Certificate{ExtKeyUsage: usage})
	strange, strangeKey, _ := newAuthority(t).issue(t, &x509.Certificate{ExtKeyUsage: usage})
	url := s.URL + "/team/fleet.git"
	tests := []struct {
		name  string
		cred  rutter.RepoCredential
		trust bool
		ok    bool
	}{
		{"certificate", rutter.RepoCredential{URL: url, TLSClientCert: cert, TLSClientKey: key}, true, true},
		{"of a template", rutter.RepoCredential{URL: s.URL + "/team", Template: true, TLSClientCert: cert, TLSClientKey: key}, true, true},
		{"none", rutter.RepoCredential{URL: url}, true, false},
		{"of another authority", rutter.RepoCredential{URL: url, TLSClientCert: strange, TLSClientKey: strangeKey}, true, false},
		{"for another repository", rutter.RepoCredential{URL: url + "x", TLSClientCert: cert, TLSClientKey: key}, true, false},
		{"to a server that is not trusted", rutter.RepoCredential{URL: url, TLSClientCert: cert, TLSClientKey: key}, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFetcher(t, Options{})
			trust := rutter.RepoTrust{}
			if tt.trust {
				trust.CAs = map[string]string{"127.0.0.1": a.pem}
			}
			f.SetCredentials([]rutter.RepoCredential{tt.cred}, trust)
			got, err := f.Snapshot(t.Context(), rutter.Repo{URL: url, Revision: "main"}, rutter.ResolveOptions{})
			if (err == nil) != tt.ok {
				t.Fatalf("%v; want success %v", err, tt.ok)
			}
			if err == nil {
				wantFile(t, got, "f", "1")
			}
			noSecretOnDisk(t, f.opts.Dir, "PRIVATE KEY")
		})
	}
}
