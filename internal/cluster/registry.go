package cluster

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"

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
	// AllowExec says whether a credential plugin may be run; nil allows none.
	AllowExec func(command string) bool
	// Writers bounds the writes in flight to one cluster; default 32. A bare
	// client saturates one API server anywhere between 4 and 64.
	Writers int
}

// Registry holds the members by server URL.
type Registry struct {
	opts Options

	mu      sync.RWMutex
	members map[string]*registered
}

type registered struct {
	info   rutter.ClusterInfo
	cred   rutter.ClusterCredential
	member *member
	broken error
}

var _ rutter.Clusters = (*Registry)(nil)

// New returns an empty registry.
func New(opts Options) *Registry {
	if opts.Writers <= 0 {
		opts.Writers = 32
	}
	return &Registry{opts: opts, members: map[string]*registered{}}
}

// SetLocal registers the control plane's own cluster. A Secret with its URL
// overrides it.
func (r *Registry) SetLocal(rc *rest.Config) error {
	info := rutter.ClusterInfo{Name: LocalName, Server: LocalServer}
	m, err := newMember(info, rc, r.opts)
	if err != nil {
		return err
	}
	r.put(&registered{info: info, member: m})
	return nil
}

// Set declares a member, or declares it anew. Connections and watches live on
// unless the credential or the restrictions changed.
func (r *Registry) Set(info rutter.ClusterInfo, cred rutter.ClusterCredential) error {
	info.Server = strings.TrimSuffix(info.Server, "/")
	r.mu.Lock()
	if old := r.members[info.Server]; old != nil && old.member != nil && reflect.DeepEqual(old.cred, cred) && sameReach(old.info, info) {
		old.info, old.broken = info, nil
		old.member.setInfo(info)
		r.mu.Unlock()
		return nil
	}
	r.mu.Unlock()
	rc, err := restConfig(info, cred, r.opts.AllowExec)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", info.Name, err)
	}
	m, err := newMember(info, rc, r.opts)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", info.Name, err)
	}
	r.put(&registered{info: info, cred: cred, member: m})
	return nil
}

func sameReach(a, b rutter.ClusterInfo) bool {
	return slices.Equal(a.Namespaces, b.Namespaces) && a.ClusterResources == b.ClusterResources
}

// SetBroken registers a member whose declaration cannot be used: looking it up
// gives the cause.
func (r *Registry) SetBroken(info rutter.ClusterInfo, err error) {
	info.Server = strings.TrimSuffix(info.Server, "/")
	r.put(&registered{info: info, broken: err})
}

func (r *Registry) put(x *registered) {
	r.mu.Lock()
	old := r.members[x.info.Server]
	r.members[x.info.Server] = x
	r.mu.Unlock()
	if old != nil && old.member != nil {
		old.member.close()
	}
}

// Remove forgets a member and ends everything that runs for it.
func (r *Registry) Remove(server string) {
	server = strings.TrimSuffix(server, "/")
	r.mu.Lock()
	old := r.members[server]
	delete(r.members, server)
	r.mu.Unlock()
	if old != nil && old.member != nil {
		old.member.close()
	}
}

// Close ends everything.
func (r *Registry) Close() {
	r.mu.Lock()
	members := r.members
	r.members = map[string]*registered{}
	r.mu.Unlock()
	for _, x := range members {
		if x.member != nil {
			x.member.close()
		}
	}
}

// Lookup implements rutter.Clusters.
func (r *Registry) Lookup(t rutter.Target) (rutter.Cluster, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var hit *registered
	if t.Server != "" {
		hit = r.members[strings.TrimSuffix(t.Server, "/")]
		if hit == nil {
			return nil, rutter.Errorf(rutter.CodeNotFound, "cluster %q is not a member: declare it with a Secret labelled argocd.argoproj.io/secret-type: cluster, or 'rutter cluster add'", t.Server)
		}
	} else {
		for _, x := range r.members {
			if x.info.Name != t.Name {
				continue
			}
			if hit != nil {
				return nil, rutter.Errorf(rutter.CodeInvalid, "there are 2 clusters with the name %q (%s and %s): use spec.destination.server", t.Name,
					min(hit.info.Server, x.info.Server), max(hit.info.Server, x.info.Server))
			}
			hit = x
		}
		if hit == nil {
			return nil, rutter.Errorf(rutter.CodeNotFound, "there are no clusters with the name %q: declare it with a Secret labelled argocd.argoproj.io/secret-type: cluster, or 'rutter cluster add'", t.Name)
		}
	}
	if hit.broken != nil {
		return nil, hit.broken
	}
	return hit.member, nil
}

// List implements rutter.Clusters.
func (r *Registry) List() []rutter.ClusterInfo {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]rutter.ClusterInfo, 0, len(r.members))
	for _, x := range r.members {
		out = append(out, x.info)
	}
	slices.SortFunc(out, func(a, b rutter.ClusterInfo) int { return strings.Compare(a.Name+a.Server, b.Name+b.Server) })
	return out
}

// Requests counts the requests to all members by verb.
func (r *Registry) Requests() map[string]int64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := map[string]int64{}
	for _, x := range r.members {
		if x.member != nil {
			x.member.requests.addTo(out)
		}
	}
	return out
}
