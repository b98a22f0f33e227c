package cluster

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/rutterhq/rutter"
)

// member is one cluster.
type member struct {
	info   atomic.Pointer[rutter.ClusterInfo]
	server string // key of the cluster: what destinations call it
	link   *link
	log    *slog.Logger
	sink   rutter.LiveSink
	timing timing
	epochs *atomic.Int64

	writers   *limiter
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

// newMember builds a member at rest: start sets it to work.
func newMember(info rutter.ClusterInfo, rc *rest.Config, opts Options) (*member, error) {
	l, err := newLink(rc, opts.UserAgent)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // the member lives until it is closed, not as long as who declared it
	m := &member{
		server: info.Server, link: l, log: opts.Logger.With("cluster", info.Name), sink: opts.Sink, timing: opts.timing, epochs: opts.epochs,
		writers: newLimiter(opts.Writers), ctx: ctx, cancel: cancel, watches: map[rutter.GVK]*watch{},
	}
	m.setInfo(info)
	m.discovery = newDiscovery(m)
	m.breaker = newBreaker(m)
	return m, nil
}

func (m *member) start() { m.spawn(m.breaker.run) }

// spawn runs f as a part of the member's life; not at all when that is over.
func (m *member) spawn(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.wg.Go(f)
	}
}

// Info implements rutter.Cluster.
func (m *member) Info() rutter.ClusterInfo { return *m.info.Load() }

func (m *member) setInfo(info rutter.ClusterInfo) { m.info.Store(&info) }

// close ends watches, probes and calls in flight, drops the connections, and
// returns the kinds that were watched.
func (m *member) close() []rutter.GVK {
	m.mu.Lock()
	m.closed = true
	watched := slices.Collect(maps.Keys(m.watches))
	m.mu.Unlock()
	m.cancel()
	m.wg.Wait()
	m.link.drop()
	return watched
}

func (m *member) watching() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.watches)
}

// Version implements rutter.Cluster.
func (m *member) Version(ctx context.Context) (string, []string, error) {
	return m.discovery.version(ctx)
}

// Mapping implements rutter.Cluster.
func (m *member) Mapping(ctx context.Context, gvk rutter.GVK) (rutter.Mapping, error) {
	return m.discovery.mapping(ctx, gvk)
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
