package cluster

import (
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
)

func (r *Registry) at(server string) *registered {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.members[strings.TrimSuffix(server, "/")]
}

// Lookup implements rutter.Clusters.
func (r *Registry) Lookup(t rutter.Target) (rutter.Cluster, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	hit, err := r.find(t)
	switch {
	case err != nil:
		return nil, err
	case hit.broken != nil:
		return nil, hit.broken
	}
	return hit.member, nil
}

// find resolves a target; r.mu is held.
func (r *Registry) find(t rutter.Target) (*registered, error) {
	const declare = "declare it with a Secret labelled argocd.argoproj.io/secret-type: cluster, or 'rutter cluster add'"
	if t.Server != "" {
		if hit := r.members[strings.TrimSuffix(t.Server, "/")]; hit != nil {
			return hit, nil
		}
		return nil, rutter.Errorf(rutter.CodeNotFound, "cluster %q is not a member: %s", t.Server, declare)
	}
	var hits []*registered
	var servers []string
	for _, x := range r.members {
		if x.info.Name == t.Name {
			hits, servers = append(hits, x), append(servers, x.info.Server)
		}
	}
	switch len(hits) {
	case 0:
		return nil, rutter.Errorf(rutter.CodeNotFound, "there are no clusters with the name %q: %s", t.Name, declare)
	case 1:
		return hits[0], nil
	}
	slices.Sort(servers)
	return nil, rutter.Errorf(rutter.CodeInvalid, "there are %d clusters with the name %q (%s): use spec.destination.server", len(hits), t.Name, strings.Join(servers, ", "))
}

// List implements rutter.Clusters.
func (r *Registry) List() []rutter.ClusterInfo {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]rutter.ClusterInfo, 0, len(r.members))
	for _, x := range r.members {
		out = append(out, x.info)
	}
	slices.SortFunc(out, func(a, b rutter.ClusterInfo) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.Server, b.Server)
	})
	return out
}

// Status is what a person wants to know of a member's connection.
type Status struct {
	// Reachable is false while the member does not answer, or its declaration
	// cannot be used; Err is the cause and Since when that was found.
	Reachable bool
	Err       error
	Since     time.Time
	// Version is the server's, when it has been asked.
	Version string
	// Watches is the number of kinds that are watched.
	Watches int
	// Requests counts the requests made, by verb.
	Requests map[string]int64
}

// Status reports on one member; false when there is none with this server.
func (r *Registry) Status(server string) (Status, bool) {
	x := r.at(server)
	switch {
	case x == nil:
		return Status{}, false
	case x.member == nil:
		return Status{Err: x.broken, Requests: map[string]int64{}}, true
	}
	s := Status{Reachable: true, Version: x.member.discovery.seenVersion(), Watches: x.member.watching(), Requests: map[string]int64{}}
	if o := x.member.breaker.current(); o != nil {
		s.Reachable, s.Err, s.Since = false, o.cause, o.since
	}
	x.member.requests.addTo(s.Requests)
	return s, true
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
