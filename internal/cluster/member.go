package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/rutterhq/rutter"
)

// member is one cluster.
type member struct {
	info   atomic.Pointer[rutter.ClusterInfo]
	server string // key of the cluster: what destinations call it
	base   string // where it is reached
	http   *http.Client
	log    *slog.Logger
	sink   rutter.LiveSink

	writers   chan struct{}
	discovery *discovery
	breaker   *breaker
	requests  counters

	ctx    context.Context //nolint:containedctx // the member's life: its watches end with it
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	watches map[rutter.GVK]*watch
	closed  bool
}

var _ rutter.Cluster = (*member)(nil)

func newMember(info rutter.ClusterInfo, rc *rest.Config, opts Options) (*member, error) {
	rc = rest.CopyConfig(rc)
	rc.UserAgent = "rutter"
	rc.ContentConfig = rest.ContentConfig{}
	client, err := rest.HTTPClientFor(rc)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the credentials cannot be used: %w", err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	base, _, err := rest.DefaultServerUrlFor(rc)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the server's URL cannot be used: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{
		server: info.Server, base: strings.TrimSuffix(base.String(), "/"), http: client, log: opts.Logger.With("cluster", info.Name), sink: opts.Sink,
		writers: make(chan struct{}, opts.Writers), ctx: ctx, cancel: cancel, watches: map[rutter.GVK]*watch{},
	}
	m.setInfo(info)
	m.discovery = newDiscovery(m)
	m.breaker = newBreaker(m)
	m.wg.Go(m.breaker.run)
	return m, nil
}

// Info implements rutter.Cluster.
func (m *member) Info() rutter.ClusterInfo { return *m.info.Load() }

func (m *member) setInfo(info rutter.ClusterInfo) { m.info.Store(&info) }

// close ends watches and probes and drops idle connections.
func (m *member) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.wg.Wait()
	m.http.CloseIdleConnections()
}

// Version implements rutter.Cluster.
func (m *member) Version(ctx context.Context) (string, []string, error) {
	return m.discovery.version(ctx)
}

// Mapping implements rutter.Cluster.
func (m *member) Mapping(ctx context.Context, gvk rutter.GVK) (rutter.Mapping, error) {
	return m.discovery.mapping(ctx, gvk)
}

// path is the URL path of a kind's collection, or of one object of it.
func (m *member) path(ctx context.Context, gvk rutter.GVK, namespace, name string) (string, error) {
	mapping, err := m.discovery.mapping(ctx, gvk)
	if err != nil {
		return "", err
	}
	return pathOf(gvk, mapping, namespace, name), nil
}

func pathOf(gvk rutter.GVK, mapping rutter.Mapping, namespace, name string) string {
	var b strings.Builder
	if gvk.Group == "" {
		fmt.Fprintf(&b, "/api/%s", gvk.Version)
	} else {
		fmt.Fprintf(&b, "/apis/%s/%s", gvk.Group, gvk.Version)
	}
	if mapping.Namespaced && namespace != "" {
		fmt.Fprintf(&b, "/namespaces/%s", namespace)
	}
	b.WriteString("/" + mapping.Resource)
	if name != "" {
		b.WriteString("/" + name)
	}
	return b.String()
}

// counters count requests by verb.
type counters struct {
	apply, dryRun, get, list, watch, remove, patch, other atomic.Int64
}

func (c *counters) addTo(out map[string]int64) {
	for verb, n := range map[string]*atomic.Int64{"apply": &c.apply, "dry-run": &c.dryRun, "get": &c.get, "list": &c.list,
		"watch": &c.watch, "delete": &c.remove, "patch": &c.patch, "other": &c.other} {
		out[verb] += n.Load()
	}
}
