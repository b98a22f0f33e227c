package git

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/rutterhq/rutter"
)

// lfsServer is where a repository's LFS content is asked for, and by which login.
type lfsServer struct {
	endpoint string
	// header is what an SSH server gave us to log in to the HTTP one with.
	header map[string]string
	bounds bounds
	cred   rutter.RepoCredential
	client *http.Client
}

// lfsMedia is the media type of the batch API; maxBatch bounds its answer.
const (
	lfsMedia = "application/vnd.git-lfs+json"
	maxBatch = 1 << 20
)

// lfsObject is the batch API's answer for one object.
type lfsObject struct {
	OID     string `json:"oid"`
	Actions struct {
		Download *lfsAction `json:"download"`
	} `json:"actions"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

type lfsAction struct {
	Href   string            `json:"href"`
	Header map[string]string `json:"header"`
}

// fetchLFS downloads what p names. The answer is used only if it is that.
func (f *Fetcher) fetchLFS(ctx context.Context, repo rutter.Repo, p pointer) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, f.opts.FetchTimeout)
	defer cancel()
	r, err := f.remote(repo)
	if err != nil {
		return nil, err
	}
	s, err := f.lfsServer(ctx, r)
	if err != nil {
		return nil, err
	}
	f.counts.downloads.Add(1)
	action, err := s.batch(ctx, p)
	if err == nil {
		var data []byte
		if data, err = s.download(ctx, action, p); err == nil {
			return data, nil
		}
	}
	if rutter.CodeOf(err) == rutter.CodeForbidden {
		f.refused(r)
	}
	return nil, err
}

// lfsServer finds the server as git-lfs does, but for .lfsconfig: a commit
// does not say where a login is sent.
func (f *Fetcher) lfsServer(ctx context.Context, r remote) (*lfsServer, error) {
	s := &lfsServer{}
	cred := r.access.cred
	switch r.scheme {
	case "http", "https":
		a, err := f.current(ctx, r)
		if err != nil {
			return nil, err
		}
		s.bounds, s.cred = boundsOf(r.location, a), a.cred
		s.endpoint = strings.TrimSuffix(strings.TrimRight(r.remote, "/"), ".git") + ".git/info/lfs"
	case "ssh":
		var err error
		if s.endpoint, s.header, err = f.authenticateLFS(ctx, r); err != nil {
			return nil, err
		}
		cred = rutter.RepoCredential{Proxy: cred.Proxy, NoProxy: cred.NoProxy}
	default:
		return nil, rutter.Errorf(rutter.CodeUnsupported, "a repository on this machine has no LFS server; use the URL of its origin, or switch enableLfs off")
	}
	base, err := url.Parse(s.endpoint)
	if err != nil || base.Host == "" {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the address of the LFS server cannot be parsed")
	}
	w, err := f.keys.Load().web(base, cred, r.access.digest)
	if err != nil {
		return nil, err
	}
	s.client = &http.Client{Transport: w, CheckRedirect: s.bounds.redirected}
	return s, nil
}

// authenticateLFS asks an SSH server for the address of the HTTP one, and for
// what to log in to that with.
func (f *Fetcher) authenticateLFS(ctx context.Context, r remote) (string, map[string]string, error) {
	l, err := f.login(ctx, r)
	if err != nil {
		return "", nil, err
	}
	defer l.Close()
	root, path := splitRemote(r.location)
	if strings.Contains(r.remote, "://") {
		path = r.path
	}
	if strings.HasSuffix(root, "/") {
		path = "/" + path
	}
	host := r.hostname()
	if r.user != "" {
		host = r.user + "@" + host
	}
	out, err := f.git.run(ctx, command{bin: "/bin/sh", env: append(base().env(), l.env...),
		args: []string{"-c", l.ssh + ` "$@"`, "ssh", "-p", r.port(), "--", host, "git-lfs-authenticate " + shellQuote(path) + " download"}})
	if err != nil {
		return "", nil, r.explain(err)
	}
	var answer lfsAction
	if err := json.Unmarshal(out, &answer); err != nil || !strings.HasPrefix(answer.Href, "http") {
		return "", nil, rutter.Errorf(rutter.CodeUnavailable, "the SSH server names no LFS server")
	}
	return strings.TrimRight(answer.Href, "/"), answer.Header, nil
}

// batch asks where the content of p is.
func (s *lfsServer) batch(ctx context.Context, p pointer) (*lfsAction, error) {
	ask, err := json.Marshal(map[string]any{"operation": "download", "transfers": []string{"basic"}, "hash_algo": "sha256",
		"objects": []map[string]any{{"oid": p.oid, "size": p.size}}})
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "asking an LFS server: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint+"/objects/batch", bytes.NewReader(ask))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "asking an LFS server: %w", err)
	}
	setHeaders(req, s.header)
	req.Header.Set("Accept", lfsMedia)
	req.Header.Set("Content-Type", lfsMedia)
	data, err := s.do(req, maxBatch)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Transfer string      `json:"transfer"`
		Objects  []lfsObject `json:"objects"`
	}
	if err := json.Unmarshal(data, &answer); err != nil || len(answer.Objects) != 1 || answer.Objects[0].OID != p.oid || answer.Transfer != "" && answer.Transfer != "basic" {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "%s did not answer as an LFS server does", req.URL.Host)
	}
	o := answer.Objects[0]
	switch {
	case o.Error != nil:
		return nil, statusError(req.URL.Host, o.Error.Code, cut(printable(o.Error.Message)))
	case o.Actions.Download == nil:
		return nil, rutter.Errorf(rutter.CodeNotFound, "%s does not have it; push it with git lfs push", req.URL.Host)
	}
	return o.Actions.Download, nil
}

// download fetches p from where the server said. The login goes along only
// within its bounds; elsewhere the server has sent what is needed.
func (s *lfsServer) download(ctx context.Context, from *lfsAction, p pointer) ([]byte, error) {
	u, err := url.Parse(from.Href)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the LFS server answered with an address that cannot be used")
	}
	if u.Scheme == "http" && strings.HasPrefix(s.endpoint, "https://") {
		return nil, rutter.Errorf(rutter.CodeForbidden, "the LFS server sends us from https to http, which is refused")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the LFS server answered with an address that cannot be used")
	}
	setHeaders(req, from.Header)
	req.Header.Set("Accept-Encoding", "identity") // it is compared with what was announced
	data, err := s.do(req, p.size)
	if err != nil {
		return nil, err
	}
	if !p.names(data) {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "%s answered with other content", req.URL.Host)
	}
	return data, nil
}

func setHeaders(req *http.Request, header map[string]string) {
	for name, value := range header {
		req.Header.Set(name, value)
	}
}

// do sends a request and reads an answer of at most limit bytes.
func (s *lfsServer) do(req *http.Request, limit int64) ([]byte, error) {
	s.bounds.authorize(req, s.cred)
	req.Header.Set("User-Agent", "rutter")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, webError(req.URL.Host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(req.URL.Host, resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, webError(req.URL.Host, err)
	}
	if int64(len(data)) > limit {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "%s answered with more than the %d bytes that were expected", req.URL.Host, limit)
	}
	return data, nil
}

// statusError is what a status of HTTP, which LFS uses for objects too, means.
func statusError(host string, status int, said string) error {
	code, hint := rutter.CodeUnavailable, "try again later"
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		code, hint = rutter.CodeForbidden, "give the login of the repository read access to it"
	case http.StatusNotFound, http.StatusGone:
		code, hint = rutter.CodeNotFound, "push it with git lfs push"
	case http.StatusUnprocessableEntity:
		code, hint = rutter.CodeInvalid, "correct the pointer"
	}
	return rutter.Errorf(code, "%s answered %d (%s): %s", host, status, said, hint)
}
