// Package paramservice asks the services behind plugin generators for
// parameters (reference 5.8). It is in the ADAPTER ring; the technology is the
// reference's HTTP protocol for generator plugins.
package paramservice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
)

const (
	// path is where a service answers, below its base URL.
	path = "/api/v1/getparams.execute"
	// defaultTimeout is the reference's.
	defaultTimeout = 30 * time.Second
	// maxAnswer bounds an answer, which is read into memory.
	maxAnswer = 32 << 20
	// shownAnswer is as much of a refusal as an error shows.
	shownAnswer = 300
)

// Client asks services of parameters. The zero value is not ready; use New.
type Client struct {
	http *http.Client
}

// Service is where a service is and how to log in.
type Service struct {
	BaseURL string
	// Token is sent as the bearer token; empty sends none.
	Token string
	// Timeout ends a request; 0 is 30 s.
	Timeout time.Duration
}

// New makes a client. Redirects are not followed: the token is for the address
// that the operator wrote.
func New() *Client {
	return &Client{http: &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
			TLSHandshakeTimeout: 15 * time.Second, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Ask posts the input for a set to a service and returns the items of
// output.parameters. An answer is complete or an error: CodeUnavailable (no
// answer, or one that is none), CodeForbidden (the login), CodeInvalid (the
// service or its answer is not what the protocol says).
func (c *Client) Ask(ctx context.Context, s Service, set string, input map[string]any) ([]map[string]any, error) {
	timeout := s.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := request(ctx, s, set, input)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if why, ok := errors.AsType[*url.Error](err); ok { // it names the address, with whatever login is in it
			err = why.Err
		}
		return nil, rutter.Errorf(rutter.CodeUnavailable, "service %s does not answer: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, rutter.Errorf(rutter.CodeUnavailable, "service %s: the answer is cut off: %w", req.URL.Host, err)
	case len(body) > maxAnswer:
		return nil, rutter.Errorf(rutter.CodeInvalid, "service %s: the answer is larger than %d MiB", req.URL.Host, maxAnswer>>20)
	case resp.StatusCode != http.StatusOK:
		return nil, refused(req.URL.Host, resp.StatusCode, body, s.Token)
	}
	items, err := decode(resp.Header.Get("Content-Type"), body)
	if err != nil {
		return nil, fmt.Errorf("service %s: %w", req.URL.Host, err)
	}
	return items, nil
}

func request(ctx context.Context, s Service, set string, input map[string]any) (*http.Request, error) {
	base, err := url.Parse(s.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "baseUrl is not the address of a service; write http://host:port or https://host")
	}
	if input == nil {
		input = map[string]any{}
	}
	body, err := json.Marshal(map[string]any{"applicationSetName": set, "input": map[string]any{"parameters": input}})
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "input.parameters: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "baseUrl: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if s.Token != "" {
		req.Header.Set("Authorization", "Bearer "+s.Token)
	}
	return req, nil
}

// refused says what a service answered instead of parameters, without the token.
func refused(host string, status int, body []byte, token string) error {
	code := rutter.CodeUnavailable
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		code = rutter.CodeForbidden
	case status >= 300 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
		code = rutter.CodeInvalid
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body), "")), " ")
	if token != "" {
		text = strings.ReplaceAll(text, token, "***")
	}
	if len(text) > shownAnswer {
		text = strings.ToValidUTF8(text[:shownAnswer], "") + "…"
	}
	return rutter.Errorf(code, "service %s answers %d %s: %s", host, status, http.StatusText(status), text)
}

// decode reads an answer. What is no JSON, or has no list, is no answer: a page
// to log in at must never be read as "no parameters".
func decode(contentType string, body []byte) ([]map[string]any, error) {
	if media, _, err := mime.ParseMediaType(contentType); err == nil && media == "text/html" {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the answer is a web page and no JSON: is baseUrl right?")
	}
	var answer struct {
		Output *struct {
			Parameters *[]map[string]any `json:"parameters"`
		} `json:"output"`
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&answer); err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the answer is not the JSON that is expected: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the answer goes on after its JSON")
	}
	if answer.Output == nil || answer.Output.Parameters == nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the answer has no output.parameters: a service without parameters answers with an empty list")
	}
	for i, item := range *answer.Output.Parameters {
		if item == nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "output.parameters[%d] is null, want an object", i)
		}
	}
	return *answer.Output.Parameters, nil
}
