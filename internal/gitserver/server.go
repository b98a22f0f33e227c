package gitserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
)

// Options configure a Server. Only Dir is required.
type Options struct {
	// Dir holds the bare repositories; fleet.git in it is served as /fleet.git.
	Dir string
	// Addr is a loopback address; 127.0.0.1 and a free port by default.
	Addr string
	// Users are names and passwords of HTTP basic authentication; nil lets
	// everybody on this machine in.
	Users map[string]string
	// ReadOnly refuses pushes.
	ReadOnly bool
	Logger   *slog.Logger
	// OnPush is called after a push has changed a ref, with the repository's
	// name as it stands in the URL, such as "fleet.git". The pusher does not wait for it.
	OnPush func(repo string)
}

// Server is a running server.
type Server struct {
	opts    Options
	backend string
	http    *http.Server
	addr    string
	done    chan struct{}
}

// Start serves until ctx ends or Close is called.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if host, _, err := net.SplitHostPort(opts.Addr); err != nil || !loopback(host) {
		return nil, rutter.Errorf(rutter.CodeInvalid, "git server: address %q is not on loopback; use 127.0.0.1:PORT", opts.Addr)
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "git server: folder %q: %w", opts.Dir, err)
	}
	opts.Dir = dir
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // what is in it is served to everybody on this machine
		return nil, rutter.Errorf(rutter.CodeUnavailable, "git server: %w", err)
	}
	backend, err := findBackend(ctx)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", opts.Addr)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "git server: %w", err)
	}
	s := &Server{opts: opts, backend: backend, addr: listener.Addr().String(), done: make(chan struct{})}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(opts.Logger.Handler(), slog.LevelDebug)}
	go s.serve(listener)
	context.AfterFunc(ctx, s.Close)
	return s, nil
}

func (s *Server) serve(listener net.Listener) {
	defer close(s.done)
	if err := s.http.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		s.opts.Logger.Error("Git server has stopped", "err", err)
	}
}

// Addr is the address that the server listens on.
func (s *Server) Addr() string { return s.addr }

// URL is the address under which the repositories are served: fleet.git is at
// URL() + "/fleet.git".
func (s *Server) URL() string { return "http://" + s.addr }

// Close ends the server and the connections to it.
func (s *Server) Close() {
	if err := s.http.Close(); err != nil {
		s.opts.Logger.Warn("Git server could not be closed cleanly", "err", err)
	}
	<-s.done
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// findBackend looks for http-backend where this git keeps its programs.
func findBackend(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return "", rutter.Errorf(rutter.CodeUnavailable, "the git program was not found: install the Debian package git: %w", err)
	}
	path := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return "", rutter.Errorf(rutter.CodeUnavailable, "%s is missing: install the Debian package git (on Alpine: git-daemon)", path)
	}
	return path, nil
}
