package cluster

import (
	"context"
	stdjson "encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter"
)

// namesOnly asks for a list without what the objects say.
const namesOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// Names implements rutter.Cluster. Of a kind that is served in several versions one is
// asked for. A page is decoded, shown and dropped.
func (m *member) Names(ctx context.Context, namespace string, want func(rutter.GVK) bool, see func(rutter.Named)) error {
	if _, _, err := m.Version(ctx); err != nil { // what is served is known after that
		return err
	}
	for _, k := range m.discovery.namespaced() {
		if !want(k.gvk) {
			continue
		}
		err := m.names(ctx, k.gvk, pathOf(k.gvk, k.mapping, namespace, ""), see)
		status, refusal := refused(err)
		notListed := refusal && status.Code == http.StatusMethodNotAllowed
		if code := rutter.CodeOf(err); err != nil && !notListed && code != rutter.CodeForbidden && code != rutter.CodeNotFound {
			return err
		}
	}
	return nil
}

func (m *member) names(ctx context.Context, gvk rutter.GVK, path string, see func(rutter.Named)) error {
	q := url.Values{"limit": {pageSize}}
	for {
		m.requests.list.Add(1)
		body, err := m.do(ctx, request{method: http.MethodGet, path: path, query: q, accept: namesOnly})
		if err != nil {
			return err
		}
		var list struct {
			Metadata page `json:"metadata"`
			Items    []struct {
				Metadata struct {
					Namespace       string                  `json:"namespace"`
					Name            string                  `json:"name"`
					Labels          map[string]string       `json:"labels"`
					OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
				} `json:"metadata"`
			} `json:"items"`
		}
		if err := stdjson.Unmarshal(body, &list); err != nil {
			return rutter.Errorf(rutter.CodeInternal, "read the list of %s: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			o := &list.Items[i].Metadata
			see(rutter.Named{Ref: rutter.Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.Namespace, Name: o.Name},
				Owned: len(o.OwnerReferences) > 0, Unit: o.Labels[rutter.LabelUnit]})
		}
		if list.Metadata.Continue == "" {
			return nil
		}
		q.Set("continue", list.Metadata.Continue)
	}
}

type servedKind struct {
	gvk     rutter.GVK
	mapping rutter.Mapping
}

// namespaced are the kinds with a namespace that are served, each in one version.
func (d *discovery) namespaced() []servedKind {
	d.mu.Lock()
	kinds := d.kinds
	d.mu.Unlock()
	byKind := map[[2]string]servedKind{}
	for gvk, mapping := range kinds {
		key := [2]string{gvk.Group, gvk.Kind}
		if old, known := byKind[key]; mapping.Namespaced && (!known || len(gvk.Version) < len(old.gvk.Version) || len(gvk.Version) == len(old.gvk.Version) && gvk.Version > old.gvk.Version) {
			byKind[key] = servedKind{gvk, mapping}
		}
	}
	out := make([]servedKind, 0, len(byKind))
	for _, k := range byKind {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b servedKind) int {
		return strings.Compare(a.gvk.Group+"/"+a.gvk.Kind, b.gvk.Group+"/"+b.gvk.Kind)
	})
	return out
}
