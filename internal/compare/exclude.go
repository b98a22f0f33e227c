package compare

import (
	rutter "github.com/rutterhq/rutter"
)

// Scope are the kinds that are touched at all (reference 3.7). The nil Scope
// leaves out what no cluster's owner declares: events, leases and metrics.
type Scope struct {
	exclude, include []filter
}

type filter struct{ groups, kinds, clusters []pattern }

// NewScope reads the filters of settings.
func NewScope(s rutter.CompareSettings) (*Scope, error) {
	out := &Scope{}
	for _, list := range []struct {
		name string
		from []rutter.ResourceFilter
		to   *[]filter
	}{{"resource.exclusions", s.Exclude, &out.exclude}, {"resource.inclusions", s.Include, &out.include}} {
		for i, f := range list.from {
			r, err := newFilter(f)
			if err != nil {
				return nil, rutter.Errorf(rutter.CodeInvalid, "%s[%d]: %w", list.name, i, err)
			}
			*list.to = append(*list.to, r)
		}
	}
	return out, nil
}

// CheckFilter says what is wrong with a filter.
func CheckFilter(f rutter.ResourceFilter) error {
	_, err := newFilter(f)
	return err
}

func newFilter(f rutter.ResourceFilter) (out filter, err error) {
	for _, list := range []struct {
		from []string
		to   *[]pattern
	}{{f.Groups, &out.groups}, {f.Kinds, &out.kinds}, {f.Clusters, &out.clusters}} {
		for _, text := range list.from {
			p, err := newPattern(text)
			if err != nil {
				return out, err
			}
			*list.to = append(*list.to, p)
		}
	}
	return out, nil
}

// Excludes reports whether a kind is not touched at a cluster.
func (s *Scope) Excludes(gvk rutter.GVK, server string) bool {
	switch gvk.Group {
	case "events.k8s.io", "metrics.k8s.io":
		return true
	case "":
		if gvk.Kind == "Event" {
			return true
		}
	case "coordination.k8s.io":
		if gvk.Kind == "Lease" {
			return true
		}
	}
	if s == nil {
		return false
	}
	for _, f := range s.exclude {
		if f.at(server) && f.names(gvk) {
			return true
		}
	}
	limited := false
	for _, f := range s.include {
		if !f.at(server) {
			continue
		}
		if f.names(gvk) {
			return false
		}
		limited = true
	}
	return limited
}

func (f filter) at(server string) bool { return anyOf(f.clusters, server) }

func (f filter) names(gvk rutter.GVK) bool {
	return anyOf(f.groups, gvk.Group) && anyOf(f.kinds, gvk.Kind)
}

func anyOf(list []pattern, s string) bool {
	for _, p := range list {
		if p.matches(s) {
			return true
		}
	}
	return len(list) == 0
}
