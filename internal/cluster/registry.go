package cluster

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rutterhq/rutter"
)

// LocalServer and LocalName are how the control plane's own cluster is named
// as a destination (reference 1.9).
const (
	LocalServer = "https://kubernetes.default.svc"
	LocalName   = "in-cluster"
)

// Options configure a Registry.
type Options struct {
	Logger *slog.Logger
	Sink   rutter.LiveSink
	// UserAgent is how Rutter names itself to API servers; default "rutter".
	UserAgent string
	// AllowExec says whether a credential plugin may be run; nil allows none.
	AllowExec func(command string) bool
	// Writers bounds the writes in flight to one cluster; default 32. A bare
	// client saturates one API server anywhere between 4 and 64.
	Writers int

	timing timing
	epochs *atomic.Int64
}

// timing are the pauses and limits that tests make shorter.
type timing struct {
	// call bounds one call with its retries.
	call time.Duration
	// probeEvery is how often a quiet member is asked whether it still answers,
	// probe how long it may take.
	probeEvery, probe time.Duration
	// retryMin and retryMax bound the pauses between attempts at what fails.
	retryMin, retryMax time.Duration
}

func (t timing) orDefault() timing {
	if t == (timing{}) {
		return timing{call: 30 * time.Second, probeEvery: 15 * time.Second, probe: 5 * time.Second, retryMin: time.Second, retryMax: time.Minute}
	}
	return t
}

// Registry holds the members by server URL.
type Registry struct {
	opts Options

	changing sync.Mutex // held by what adds, replaces or removes a member
	local    *rest.Config

	mu      sync.RWMutex
	members map[string]*registered
}

type registered struct {
	info   rutter.ClusterInfo
	cred   rutter.ClusterCredential
	member *member
	broken error
	// declared by a Secret, and not only by being the control plane's own.
	declared bool
}

var _ rutter.Clusters = (*Registry)(nil)

// New returns an empty registry.
func New(opts Options) *Registry {
	if opts.Writers <= 0 {
		opts.Writers = 32
	}
	if opts.UserAgent == "" {
		opts.UserAgent = "rutter"
	}
	opts.timing = opts.timing.orDefault()
	opts.epochs = &atomic.Int64{}
	return &Registry{opts: opts, members: map[string]*registered{}}
}

// SetLocal registers the control plane's own cluster. A Secret with its URL
// overrides it; one that names no login uses this one.
func (r *Registry) SetLocal(rc *rest.Config) error {
	r.changing.Lock()
	defer r.changing.Unlock()
	r.local = rest.CopyConfig(rc)
	if old := r.at(LocalServer); old != nil && old.declared {
		return nil
	}
	return r.putLocal()
}

// putLocal registers the control plane's own cluster as nobody declares it.
func (r *Registry) putLocal() error {
	info := rutter.ClusterInfo{Name: LocalName, Server: LocalServer}
	return r.replace(&registered{info: info}, r.local)
}

// Set declares a member, or declares it anew. Connections and watches live on
// unless the credential or the restrictions changed.
func (r *Registry) Set(info rutter.ClusterInfo, cred rutter.ClusterCredential) error {
	r.changing.Lock()
	defer r.changing.Unlock()
	info.Server = strings.TrimSuffix(info.Server, "/")
	if old := r.at(info.Server); old != nil && old.member != nil && old.declared && reflect.DeepEqual(old.cred, cred) && sameReach(old.info, info) {
		r.mu.Lock()
		defer r.mu.Unlock()
		old.info = info
		old.member.setInfo(info)
		return nil
	}
	rc, err := r.configOf(info, cred)
	if err == nil {
		err = r.replace(&registered{info: info, cred: cred, declared: true}, rc)
	}
	if err != nil {
		return fmt.Errorf("cluster %s: %w", info.Name, err)
	}
	return nil
}

// configOf is how to reach a declared member. The control plane's own, declared
// only to give it labels, is reached as before.
func (r *Registry) configOf(info rutter.ClusterInfo, cred rutter.ClusterCredential) (*rest.Config, error) {
	login := cred.Username != "" || cred.Password != "" || cred.BearerToken != "" || cred.Exec != nil || len(cred.TLS.CertData) > 0
	if info.Server == LocalServer && !login && r.local != nil {
		return r.local, nil
	}
	return restConfig(info, cred, r.opts.AllowExec)
}

func sameReach(a, b rutter.ClusterInfo) bool {
	return slices.Equal(a.Namespaces, b.Namespaces) && a.ClusterResources == b.ClusterResources
}

// SetBroken registers a member whose declaration cannot be used: looking it up
// gives the cause.
func (r *Registry) SetBroken(info rutter.ClusterInfo, err error) {
	r.changing.Lock()
	defer r.changing.Unlock()
	info.Server = strings.TrimSuffix(info.Server, "/")
	_ = r.replace(&registered{info: info, broken: err, declared: true}, nil) // without a configuration there is nothing to fail
}

// replace puts x in the place of what is there; r.changing is held. The old
// member ends before the new one begins, so that what they see comes in order;
// what was watched stays watched, and an outage lasts until the new one answers.
func (r *Registry) replace(x *registered, rc *rest.Config) error {
	old := r.at(x.info.Server)
	if rc != nil {
		m, err := newMember(x.info, rc, r.opts)
		if err != nil {
			return err
		}
		x.member = m
	}
	var watched []rutter.GVK
	if old != nil && old.member != nil {
		watched = old.member.close()
		if x.member != nil {
			x.member.breaker.inherit(old.member.breaker)
		}
	}
	r.mu.Lock()
	r.members[x.info.Server] = x
	r.mu.Unlock()
	if x.member != nil {
		x.member.start()
		for _, gvk := range watched {
			x.member.Watch(gvk)
		}
	}
	return nil
}

// Remove forgets a member and ends everything that runs for it. The control
// plane's own goes back to what it is without a Secret.
func (r *Registry) Remove(server string) {
	r.changing.Lock()
	defer r.changing.Unlock()
	server = strings.TrimSuffix(server, "/")
	if server == LocalServer && r.local != nil {
		if err := r.putLocal(); err == nil {
			return
		}
	}
	r.mu.Lock()
	old := r.members[server]
	delete(r.members, server)
	r.mu.Unlock()
	if old == nil || old.member == nil {
		return
	}
	old.member.close()
	if old.member.breaker.check() != nil {
		r.opts.Sink.Reachable(server, nil) // nothing is said about it any more
	}
}

// Close ends everything.
func (r *Registry) Close() {
	r.changing.Lock()
	defer r.changing.Unlock()
	r.mu.Lock()
	members := r.members
	r.members = map[string]*registered{}
	r.mu.Unlock()
	var wg sync.WaitGroup
	for _, x := range members {
		if x.member != nil {
			wg.Go(func() { x.member.close() })
		}
	}
	wg.Wait()
}
