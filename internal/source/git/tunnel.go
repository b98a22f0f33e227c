package git

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/net/proxy"

	"github.com/rutterhq/rutter"
	guard "github.com/rutterhq/rutter/internal/source/remote"
)

// tunnel is a connection through a proxy to an SSH server, for ssh to use as
// its ProxyCommand. ssh can be given no connection, and a port of this machine
// would be open to everybody on it: so two named pipes in the private folder
// of the login lead to it, and the command is the shell's cat.
type tunnel struct {
	conn     net.Conn
	up, down *os.File
	dir      string
}

// command is what ssh runs. The cat that is left when ssh ends is no reason to
// wait for it: it has no hold on ssh's messages.
func (t *tunnel) command() string {
	return "cat " + shellQuote(filepath.Join(t.dir, "down")) + " 2>/dev/null & exec cat >" + shellQuote(filepath.Join(t.dir, "up"))
}

// openTunnel connects to host:port through a proxy and lays the pipes in dir.
func openTunnel(ctx context.Context, by *url.URL, target, dir string) (*tunnel, error) {
	conn, err := dialThrough(ctx, by, target)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "by the proxy %s: %w", by.Host, err)
	}
	t := &tunnel{conn: conn, dir: dir}
	for name, file := range map[string]**os.File{"up": &t.up, "down": &t.down} {
		path := filepath.Join(dir, name)
		err := syscall.Mkfifo(path, 0o600)
		if err == nil {
			// Opened for both ways, it does not wait for the other end.
			*file, err = os.OpenFile(path, os.O_RDWR, 0)
		}
		if err != nil {
			t.close()
			return nil, rutter.Errorf(rutter.CodeUnavailable, "preparing a Git login: %w", err)
		}
	}
	go func() {
		_, _ = io.Copy(t.down, conn)
		t.down.Close() // ssh sees the end of the connection
	}()
	go func() { _, _ = io.Copy(conn, t.up) }()
	return t, nil
}

// close ends both ways; the login removes the folder.
func (t *tunnel) close() {
	t.conn.Close()
	for _, f := range []*os.File{t.up, t.down} {
		if f != nil {
			f.Close()
		}
	}
}

// dialThrough connects to target by a proxy.
func dialThrough(ctx context.Context, by *url.URL, target string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	dialer := &net.Dialer{Control: guard.Guard}
	if by.Scheme == "socks5" || by.Scheme == "socks5h" {
		var auth *proxy.Auth
		if by.User != nil {
			password, _ := by.User.Password()
			auth = &proxy.Auth{User: by.User.Username(), Password: password}
		}
		d, err := proxy.SOCKS5("tcp", withPort(by, "1080"), auth, dialer)
		if err != nil {
			return nil, err //nolint:wrapcheck // openTunnel names the proxy
		}
		return d.(proxy.ContextDialer).DialContext(ctx, "tcp", target) //nolint:forcetypeassert,wrapcheck // SOCKS5 returns one; openTunnel names the proxy
	}
	port := "80"
	if by.Scheme == "https" {
		port = "443"
	}
	conn, err := dialer.DialContext(ctx, "tcp", withPort(by, port))
	if err != nil {
		return nil, err //nolint:wrapcheck // openTunnel names the proxy
	}
	if by.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: by.Hostname(), MinVersion: tls.VersionTLS12})
	}
	out, err := connect(ctx, conn, by, target)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return out, nil
}

// connect asks an HTTP proxy for a connection.
func connect(ctx context.Context, conn net.Conn, by *url.URL, target string) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
	if by.User != nil {
		password, _ := by.User.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(by.User.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return nil, err //nolint:wrapcheck // openTunnel names the proxy
	}
	// The SSH server may have spoken already: what was read ahead is kept.
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, req) //nolint:bodyclose // what follows is the connection
	if err != nil {
		return nil, err //nolint:wrapcheck // openTunnel names the proxy
	}
	if resp.StatusCode != http.StatusOK {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "it refused the connection to %s: %d", target, resp.StatusCode)
	}
	return ahead{conn, in}, nil
}

// ahead is a connection of which some was read already.
type ahead struct {
	net.Conn

	in *bufio.Reader
}

// Read implements net.Conn.
func (a ahead) Read(p []byte) (int, error) { return a.in.Read(p) } //nolint:wrapcheck // a reader's io.EOF must stay

func withPort(u *url.URL, port string) string {
	if u.Port() != "" {
		port = u.Port()
	}
	return net.JoinHostPort(u.Hostname(), port)
}
