package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/rutterhq/rutter"
)

var _ rutter.Describer = (*member)(nil)

// Descriptions implements rutter.Describer.
func (m *member) Descriptions(ctx context.Context) (map[string]string, error) {
	m.requests.other.Add(1)
	answer, err := m.do(ours(ctx), request{method: http.MethodGet, path: "/openapi/v3"})
	if err != nil {
		return nil, err
	}
	var index struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(answer, &index); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the index of the cluster's OpenAPI documents: %w", err)
	}
	out := make(map[string]string, len(index.Paths))
	for path, p := range index.Paths {
		out[path] = p.URL
	}
	return out, nil
}

// Description implements rutter.Describer.
func (m *member) Description(ctx context.Context, name string) ([]byte, error) {
	u, err := url.Parse(name)
	if err != nil || u.Host != "" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the cluster names %q as an OpenAPI document", name)
	}
	m.requests.other.Add(1)
	return m.do(ours(ctx), request{method: http.MethodGet, path: u.Path, query: u.Query()})
}
