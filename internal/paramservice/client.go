// Package paramservice asks the services of plugin generators for parameters
// (ADAPTER ring): a POST of JSON with a bearer token, answered by JSON. It
// implements rutter.Parameters.
//
// From an answer applications are made, and what is missing in it may be taken
// away. So an answer is complete or an error: a list that is not there, a page
// to log in at, a body that is cut off are no empty list. The token goes to the
// address that the operator wrote and along no redirect, and it is in no error.
package paramservice

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
)

const (
	// path is where the service is asked, below its base URL.
	path = "/api/v1/getparams.execute"
	// defaultTimeout holds for services that name none (reference 5.8).
	defaultTimeout = 30
	// said is how much of a refusal is shown.
	said = 200
)

// Options configure a Client; the zero value is ready for use.
type Options struct {
	// MaxBody bounds one answer; 0 is 32 MiB.
	MaxBody int64
}

// Client implements rutter.Parameters. It is safe for concurrent use.
type Client struct {
	http    *http.Client
	maxBody int64
}

var _ rutter.Parameters = (*Client)(nil)

// New returns a Client. It opens connections when it is asked something.
func New(opts Options) *Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &Client{maxBody: cmp.Or(opts.MaxBody, 32<<20), http: &http.Client{
		// What follows a redirect would carry the token, or lose the question.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 30 * time.Second, MaxIdleConns: 32, MaxResponseHeaderBytes: 64 << 10,
		},
	}}
}

// Ask implements rutter.Parameters.
func (c *Client) Ask(ctx context.Context, s rutter.ParameterService, set string, input map[string]any) ([]map[string]any, error) {
	to, err := address(s.BaseURL)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(s.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the token has a space, a line break or another character in it that no token has: correct the Secret")
	}
	body, err := question(set, input)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(cmp.Or(s.TimeoutSeconds, defaultTimeout))*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "baseUrl: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "rutter")
	if s.Token != "" {
		req.Header.Set("Authorization", "Bearer "+s.Token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the service did not answer: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, refusal(resp, s.Token)
	}
	return c.read(resp.Body, req.URL.Host)
}

// address is where a service is asked. A login in its URL would be shown with it.
func address(base string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(base))
	switch {
	case err != nil:
		return "", rutter.Errorf(rutter.CodeInvalid, "baseUrl is no URL: write http://host or https://host")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", rutter.Errorf(rutter.CodeInvalid, "baseUrl is no address of an HTTP service: write http://host or https://host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", rutter.Errorf(rutter.CodeInvalid, "baseUrl has a login, a query or a fragment in it: write only http://host/path, and the login as token")
	}
	u.Path = strings.TrimRight(u.Path, "/") + path
	u.RawPath = ""
	return u.String(), nil
}

func question(set string, input map[string]any) ([]byte, error) {
	if input == nil {
		input = map[string]any{}
	}
	body, err := json.Marshal(map[string]any{"applicationSetName": set, "input": map[string]any{"parameters": input}})
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "input.parameters cannot be written as JSON: %w", err)
	}
	return body, nil
}

// read decodes an answer. What cannot be decoded was not the service's answer,
// as far as anybody can tell: that it has one is only not known yet.
func (c *Client) read(body io.Reader, host string) ([]map[string]any, error) {
	data, err := io.ReadAll(io.LimitReader(body, c.maxBody+1))
	switch {
	case err != nil:
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the answer of %s was cut off: %w", host, err)
	case int64(len(data)) > c.maxBody:
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the answer of %s is larger than %d bytes, the limit", host, c.maxBody)
	case bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")):
		return nil, rutter.Errorf(rutter.CodeUnavailable, "%s answered with a page of HTML or XML, not with JSON: check baseUrl, and what stands in front of the service", host)
	}
	var reply struct {
		Output *struct {
			Parameters *[]json.RawMessage `json:"parameters"`
		} `json:"output"`
	}
	if err := json.Unmarshal(data, &reply); err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the answer of %s cannot be read: %w", host, err)
	}
	if reply.Output == nil || reply.Output.Parameters == nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, `the answer of %s has no list output.parameters; a service that has none answers {"output":{"parameters":[]}}`, host)
	}
	items := make([]map[string]any, 0, len(*reply.Output.Parameters))
	for i, raw := range *reply.Output.Parameters {
		item, err := object(raw)
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeUnavailable, "the answer of %s: output.parameters[%d] is no JSON object", host, i)
		}
		items = append(items, item)
	}
	return items, nil
}

// object decodes one item; its numbers keep their digits.
func object(raw json.RawMessage) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var item map[string]any
	if err := d.Decode(&item); err != nil {
		return nil, err
	}
	if item == nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "is null")
	}
	return item, nil
}

// refusal is what any other status than 200 means.
func refusal(resp *http.Response, token string) error {
	host := resp.Request.URL.Host
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return rutter.Errorf(rutter.CodeForbidden, "%s refuses the token (HTTP %d)%s: correct the Secret that token refers to", host, code, excerpt(resp.Body, token))
	case code >= 300 && code < 400:
		return rutter.Errorf(rutter.CodeInvalid, "%s sends the request on to %s (HTTP %d), where the token is not sent: write the address that answers as baseUrl", host, target(resp), code)
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		// Not CodeNotFound: a proxy says so, too, and nobody may read it as "there are none".
		return rutter.Errorf(rutter.CodeUnavailable, "%s has no %s (HTTP %d): check baseUrl", host, path, code)
	case code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout:
		return rutter.Errorf(rutter.CodeInvalid, "%s does not accept the input (HTTP %d)%s", host, code, excerpt(resp.Body, token))
	default:
		return rutter.Errorf(rutter.CodeUnavailable, "%s has no answer now (HTTP %d)%s", host, code, excerpt(resp.Body, token))
	}
}

// target is the host that a redirect leads to.
func target(resp *http.Response) string {
	u, err := resp.Location()
	if err != nil || u.Host == "" {
		return "another address"
	}
	return u.Scheme + "://" + u.Host
}

// excerpt is what a service says about its refusal, without the token.
func excerpt(body io.Reader, token string) string {
	data, _ := io.ReadAll(io.LimitReader(body, 4<<10)) // what arrived will do
	text := string(data)
	if token != "" {
		text = strings.ReplaceAll(text, token, "***")
	}
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if text == "" || strings.HasPrefix(text, "<") {
		return ""
	}
	if r := []rune(text); len(r) > said {
		text = string(r[:said]) + "…"
	}
	return ": " + text
}
