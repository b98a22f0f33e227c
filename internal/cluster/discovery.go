package cluster

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/version"

	"github.com/rutterhq/rutter"
)

// discoveryPause is the least time between two discoveries that misses cause.
const discoveryPause = 2 * time.Second

// discovery knows which kinds a cluster serves.
type discovery struct {
	m      *member
	flight singleflight.Group

	mu    sync.Mutex
	kinds map[rutter.GVK]rutter.Mapping
	// dark are group versions whose server did not answer the cluster: what was
	// known of them still holds, and what was not is unknown, not absent.
	dark     map[string]bool
	apis     []string
	server   string
	at       time.Time
	stale    bool                     // something is known to have changed
	refusal  error                    // why the last discovery was refused
	refused  time.Time                // when it was
	expected map[rutter.GVK]time.Time // kinds whose definition was just applied → until when they are waited for
	missing  map[rutter.GVK]bool      // kinds that are wanted and not served
	looking  bool                     // the definitions are watched for them
	changed  chan struct{}            // closed when the kinds, or what is expected, changed
}

func newDiscovery(m *member) *discovery {
	return &discovery{m: m, expected: map[rutter.GVK]time.Time{}, missing: map[rutter.GVK]bool{}, changed: make(chan struct{})}
}

// mapping answers from memory. A miss asks the server, though not more often
// than discoveryPause, and waits for a kind whose definition was just applied.
func (d *discovery) mapping(ctx context.Context, gvk rutter.GVK) (rutter.Mapping, error) {
	for {
		d.mu.Lock()
		found, ok := d.kinds[gvk]
		fresh := !d.stale && time.Since(d.at) < discoveryPause
		waits := time.Until(d.expected[gvk])
		changed := d.changed
		refusal, lately := d.refusal, time.Since(d.refused) < discoveryPause
		d.mu.Unlock()
		switch {
		case ok:
			return found, nil
		case refusal != nil && lately:
			return rutter.Mapping{}, refusal
		case waits > 0:
			if err := await(ctx, changed, waits); err != nil {
				return rutter.Mapping{}, err
			}
		case fresh:
			return rutter.Mapping{}, d.lacks(gvk)
		default:
			if err := d.refresh(ctx); err != nil {
				return rutter.Mapping{}, err
			}
		}
	}
}

// lacks says that a kind is not served, if that is certain.
func (d *discovery) lacks(gvk rutter.GVK) error {
	gv := groupVersion(gvk.Group, gvk.Version)
	d.mu.Lock()
	dark := d.dark[gv]
	d.mu.Unlock()
	if dark {
		return rutter.Errorf(rutter.CodeUnavailable, "the API %s of cluster %s does not answer, so it is not known whether kind %s exists: look at its APIService", gv, d.m.Info().Name, gvk.Kind)
	}
	return rutter.Errorf(rutter.CodeNotFound, "the cluster does not serve kind %s in %s: install its CustomResourceDefinition", gvk.Kind, gv)
}

// wait returns a channel that is closed when the kinds change.
func (d *discovery) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// expire has the next question that memory does not answer asked of the server at once.
func (d *discovery) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stale = true
}

// forget drops a kind that turned out not to be served any more.
func (d *discovery) forget(gvk rutter.GVK) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.kinds[gvk]; known {
		d.kinds = maps.Clone(d.kinds)
		delete(d.kinds, gvk)
		d.stale = true
	}
}

// refresh discovers anew; those who ask at the same time share one discovery,
// which lives as long as the member and not as the first who asked.
func (d *discovery) refresh(ctx context.Context) error {
	done := d.flight.DoChan("", func() (any, error) { return nil, d.discover(d.m.ctx) })
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return rutter.Errorf(rutter.CodeUnavailable, "stopped while asking cluster %s for its kinds: %w", d.m.Info().Name, context.Cause(ctx))
	}
}

func (d *discovery) discover(ctx context.Context) error {
	d.mu.Lock()
	d.stale = false // what changes from here on makes it stale again
	d.mu.Unlock()
	found, err := d.ask(ctx)
	if err == nil {
		d.learn(found)
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stale, d.refusal = true, nil
	if rutter.CodeOf(err) != rutter.CodeUnavailable { // the breaker sees to that
		d.refusal, d.refused = err, time.Now()
	}
	return err
}

// ask reads what the server serves.
func (d *discovery) ask(ctx context.Context) (*served, error) {
	found := &served{kinds: map[rutter.GVK]rutter.Mapping{}, dark: map[string]bool{}}
	for _, path := range []string{"/api", "/apis"} {
		d.m.requests.other.Add(1)
		body, err := d.m.do(ours(ctx), request{method: http.MethodGet, path: path, accept: aggregated})
		if err != nil {
			return nil, err
		}
		var groups groupList
		if err := json.Unmarshal(body, &groups); err != nil || groups.Kind != "APIGroupDiscoveryList" {
			return nil, rutter.Errorf(rutter.CodeUnsupported, "cluster %s does not serve aggregated discovery (Kubernetes 1.27 or newer is needed)", d.m.Info().Name)
		}
		found.add(groups)
	}
	return found, nil
}

// learn takes a discovery in, and wakes those who wait for a kind.
func (d *discovery) learn(found *served) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for gvk, mapping := range d.kinds {
		if _, known := found.kinds[gvk]; !known && found.dark[groupVersion(gvk.Group, gvk.Version)] {
			found.put(gvk, mapping)
		}
	}
	slices.Sort(found.apis)
	grown := false
	for gvk := range found.kinds {
		if _, known := d.kinds[gvk]; !known {
			grown = true
		}
		delete(d.expected, gvk)
		delete(d.missing, gvk)
	}
	d.kinds, d.dark, d.at, d.refusal = found.kinds, found.dark, time.Now(), nil
	if !slices.Equal(d.apis, found.apis) { // an equal list stays the same one, which its readers go by
		d.apis = found.apis
	}
	if grown {
		d.announce()
	}
}

// announce wakes those who wait; d.mu is held.
func (d *discovery) announce() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// version returns the server's version and what it serves, from memory while
// nothing is known to have changed.
func (d *discovery) version(ctx context.Context) (string, []string, error) {
	d.mu.Lock()
	server, apis, known := d.server, d.apis, d.apis != nil && !d.stale
	d.mu.Unlock()
	if server == "" {
		d.m.requests.other.Add(1)
		body, err := d.m.do(ours(ctx), request{method: http.MethodGet, path: "/version"})
		if err != nil {
			return "", nil, err
		}
		if server = d.saw(body); server == "" {
			return "", nil, rutter.Errorf(rutter.CodeInternal, "cluster %s does not tell its version: it may not be a Kubernetes API server", d.m.Info().Name)
		}
	}
	if known {
		return server, apis, nil
	}
	if err := d.refresh(ctx); err != nil {
		return "", nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.server, d.apis, nil
}

// saw notes an answer of /version. A server of another version serves other kinds.
func (d *discovery) saw(body []byte) string {
	var info version.Info
	if json.Unmarshal(body, &info) != nil || info.GitVersion == "" {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server != "" && d.server != info.GitVersion {
		d.stale = true
	}
	d.server = info.GitVersion
	return d.server
}

func (d *discovery) seenVersion() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.server
}

func await(ctx context.Context, changed <-chan struct{}, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return rutter.Errorf(rutter.CodeUnavailable, "stopped while waiting for a kind to be served: %w", context.Cause(ctx))
	}
	return nil
}
