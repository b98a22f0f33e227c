// Package policy answers whether an application may use a source, go to a
// destination and manage a kind there, and by which rule of its AppProject.
// PURE ring. Semantics follow reference 06-appproject; where that has a quirk
// in which a deny rule widens what is allowed, the rule here is the plain one:
// something must allow it, and nothing may deny it.
package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/gobwas/glob"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// CheckSource reports whether the project may read from a repository (6.2).
// Patterns are compared in the normal form of Git URLs; * does not cross /.
func CheckSource(p *v1alpha1.AppProject, repoURL string) error {
	url := rutter.NormalizeGitURL(repoURL)
	allowed := false
	for i, pattern := range p.Spec.SourceRepos {
		deny, pattern := strings.HasPrefix(pattern, "!"), strings.TrimPrefix(pattern, "!")
		hit := pattern == "*" || match(rutter.NormalizeGitURL(pattern), url, '/')
		if hit && deny {
			return rutter.Errorf(rutter.CodeForbidden, "application repo %s is denied by spec.sourceRepos[%d] of project '%s'", repoURL, i, p.Name)
		}
		allowed = allowed || hit && !deny
	}
	if !allowed {
		return rutter.Errorf(rutter.CodeForbidden, "application repo %s is not permitted in project '%s': add it to spec.sourceRepos", repoURL, p.Name)
	}
	return nil
}

// CheckDestination reports whether the project may go to a namespace of a
// cluster (6.3). A cluster that is scoped to a project allows nobody else, and
// widens nothing for its own.
func CheckDestination(p *v1alpha1.AppProject, cluster rutter.ClusterInfo, namespace string) error {
	if cluster.Project != "" && cluster.Project != p.Name {
		return rutter.Errorf(rutter.CodeForbidden, "cluster %s belongs to project '%s' and is not permitted in project '%s'", clusterName(cluster), cluster.Project, p.Name)
	}
	if p.Spec.PermitOnlyProjectScopedClusters && cluster.Project != p.Name {
		return rutter.Errorf(rutter.CodeForbidden, "project '%s' permits only its own clusters, and cluster %s is not one of them", p.Name, clusterName(cluster))
	}
	allowed := false
	for i, d := range p.Spec.Destinations {
		switch verdict := destination(d, cluster, namespace); verdict {
		case denied:
			return rutter.Errorf(rutter.CodeForbidden, "application destination server '%s' and namespace '%s' are denied by spec.destinations[%d] of project '%s'", cluster.Server, namespace, i, p.Name)
		case permitted:
			allowed = true
		case silent:
		}
	}
	if !allowed {
		return rutter.Errorf(rutter.CodeForbidden, "application destination server '%s' and namespace '%s' do not match any of the allowed destinations in project '%s'", cluster.Server, namespace, p.Name)
	}
	return nil
}

type ruling int

const (
	silent ruling = iota
	permitted
	denied
)

// destination is what one entry says. An entry with a negated field denies what
// its other fields select and the negated pattern hits; it never permits.
func destination(d v1alpha1.ApplicationDestination, cluster rutter.ClusterInfo, namespace string) ruling {
	server, denyServer := strings.CutPrefix(d.Server, "!")
	name, denyName := strings.CutPrefix(d.Name, "!")
	ns, denyNS := strings.CutPrefix(d.Namespace, "!")
	hitServer := server != "" && match(strings.TrimSuffix(server, "/"), cluster.Server)
	hitName := name != "" && match(name, cluster.Name)
	hitCluster := hitServer || hitName
	hitNS := match(ns, namespace)
	switch {
	case denyServer && hitServer || denyName && hitName:
		if ns == "" || hitNS {
			return denied
		}
	case denyServer || denyName:
	case denyNS && hitCluster && hitNS:
		return denied
	case !denyNS && hitCluster && hitNS:
		return permitted
	}
	return silent
}

// CheckResource reports whether the project may manage an object there: its
// kind (6.4) and, for a namespaced one, its namespace.
func CheckResource(p *v1alpha1.AppProject, cluster rutter.ClusterInfo, ref rutter.Ref, namespaced bool) error {
	if !kindPermitted(p, ref, namespaced) {
		return rutter.Errorf(rutter.CodeForbidden, "resource %s:%s is not permitted in project %s", ref.Group, ref.Kind, p.Name)
	}
	if !namespaced {
		return nil
	}
	return CheckDestination(p, cluster, ref.Namespace)
}

func kindPermitted(p *v1alpha1.AppProject, ref rutter.Ref, namespaced bool) bool {
	if !namespaced {
		hit := func(r v1alpha1.ClusterResourceRestriction) bool {
			return shell(r.Kind, ref.Kind) && shell(r.Group, ref.Group) && (r.Name == "" || shell(r.Name, ref.Name))
		}
		return slices.ContainsFunc(p.Spec.ClusterResourceWhitelist, hit) && !slices.ContainsFunc(p.Spec.ClusterResourceBlacklist, hit)
	}
	hit := func(g v1alpha1.GroupKind) bool { return shell(g.Kind, ref.Kind) && shell(g.Group, ref.Group) }
	white := p.Spec.NamespaceResourceWhitelist
	return (white == nil || slices.ContainsFunc(*white, hit)) && !slices.ContainsFunc(p.Spec.NamespaceResourceBlacklist, hit)
}

// CheckSourceNamespace reports whether Applications of the project may live in
// a namespace other than the control plane's (6.9).
func CheckSourceNamespace(p *v1alpha1.AppProject, app, namespace, controlPlane string) error {
	if namespace == controlPlane || slices.ContainsFunc(p.Spec.SourceNamespaces, func(s string) bool { return match(s, namespace) }) {
		return nil
	}
	return rutter.Errorf(rutter.CodeForbidden, "application '%s' in namespace '%s' is not permitted to use project '%s'", app, namespace, p.Name)
}

// match is a glob; a pattern that cannot be read matches nothing.
func match(pattern, s string, separators ...rune) bool {
	if pattern == "*" || pattern == s {
		return true
	}
	g, err := glob.Compile(pattern, separators...)
	return err == nil && g.Match(s)
}

// shell is a shell pattern in which * does not cross a slash.
func shell(pattern, s string) bool {
	ok, err := path.Match(pattern, s)
	return err == nil && ok
}

func clusterName(c rutter.ClusterInfo) string {
	if c.Name != "" {
		return c.Name
	}
	return c.Server
}
