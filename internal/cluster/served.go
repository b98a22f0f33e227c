package cluster

import (
	"slices"

	"github.com/rutterhq/rutter"
)

// aggregated asks for all groups in one answer.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

// groupList is what is needed of apidiscovery.k8s.io's list.
type groupList struct {
	Kind  string `json:"kind"`
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []struct {
			Version   string `json:"version"`
			Freshness string `json:"freshness"`
			Resources []struct {
				Resource     string `json:"resource"`
				Scope        string `json:"scope"`
				ResponseKind struct {
					Kind string `json:"kind"`
				} `json:"responseKind"`
				Verbs []string `json:"verbs"`
			} `json:"resources"`
		} `json:"versions"`
	} `json:"items"`
}

// served is what one discovery found.
type served struct {
	kinds map[rutter.GVK]rutter.Mapping
	dark  map[string]bool
	apis  []string
}

func groupVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}

func (s *served) put(gvk rutter.GVK, mapping rutter.Mapping) {
	if _, twice := s.kinds[gvk]; twice {
		return // the first resource of a kind is the one that has it as its own
	}
	s.kinds[gvk] = mapping
	s.apis = append(s.apis, groupVersion(gvk.Group, gvk.Version)+"/"+gvk.Kind)
}

func (s *served) add(groups groupList) {
	for _, group := range groups.Items {
		for _, v := range group.Versions {
			gv := groupVersion(group.Metadata.Name, v.Version)
			s.apis = append(s.apis, gv)
			if v.Freshness == "Stale" {
				s.dark[gv] = true
			}
			for _, r := range v.Resources {
				if r.ResponseKind.Kind == "" || !slices.Contains(r.Verbs, "get") && !slices.Contains(r.Verbs, "create") {
					continue
				}
				s.put(rutter.GVK{Group: group.Metadata.Name, Version: v.Version, Kind: r.ResponseKind.Kind},
					rutter.Mapping{Resource: r.Resource, Namespaced: r.Scope == "Namespaced"})
			}
		}
	}
}
