package cluster

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rutterhq/rutter"
)

// LookupAs implements rutter.Cluster. A list is read whole, as Helm's lookup
// does it, up to the size of any answer. A kind that isn't served is nothing.
func (m *member) LookupAs(user string) rutter.Lookup {
	return func(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "lookup: %q is no API version: %w", apiVersion, err)
		}
		gvk := rutter.GVK{Group: gv.Group, Version: gv.Version, Kind: kind}
		mapping, err := m.discovery.mapping(ctx, gvk)
		switch {
		case rutter.CodeOf(err) == rutter.CodeNotFound:
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("lookup of %s: %w", describe(gvk, namespace, name), err)
		}
		var path string
		if name != "" || namespace != "" || !mapping.Namespaced {
			if path, err = m.path(ctx, gvk, namespace, name); err != nil {
				return nil, err
			}
		} else {
			path = pathOf(gvk, mapping, "", "") // of all namespaces
		}
		m.requests.get.Add(1)
		answer, err := m.do(ctx, request{method: http.MethodGet, path: path, as: user})
		if rutter.CodeOf(err) == rutter.CodeNotFound {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("lookup of %s as %s: %w", describe(gvk, namespace, name), user, err)
		}
		var out map[string]any
		if err := utiljson.Unmarshal(answer, &out); err != nil {
			return nil, rutter.Errorf(rutter.CodeInternal, "lookup of %s: read the answer: %w", describe(gvk, namespace, name), err)
		}
		return out, nil
	}
}
