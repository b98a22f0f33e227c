package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/rutterhq/rutter"
)

const (
	maxRetries = 5
	// maxBody bounds an answer that is read as a whole.
	maxBody = 64 << 20
	// resetPause is the wait before a call whose connection broke is made again.
	resetPause = 50 * time.Millisecond
	maxWait    = 10 * time.Second
)

// errNoTime ends a call that took too long.
var errNoTime = errors.New("no answer in time")

// request is one call to the API server.
type request struct {
	method, path string
	query        url.Values
	body         []byte
	contentType  string
	accept       string
	// as is the user with whose rights the call is made; empty means our own.
	as string
	// once: the call must not be made twice, or its maker sees to that himself.
	once bool
}

// do makes the call and returns the body.
func (m *member) do(ctx context.Context, r request) ([]byte, error) {
	var body []byte
	err := m.call(ctx, r, func(from *http.Response) error {
		size := min(max(from.ContentLength, 0), maxBody)
		buf := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
		n, err := buf.ReadFrom(io.LimitReader(from.Body, maxBody+1))
		if err == nil && n > maxBody {
			return rutter.Errorf(rutter.CodeInternal, "the answer of cluster %s is larger than %d MiB", m.Info().Name, maxBody>>20)
		}
		body = buf.Bytes()
		return err
	})
	return body, err
}

// call makes the call and has its answer read. It waits and tries again where
// the server says that it is busy, and once where a connection broke; it fails
// fast while the cluster does not answer.
func (m *member) call(ctx context.Context, r request, read func(*http.Response) error) error {
	ctx, cancelTime := context.WithTimeoutCause(ctx, m.timing.call, errNoTime)
	defer cancelTime()
	ctx, cancel := m.breaker.during(ctx)
	defer cancel()
	for attempt := 0; ; attempt++ {
		if err := m.ready(ctx); err != nil {
			return err
		}
		wait, err := m.attempt(ctx, r, read)
		if wait == 0 || attempt >= maxRetries || wait == resetPause && attempt > 0 {
			return err
		}
		if pause(ctx, wait) != nil {
			return err
		}
	}
}

// ready waits until a call may begin.
func (m *member) ready(ctx context.Context) error {
	if err := m.breaker.check(); err != nil {
		return err
	}
	if wait := m.writers.hold(); wait > 0 {
		if err := pause(ctx, wait); err != nil {
			return m.noAnswer(ctx, err)
		}
	}
	return nil
}

// attempt calls once. wait is not zero when another attempt makes sense.
func (m *member) attempt(ctx context.Context, r request, read func(*http.Response) error) (wait time.Duration, err error) {
	resp, err := m.open(ctx, r)
	if err != nil {
		if ctx.Err() == nil && !r.once {
			return resetPause, m.noAnswer(ctx, err)
		}
		return 0, m.noAnswer(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < http.StatusMultipleChoices {
		err := read(resp)
		if _, ours := errors.AsType[*rutter.Error](err); err == nil || ours {
			return 0, err
		}
		m.breaker.failed(err)
		return 0, m.noAnswer(ctx, fmt.Errorf("read its answer: %w", err))
	}
	err = m.refusal(resp)
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "" {
		wait = retryAfter(resp)
		if r.method != http.MethodGet { // one kind's storage that is not ready is not the whole server's matter
			m.writers.busy(wait)
		}
	}
	if r.once {
		wait = 0
	}
	return wait, err
}

// refusal reads the server's no.
func (m *member) refusal(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // a part of the words is better than none
	err := statusError(resp.StatusCode, body)
	if resp.StatusCode == http.StatusUnauthorized {
		return rutter.Errorf(rutter.CodeForbidden, "cluster %s does not accept the credentials: %w", m.Info().Name, err)
	}
	return err
}

func retryAfter(resp *http.Response) time.Duration {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 1 {
		seconds = 1
	}
	return min(time.Duration(seconds)*time.Second, maxWait)
}

// open sends the request and returns the response with its body unread.
func (m *member) open(ctx context.Context, r request) (*http.Response, error) {
	target := m.link.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "build the request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	if as := actor(ctx, r); as != "" {
		req.Header.Set("Impersonate-User", as)
	}
	resp, err := m.link.client.Do(req)
	if err != nil {
		m.breaker.failed(err)
		return nil, bare(err)
	}
	m.breaker.answered()
	return resp, nil
}

// path is the URL path of a kind's collection, or of one object of it.
func (m *member) path(ctx context.Context, gvk rutter.GVK, namespace, name string) (string, error) {
	mapping, err := m.discovery.mapping(ctx, gvk)
	if err != nil {
		return "", err
	}
	for _, s := range []string{namespace, name} {
		// A name with a slash would be another path, in another namespace.
		if s != "" && len(content.IsPathSegmentName(s)) > 0 {
			return "", rutter.Errorf(rutter.CodeInvalid, "%s: %q is not a name that an object can have", describe(gvk, namespace, name), s)
		}
	}
	if mapping.Namespaced && namespace == "" {
		return "", rutter.Errorf(rutter.CodeInvalid, "%s needs a namespace: set metadata.namespace or spec.destination.namespace", describe(gvk, "", name))
	}
	return pathOf(gvk, mapping, namespace, name), nil
}

func pathOf(gvk rutter.GVK, mapping rutter.Mapping, namespace, name string) string {
	p := "/apis/" + gvk.Group + "/" + gvk.Version
	if gvk.Group == "" {
		p = "/api/" + gvk.Version
	}
	if mapping.Namespaced && namespace != "" {
		p += "/namespaces/" + url.PathEscape(namespace)
	}
	p += "/" + mapping.Resource
	if name != "" {
		p += "/" + url.PathEscape(name)
	}
	return p
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return rutter.Errorf(rutter.CodeUnavailable, "stopped while waiting: %w", context.Cause(ctx))
	}
}
