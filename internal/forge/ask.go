package forge

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// question is one request of a session.
type question struct {
	// what is asked, for errors.
	what string
	url  *url.URL
	// method is GET unless it is set.
	method string
	accept string
	header http.Header
	body   []byte
	// sign is called on the finished request.
	sign func(*http.Request) error
	// statusOnly is for what matters by being there: the body of a 200 is not read.
	statusOnly bool
}

// reply is an answer that can be read: 200, or a 404 that the API itself gave.
type reply struct {
	status int
	header http.Header
	body   []byte
	// exhausted is true when the answer said that the quota is used up.
	exhausted bool
}

// missing is true for what the API says does not exist.
func (r *reply) missing() bool { return r.status == http.StatusNotFound }

// attempts is how often a question is put at most.
const attempts = 4

// ask puts a question, again when the service failed in passing or wanted to be
// asked later.
func (s *session) ask(ctx context.Context, q question) (*reply, error) {
	for attempt := 1; ; attempt++ {
		if err := s.enter(ctx, s.quota); err != nil {
			return nil, s.wrap(q.what, err)
		}
		r, again, err := s.try(ctx, q)
		if err == nil {
			return r, nil
		}
		if !again || attempt == attempts || ctx.Err() != nil {
			return nil, s.wrap(q.what, err)
		}
		if sleep(ctx, s.opts.Pause<<(attempt-1)) != nil {
			return nil, s.wrap(q.what, err)
		}
	}
}

// try puts a question once; again says that the failure may pass by itself.
func (s *session) try(ctx context.Context, q question) (r *reply, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	req, err := s.request(ctx, q)
	if err != nil {
		return nil, false, err
	}
	// What is known of the answer stands in for it when nothing has changed.
	key, known := s.recall(q, req)
	s.requests.Add(1)
	resp, err := s.http.Do(req)
	if err != nil {
		err := s.unanswered(err)
		return nil, rutter.CodeOf(err) == rutter.CodeUnavailable && !errors.Is(err, errUntrusted), err
	}
	defer resp.Body.Close()
	if q.statusOnly && resp.StatusCode == http.StatusOK && strings.Contains(resp.Header.Get("Content-Type"), "json") {
		s.quota.note(s.opts.Now(), resp.Header, false)
		return &reply{status: resp.StatusCode, header: resp.Header}, false, nil
	}
	body, err := s.read(resp)
	if err != nil {
		s.quota.note(s.opts.Now(), resp.Header, false)
		return nil, rutter.CodeOf(err) == rutter.CodeInternal, s.unanswered(err)
	}
	r, again, err = s.judge(q, resp, body, known)
	if err == nil && key != "" && r.status == http.StatusOK && resp.StatusCode == http.StatusOK {
		s.answers.put(key, r)
	}
	return r, again, err
}

// recall finds what was answered before and lets the service say that it still
// holds; key is "" for what is not kept.
func (s *session) recall(q question, req *http.Request) (key string, known *kept) {
	if req.Method != http.MethodGet || q.statusOnly {
		return "", nil
	}
	key = digestOf(s.login.digest, s.q.Provider, s.ca, strconv.FormatBool(s.q.Insecure), req.Header.Get("Accept"), q.url.String())
	if known = s.answers.get(key); known != nil {
		req.Header.Set("If-None-Match", known.etag)
	}
	return key, known
}

// request is a question as it is sent.
func (s *session) request(ctx context.Context, q question) (*http.Request, error) {
	method := q.method
	if method == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, q.url.String(), bytes.NewReader(q.body))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "this cannot be asked: correct the names in the generator")
	}
	maps.Copy(req.Header, q.header)
	req.Header.Set("User-Agent", "rutter")
	req.Header.Set("Accept", "application/json")
	if q.accept != "" {
		req.Header.Set("Accept", q.accept)
	}
	if s.login.header != "" {
		req.Header.Set(s.login.header, s.login.value)
	}
	if q.sign != nil {
		if err := q.sign(req); err != nil {
			return nil, err
		}
	}
	return req, nil
}

func (s *session) read(resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, s.opts.MaxBody+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > s.opts.MaxBody {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the answer is larger than %d bytes, the limit", s.opts.MaxBody)
	}
	return body, nil
}

// judge decides what an answer is.
func (s *session) judge(q question, resp *http.Response, body []byte, known *kept) (r *reply, again bool, err error) {
	code := resp.StatusCode
	limited := isLimited(resp, body)
	throttled := code == http.StatusBadRequest && slices.Contains(awsBusy, awsFault(body)) // for a moment only
	s.quota.note(s.opts.Now(), resp.Header, limited)
	left, named := number(resp.Header, "Remaining")
	r = &reply{status: code, header: resp.Header, body: body, exhausted: named && left == 0 || resp.Header.Get("Retry-After") != ""}
	said := s.said(body)
	switch {
	case strings.Contains(resp.Header.Get("X-Github-Sso"), "partial-results"):
		return nil, false, rutter.Errorf(rutter.CodeForbidden, "the answer leaves out what the login is not authorized for by single sign-on: authorize the token for the organization")
	case limited, throttled:
		return nil, true, rutter.Errorf(rutter.CodeUnavailable, "the service limits how often it is asked (HTTP %d)%s: ask less often, or with a login that may ask more", code, said)
	case code == http.StatusNotModified && known != nil:
		s.notModified.Add(1)
		r.status, r.body, r.header = http.StatusOK, known.body, known.header
		return r, false, nil
	case code == http.StatusOK, code == http.StatusCreated && q.method == http.MethodPost:
		if err := isJSON(resp.Header, body); err != nil {
			return nil, false, err
		}
		return r, false, nil
	case code == http.StatusBadRequest && slices.Contains(awsNone, awsFault(body)):
		r.status = http.StatusNotFound
		return r, false, nil
	case code == http.StatusNotFound:
		if isJSON(resp.Header, body) != nil {
			return nil, false, rutter.Errorf(rutter.CodeUnavailable, "HTTP 404 that is not the API's own: check api, and what stands in front of the service")
		}
		return r, false, nil
	}
	return nil, code >= 500, s.refusal(code, body, said)
}

// isLimited tells of a refusal that is for asking too often.
func isLimited(resp *http.Response, body []byte) bool {
	left, named := number(resp.Header, "Remaining")
	asksLater := resp.Header.Get("Retry-After") != ""
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		return asksLater || named && left == 0 || bytes.Contains(bytes.ToLower(body), []byte("rate limit"))
	case http.StatusServiceUnavailable:
		return asksLater
	}
	return false
}

// refusal is the error for an answer that is none.
func (s *session) refusal(code int, body []byte, said string) error {
	switch {
	case code == http.StatusBadRequest && slices.Contains(awsDeny, awsFault(body)):
		return rutter.Errorf(rutter.CodeForbidden, "AWS refuses the identity%s: give it read access", said)
	case code == http.StatusUnauthorized && s.login.digest == "":
		return rutter.Errorf(rutter.CodeForbidden, "a login is wanted%s: name a token", said)
	case code == http.StatusUnauthorized:
		s.forgetApp()
		return rutter.Errorf(rutter.CodeForbidden, "the login of Secret %s is refused%s: correct it", quote(s.login.name), said)
	case code == http.StatusForbidden:
		return rutter.Errorf(rutter.CodeForbidden, "access is refused%s: give the login read access", said)
	case code == http.StatusNonAuthoritativeInfo:
		// Azure DevOps answers so with a page to sign in at.
		return rutter.Errorf(rutter.CodeForbidden, "the answer is a page to sign in at: correct the login")
	case code/100 == 3:
		return rutter.Errorf(rutter.CodeUnavailable, "HTTP %d leads nowhere: correct api", code)
	case code/100 == 4:
		return rutter.Errorf(rutter.CodeInvalid, "the request is refused (HTTP %d)%s: check the names in the generator, and api", code, said)
	}
	return rutter.Errorf(rutter.CodeUnavailable, "the service failed (HTTP %d)%s", code, said)
}

// forgetApp drops a token that was refused; the next query asks for another.
func (s *session) forgetApp() {
	if s.login.app != nil {
		t := s.login.app.held
		t.mu.Lock()
		t.text = ""
		t.mu.Unlock()
	}
}

// errUntrusted does not pass by itself.
var errUntrusted = errors.New("its certificate is not trusted")

// unanswered is a request without an answer. Its address is left out: a query
// string is no business of who reads the error.
func (s *session) unanswered(err error) error {
	if coded, ok := errors.AsType[*rutter.Error](err); ok {
		return coded
	}
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	if cert, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return rutter.Errorf(rutter.CodeUnavailable, "%w (%s): name a ConfigMap with the authority's certificate in caRef", errUntrusted, cut(printable(cert.Err.Error())))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return rutter.Errorf(rutter.CodeUnavailable, "the answer is cut off")
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return rutter.Errorf(rutter.CodeUnavailable, "no answer in time: %w", context.DeadlineExceeded)
	}
	if errors.Is(err, context.Canceled) {
		return rutter.Errorf(rutter.CodeUnavailable, "%w", context.Canceled)
	}
	return rutter.Errorf(rutter.CodeUnavailable, "no answer (%s)", s.login.scrub(cut(printable(err.Error()))))
}

func cut(line string) string {
	const longest = 200
	if len(line) > longest {
		return strings.ToValidUTF8(line[:longest], "") + "…"
	}
	return line
}
