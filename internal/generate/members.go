package generate

import (
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// inClusterName is how Applications may name the control plane's own cluster.
const inClusterName = "in-cluster"

// members are the clusters by what destinations call them; nil when not known.
type members struct {
	servers map[string]bool
	// names count the clusters of a name.
	names map[string]int
	// byName are their servers.
	byName map[string]string
}

func newMembers(clusters []rutter.ClusterInfo) members {
	if clusters == nil {
		return members{}
	}
	m := members{servers: map[string]bool{InClusterServer: true}, names: map[string]int{}, byName: map[string]string{}}
	for _, c := range clusters {
		server := trimServer(c.Server)
		m.servers[server] = true
		if m.byName[c.Name] != server {
			m.names[c.Name]++
		}
		m.byName[c.Name] = server
	}
	if m.names[inClusterName] == 0 {
		m.names[inClusterName], m.byName[inClusterName] = 1, InClusterServer
	}
	return m
}

func trimServer(server string) string { return strings.TrimRight(server, "/") }

// check says why a destination is none; nil when nothing is known.
func (m members) check(d v1alpha1.ApplicationDestination) error {
	if m.servers == nil {
		return nil
	}
	switch {
	case d.Server == "" && d.Name == "":
		return rutter.Errorf(rutter.CodeInvalid, "spec.destination: set server or name")
	case d.Server != "" && d.Name != "":
		return rutter.Errorf(rutter.CodeInvalid, "spec.destination: has a server and a name; keep one of them")
	case d.Server != "" && !m.servers[trimServer(d.Server)]:
		return rutter.Errorf(rutter.CodeNotFound, "spec.destination.server: there is no cluster %q", d.Server)
	case d.Name != "" && m.names[d.Name] == 0:
		return rutter.Errorf(rutter.CodeNotFound, "spec.destination.name: there is no cluster %q", d.Name)
	case d.Name != "" && m.names[d.Name] > 1:
		return rutter.Errorf(rutter.CodeInvalid, "spec.destination.name: there are %d clusters %q; use server", m.names[d.Name], d.Name)
	}
	return nil
}

// place names the cluster of a destination in one way, as far as it is known.
func (m members) place(d v1alpha1.ApplicationDestination) string {
	switch server, ok := m.byName[d.Name]; {
	case d.Server != "":
		return trimServer(d.Server)
	case ok:
		return server
	case d.Name == inClusterName:
		return InClusterServer
	default:
		return "name " + d.Name
	}
}

// gone reports whether the cluster of an Application is known to be no member.
func (m members) gone(d v1alpha1.ApplicationDestination) bool {
	if m.servers == nil || d.Server == "" && d.Name == "" {
		return false
	}
	return (d.Server == "" || !m.servers[trimServer(d.Server)]) && (d.Name == "" || m.names[d.Name] <= 0)
}

// possible says why an Application cannot be what is generated: its cluster or
// its project is not there. What is not known is not asked for.
func (rc *reconciliation) possible(app *v1alpha1.Application) error {
	if err := rc.members.check(app.Spec.Destination); err != nil {
		return rutter.Errorf(rutter.CodeOf(err), "Application %s: %w", app.Name, err)
	}
	project := app.Spec.Project
	if rc.policy.Projects == nil || project == "" || project == defaultProject || slices.Contains(rc.policy.Projects, project) {
		return nil
	}
	return rutter.Errorf(rutter.CodeNotFound, "Application %s: spec.project: there is no project %q", app.Name, project)
}

// defaultProject is the project of Applications that name none.
const defaultProject = "default"
