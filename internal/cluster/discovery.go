package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"

	"github.com/rutterhq/rutter"
)

const (
	// discoveryPause is the least time between two discoveries that misses cause.
	discoveryPause = 2 * time.Second
	// establishTime is how long a kind may take to be served after its
	// definition was applied, and establishPoll how often that is looked at.
	establishTime = 10 * time.Second
	establishPoll = 100 * time.Millisecond

	aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)

// discovery knows which kinds a cluster serves.
type discovery struct {
	m      *member
	flight singleflight.Group

	mu       sync.Mutex
	kinds    map[rutter.GVK]rutter.Mapping
	apis     []string
	server   string
	at       time.Time
	expected map[[2]string]time.Time // group and kind of a definition just applied → until when it is waited for
	changed  chan struct{}           // closed when the kinds changed
}

func newDiscovery(m *member) *discovery {
	return &discovery{m: m, expected: map[[2]string]time.Time{}, changed: make(chan struct{})}
}

// mapping answers from memory; a miss asks the server, but not more often than
// discoveryPause unless the kind's definition has just been applied.
func (d *discovery) mapping(ctx context.Context, gvk rutter.GVK) (rutter.Mapping, error) {
	for {
		d.mu.Lock()
		mapping, ok := d.kinds[gvk]
		age := time.Since(d.at)
		waiting := time.Now().Before(d.expected[[2]string{gvk.Group, gvk.Kind}])
		d.mu.Unlock()
		switch {
		case ok:
			return mapping, nil
		case !waiting && age < discoveryPause:
			return rutter.Mapping{}, rutter.Errorf(rutter.CodeNotFound, "the cluster does not serve kind %s in %s/%s: install its CustomResourceDefinition", gvk.Kind, gvk.Group, gvk.Version)
		}
		if err := d.refresh(ctx); err != nil {
			return rutter.Mapping{}, err
		}
		if !waiting {
			continue
		}
		d.mu.Lock()
		_, ok = d.kinds[gvk]
		d.mu.Unlock()
		if !ok {
			if err := pause(ctx, establishPoll); err != nil {
				return rutter.Mapping{}, err
			}
		}
	}
}

// expect notes that a definition was applied, so that its kind is waited for.
func (d *discovery) expect(obj *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = time.Time{}
	if kind != "" {
		d.expected[[2]string{group, kind}] = time.Now().Add(establishTime)
	}
}

// wait returns a channel that is closed when the kinds change.
func (d *discovery) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// refresh discovers anew; those who ask at the same time share one discovery.
func (d *discovery) refresh(ctx context.Context) error {
	_, err, _ := d.flight.Do("", func() (any, error) { return nil, d.discover(ctx) })
	return err //nolint:wrapcheck // discover has said what failed
}

func (d *discovery) discover(ctx context.Context) error {
	kinds, apis := map[rutter.GVK]rutter.Mapping{}, []string{}
	for _, path := range []string{"/api", "/apis"} {
		d.m.requests.other.Add(1)
		body, err := d.m.do(ctx, request{method: http.MethodGet, path: path, accept: aggregated})
		if err != nil {
			return err
		}
		var groups groupList
		if err := json.Unmarshal(body, &groups); err != nil || groups.Kind != "APIGroupDiscoveryList" {
			return rutter.Errorf(rutter.CodeUnsupported, "cluster %s does not serve aggregated discovery (Kubernetes 1.26 or newer is needed)", d.m.Info().Name)
		}
		groups.into(kinds, &apis)
	}
	slices.Sort(apis)
	d.mu.Lock()
	defer d.mu.Unlock()
	grown := false
	for k := range kinds {
		if _, known := d.kinds[k]; !known {
			grown = true
		}
	}
	d.kinds, d.apis, d.at = kinds, apis, time.Now()
	if grown {
		close(d.changed)
		d.changed = make(chan struct{})
	}
	return nil
}

// groupList is what is needed of apidiscovery.k8s.io's list.
type groupList struct {
	Kind  string `json:"kind"`
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []struct {
			Version   string `json:"version"`
			Resources []struct {
				Resource     string `json:"resource"`
				Scope        string `json:"scope"`
				ResponseKind struct {
					Group   string `json:"group"`
					Version string `json:"version"`
					Kind    string `json:"kind"`
				} `json:"responseKind"`
				Verbs []string `json:"verbs"`
			} `json:"resources"`
		} `json:"versions"`
	} `json:"items"`
}

func (g groupList) into(kinds map[rutter.GVK]rutter.Mapping, apis *[]string) {
	for _, group := range g.Items {
		for _, v := range group.Versions {
			gv := v.Version
			if group.Metadata.Name != "" {
				gv = group.Metadata.Name + "/" + v.Version
			}
			*apis = append(*apis, gv)
			for _, r := range v.Resources {
				if r.ResponseKind.Kind == "" || !slices.Contains(r.Verbs, "get") && !slices.Contains(r.Verbs, "create") {
					continue
				}
				gvk := rutter.GVK{Group: group.Metadata.Name, Version: v.Version, Kind: r.ResponseKind.Kind}
				if _, twice := kinds[gvk]; twice {
					continue
				}
				kinds[gvk] = rutter.Mapping{Resource: r.Resource, Namespaced: r.Scope == "Namespaced"}
				*apis = append(*apis, gv+"/"+r.ResponseKind.Kind)
			}
		}
	}
}

// version returns the server's version and what it serves, from memory once known.
func (d *discovery) version(ctx context.Context) (string, []string, error) {
	d.mu.Lock()
	server, apis := d.server, d.apis
	d.mu.Unlock()
	if server != "" && apis != nil {
		return server, apis, nil
	}
	body, err := d.m.do(ctx, request{method: http.MethodGet, path: "/version"})
	if err != nil {
		return "", nil, err
	}
	var info version.Info
	if err := json.Unmarshal(body, &info); err != nil {
		return "", nil, rutter.Errorf(rutter.CodeInternal, "decode the server's version: %w", err)
	}
	if err := d.refresh(ctx); err != nil {
		return "", nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.server = info.GitVersion
	return d.server, d.apis, nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return rutter.Errorf(rutter.CodeUnavailable, "stopped while waiting: %w", ctx.Err())
	}
}
