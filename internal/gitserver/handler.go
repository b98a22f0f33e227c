package gitserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.local(r) {
		http.Error(w, "this server answers to loopback names only", http.StatusForbidden)
		return
	}
	if !s.allowed(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "a user name and password are needed", http.StatusUnauthorized)
		return
	}
	repo, verb := s.split(r.URL.Path)
	if repo == "" {
		http.Error(w, "repository not found", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPost || verb != "git-receive-pack" {
		s.run(w, r)
		return
	}
	dir := filepath.Join(s.opts.Dir, filepath.FromSlash(repo))
	before := refsOf(r.Context(), dir)
	s.run(w, r)
	// A push that was done counts even if the pusher has gone.
	after := refsOf(context.WithoutCancel(r.Context()), dir)
	if after != before {
		s.opts.Logger.Info("Git repository was pushed to", "repository", repo)
		if s.opts.OnPush != nil {
			go s.opts.OnPush(repo)
		}
	}
}

// local refuses names of other machines: a page in a browser could otherwise
// reach this server by a name of its own that points here.
func (s *Server) local(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return loopback(strings.Trim(host, "[]"))
}

func (s *Server) allowed(r *http.Request) bool {
	if s.opts.Users == nil {
		return true
	}
	user, password, ok := r.BasicAuth()
	want, known := s.opts.Users[user]
	a, b := sha256.Sum256([]byte(password)), sha256.Sum256([]byte(want))
	return ok && known && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// split finds the repository that a path begins with, and the last word of the
// path; "" when there is none.
func (s *Server) split(urlPath string) (repo, verb string) {
	clean := strings.TrimPrefix(path.Clean("/"+urlPath), "/")
	for dir := clean; dir != "." && dir != "/"; dir = path.Dir(dir) {
		if !filepath.IsLocal(dir) {
			return "", ""
		}
		if _, err := os.Stat(filepath.Join(s.opts.Dir, filepath.FromSlash(dir), "HEAD")); err == nil {
			return dir, path.Base(clean)
		}
	}
	return "", ""
}

// run hands a request to http-backend.
func (s *Server) run(w http.ResponseWriter, r *http.Request) {
	r, cleanup, err := withLength(r)
	if err != nil {
		http.Error(w, "the request could not be read", http.StatusBadRequest)
		return
	}
	defer cleanup()
	write := "true"
	if s.opts.ReadOnly {
		write = "false"
	}
	env := []string{
		"GIT_PROJECT_ROOT=" + s.opts.Dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_PROTOCOL=" + protocol(r),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=" + s.opts.Dir, "LC_ALL=C", "GIT_CONFIG_COUNT=4",
		"GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=" + write,
		"GIT_CONFIG_KEY_1=core.hooksPath", "GIT_CONFIG_VALUE_1=/dev/null",
		"GIT_CONFIG_KEY_2=uploadpack.allowFilter", "GIT_CONFIG_VALUE_2=true",
		"GIT_CONFIG_KEY_3=receive.autogc", "GIT_CONFIG_VALUE_3=false",
	}
	handler := &cgi.Handler{Path: s.backend, Dir: s.opts.Dir, Env: env, Logger: slog.NewLogLogger(s.opts.Logger.Handler(), slog.LevelDebug), Stderr: io.Discard}
	handler.ServeHTTP(w, r)
}

// protocol passes on the wire protocol that a client asks for, if it is one.
func protocol(r *http.Request) string {
	switch v := r.Header.Get("Git-Protocol"); v {
	case "version=1", "version=2":
		return v
	}
	return ""
}

// withLength gives a chunked request, as git sends for a large push, the
// length that CGI needs, by way of a file.
func withLength(r *http.Request) (*http.Request, func(), error) {
	if len(r.TransferEncoding) == 0 {
		return r, func() {}, nil
	}
	file, err := os.CreateTemp("", "rutter-push-")
	if err != nil {
		return nil, nil, err
	}
	cleanup := func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}
	size, err := io.Copy(file, r.Body)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		cleanup()
		return nil, nil, err
	}
	out := r.Clone(r.Context())
	out.Body, out.ContentLength, out.TransferEncoding = io.NopCloser(file), size, nil
	return out, cleanup, nil
}
