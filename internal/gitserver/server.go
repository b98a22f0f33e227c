// Package gitserver serves bare repositories over smart HTTP on loopback, by
// git http-backend, for the demo and for tests. ADAPTER ring. It is no server
// for a network: it has no users unless it is given one.
package gitserver

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
)

// Options configure a Server.
type Options struct {
	// Dir holds the bare repositories; a request's path is relative to it.
	Dir string
	// Addr is host:port on loopback; port 0 picks a free one.
	Addr string
	// Username and Password, when set, are asked of every request.
	Username, Password string
	Logger             *slog.Logger
	// OnPush is called after a push was taken, with the repository's path
	// relative to Dir.
	OnPush func(repo string)
}

// Server is a running server.
type Server struct {
	opts     Options
	listener net.Listener
	http     *http.Server
}

// Start serves until Close.
func Start(ctx context.Context, opts Options) (*Server, error) {
	backend, err := findBackend(ctx)
	if err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Dir, err = filepath.Abs(opts.Dir); err != nil {
		return nil, fmt.Errorf("find the folder of repositories: %w", err)
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of repositories: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", opts.Addr, err)
	}
	if !l.Addr().(*net.TCPAddr).IP.IsLoopback() { //nolint:forcetypeassert // it is a TCP listener
		l.Close()
		return nil, rutter.Errorf(rutter.CodeInvalid, "the Git server listens on loopback only, not on %s", opts.Addr)
	}
	s := &Server{opts: opts, listener: l}
	s.http = &http.Server{Handler: s.handler(backend), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := s.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			opts.Logger.Error("the Git server has ended", "err", err)
		}
	}()
	return s, nil
}

// URL is the base under which repositories are served.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Close ends the server.
func (s *Server) Close() { s.http.Close() }

// findBackend finds git http-backend.
func findBackend(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return "", rutter.Errorf(rutter.CodeNotFound, "git is not installed (Debian: apt-get install git): %w", err)
	}
	path := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(path); err != nil {
		return "", rutter.Errorf(rutter.CodeNotFound, "git http-backend is not installed (Debian: apt-get install git): %w", err)
	}
	return path, nil
}

func (s *Server) handler(backend string) http.Handler {
	h := &cgi.Handler{Path: backend, Dir: s.opts.Dir, Env: []string{
		"GIT_PROJECT_ROOT=" + s.opts.Dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=local", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=true", "GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*",
	}, InheritEnv: []string{"PATH"}, Stderr: discard{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.permitted(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		if v := r.Header.Get("Git-Protocol"); v != "" { // how a client asks for protocol version 2
			scoped := *h
			scoped.Env = append(append([]string(nil), h.Env...), "GIT_PROTOCOL="+v)
			scoped.ServeHTTP(w, r)
		} else {
			h.ServeHTTP(w, r)
		}
		if repo, ok := strings.CutSuffix(r.URL.Path, "/git-receive-pack"); ok && r.Method == http.MethodPost && s.opts.OnPush != nil {
			s.opts.OnPush(strings.TrimPrefix(repo, "/"))
		}
	})
}

func (s *Server) permitted(r *http.Request) bool {
	if s.opts.Password == "" {
		return true
	}
	user, pass, ok := r.BasicAuth()
	return ok && subtle.ConstantTimeCompare([]byte(user), []byte(s.opts.Username)) == 1 &&
		subtle.ConstantTimeCompare([]byte(pass), []byte(s.opts.Password)) == 1
}

// discard swallows what the backend says to its log.
type discard struct{}

// Write implements io.Writer.
func (discard) Write(p []byte) (int, error) { return len(p), nil }
