package preview

import (
	"fmt"
	"net/url"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// InventoryVersion and InventoryKind head an inventory file.
const (
	InventoryVersion = "rutter.dev/v1alpha1"
	InventoryKind    = "ClusterInventory"
)

// Inventory is what a plan needs to know of the members of a fleet. It holds no
// credentials, so that it can live in Git.
type Inventory struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Clusters   []ClusterFacts `json:"clusters"`
}

// ClusterFacts are what is known of one member.
type ClusterFacts struct {
	Name        string            `json:"name"`
	Server      string            `json:"server"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Project     string            `json:"project,omitempty"`
	Namespaces  []string          `json:"namespaces,omitempty"`
	// ClusterResources allows cluster-scoped kinds where Namespaces is set.
	ClusterResources bool `json:"clusterResources,omitempty"`
	// Version is the server's, and APIVersions what it serves; charts see both.
	Version     string   `json:"version,omitempty"`
	APIVersions []string `json:"apiVersions,omitempty"`
	// ClusterScoped are the kinds without a namespace, as group/Kind, beside those
	// of Kubernetes itself.
	ClusterScoped []string `json:"clusterScoped,omitempty"`
	// Unreachable says why version and API versions are missing.
	Unreachable string `json:"unreachable,omitempty"`
}

// Info is the member as it is declared.
func (c ClusterFacts) Info() rutter.ClusterInfo {
	return rutter.ClusterInfo{Name: c.Name, Server: c.Server, Project: c.Project, Labels: c.Labels, Annotations: c.Annotations,
		Namespaces: c.Namespaces, ClusterResources: c.ClusterResources}
}

// FactsOf are those of a declared member.
func FactsOf(info rutter.ClusterInfo) ClusterFacts {
	return ClusterFacts{Name: info.Name, Server: info.Server, Project: info.Project, Labels: info.Labels, Annotations: info.Annotations,
		Namespaces: info.Namespaces, ClusterResources: info.ClusterResources}
}

// ParseInventory reads an inventory file, strictly.
func ParseInventory(data []byte, file string) (Inventory, error) {
	var inv Inventory
	if err := yaml.UnmarshalStrict(data, &inv); err != nil {
		return inv, &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "not an inventory of clusters", Err: err}
	}
	bad := func(format string, args ...any) (Inventory, error) {
		return inv, &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: fmt.Sprintf(format, args...)}
	}
	if inv.APIVersion != InventoryVersion || inv.Kind != InventoryKind {
		return bad("apiVersion %q and kind %q: an inventory has %s and %s; 'rutter cluster export' writes one", inv.APIVersion, inv.Kind, InventoryVersion, InventoryKind)
	}
	names, servers := map[string]bool{}, map[string]bool{}
	for i, c := range inv.Clusters {
		u, err := url.Parse(c.Server)
		switch {
		case c.Name == "":
			return bad("clusters[%d]: name is missing", i)
		case err != nil || u.Host == "" || u.User != nil:
			return bad("clusters[%d] (%s): server must be a URL such as https://host:6443, without a login", i, c.Name)
		case names[c.Name] || servers[c.Server]:
			return bad("clusters[%d] (%s): name or server is there twice", i, c.Name)
		}
		names[c.Name], servers[c.Server] = true, true
	}
	return inv, nil
}

// Find looks a destination up by server or name.
func (inv Inventory) Find(t rutter.Target) (ClusterFacts, bool) {
	i := slices.IndexFunc(inv.Clusters, func(c ClusterFacts) bool {
		return t.Server != "" && c.Server == t.Server || t.Server == "" && t.Name != "" && c.Name == t.Name
	})
	if i < 0 {
		return ClusterFacts{}, false
	}
	return inv.Clusters[i], true
}
