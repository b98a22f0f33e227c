package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter"
)

const (
	callTimeout = 30 * time.Second
	maxRetries  = 5
	maxBody     = 64 << 20
)

// request is one call to the API server.
type request struct {
	method, path string
	query        url.Values
	body         []byte
	contentType  string
	accept       string
}

// do makes the call and returns the body. It waits and tries again where the
// server says that it is busy, and fails fast while the cluster does not answer.
func (m *member) do(ctx context.Context, r request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for attempt := 0; ; attempt++ {
		if err := m.breaker.check(); err != nil {
			return nil, err
		}
		body, wait, err := m.once(ctx, r)
		if wait == 0 || attempt >= maxRetries {
			return body, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}

// once makes one attempt. wait is not zero when the server asks for another.
func (m *member) once(ctx context.Context, r request) (body []byte, wait time.Duration, err error) {
	resp, err := m.open(ctx, r)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, 0, rutter.Errorf(rutter.CodeUnavailable, "read the answer of cluster %s: %w", m.Info().Name, err)
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		return body, 0, nil
	}
	err = statusError(resp.StatusCode, body)
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "" {
		seconds, convErr := strconv.Atoi(resp.Header.Get("Retry-After"))
		if convErr != nil || seconds < 1 {
			seconds = 1
		}
		return nil, time.Duration(min(seconds, 10)) * time.Second, err
	}
	return nil, 0, err
}

// open sends the request and returns the response with its body unread.
func (m *member) open(ctx context.Context, r request) (*http.Response, error) {
	target := m.base + r.path
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
	resp, err := m.http.Do(req)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			m.breaker.failed(err)
		}
		return nil, rutter.Errorf(rutter.CodeUnavailable, "cluster %s does not answer: %w", m.Info().Name, bare(err))
	}
	m.breaker.answered()
	return resp, nil
}

// bare takes the URL off an error of net/http: it is long and says nothing new.
func bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// statusError turns the server's refusal into a coded error with its words.
func statusError(code int, body []byte) error {
	var s metav1.Status
	if err := json.Unmarshal(body, &s); err != nil || s.Message == "" {
		s.Message = strings.TrimSpace(string(body[:min(len(body), 300)]))
	}
	e := &rutter.Error{Code: codeOf(code), Message: oneLine(s.Message)}
	if strings.Contains(s.Message, "failed to create typed patch object") {
		e.Code = rutter.CodeInvalid // the server calls an object that does not fit its schema its own error
	}
	return e
}

func codeOf(status int) rutter.Code {
	switch status {
	case http.StatusNotFound, http.StatusGone:
		return rutter.CodeNotFound
	case http.StatusForbidden, http.StatusUnauthorized:
		return rutter.CodeForbidden
	case http.StatusConflict:
		return rutter.CodeConflict
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType, http.StatusRequestEntityTooLarge:
		return rutter.CodeInvalid
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusBadGateway:
		return rutter.CodeUnavailable
	default:
		return rutter.CodeInternal
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// describe names an object in an error.
func describe(gvk rutter.GVK, namespace, name string) string {
	if namespace == "" {
		return fmt.Sprintf("%s %q", gvk.Kind, name)
	}
	return fmt.Sprintf("%s %q in namespace %q", gvk.Kind, name, namespace)
}
