package policy

import (
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// accountRule is an entry of spec.destinationServiceAccounts (6.8): globs
// without "!".
type accountRule struct {
	server, namespace pattern
	account, where    string
}

func newAccountRule(a v1alpha1.ApplicationDestinationServiceAccount, where string) accountRule {
	return accountRule{plainPattern(strings.TrimRight(a.Server, "/")), plainPattern(a.Namespace), a.DefaultServiceAccount, where}
}

// NamesAccounts reports whether the project names service accounts at all.
func (p *Project) NamesAccounts() bool { return len(p.accounts) > 0 }

// ServiceAccount returns the user with whose rights a project works at a
// destination: that of the first entry of spec.destinationServiceAccounts that
// matches (6.8), and false when none does. appNamespace stands in for an empty
// namespace of the destination.
//
// An entry that cannot be read ends the search: with whose rights it would have
// been is not known, and those of a later entry may be wider.
func (p *Project) ServiceAccount(cluster rutter.ClusterInfo, namespace, appNamespace string) (user string, ok bool) {
	user, _, ok = p.serviceAccount(cluster, namespace, appNamespace)
	return user, ok
}

func (p *Project) serviceAccount(cluster rutter.ClusterInfo, namespace, appNamespace string) (user, rule string, ok bool) {
	for _, a := range p.accounts {
		server, ns := a.server.match(strings.TrimRight(cluster.Server, "/")), a.namespace.match(namespace)
		if server == miss || ns == miss {
			continue
		}
		if server == unreadable || ns == unreadable {
			return "", a.where, false
		}
		home, name, qualified := strings.Cut(a.account, ":")
		if !qualified {
			home, name = namespace, a.account
			if home == "" {
				home = appNamespace
			}
		}
		if home == "" || name == "" || strings.Contains(name, ":") {
			return "", a.where, false
		}
		return "system:serviceaccount:" + home + ":" + name, a.where, true
	}
	return "", "", false
}

// Impersonation is whether syncs use the identity of the tenant: the settings
// application.sync.impersonation.enabled and .enforced (6.8).
type Impersonation struct {
	Enabled bool
	// Enforced refuses a destination for which no account is named, in place of
	// working there with the engine's own identity.
	Enforced bool
}

// Identity is the user for a destination, and the rule that names it; no user
// means the engine's own identity.
func (p *Project) Identity(how Impersonation, cluster rutter.ClusterInfo, namespace, appNamespace string) (user, rule string, err error) {
	if !how.Enabled {
		return "", "", nil
	}
	user, rule, ok := p.serviceAccount(cluster, namespace, appNamespace)
	switch {
	case ok:
		return user, rule, nil
	case rule != "":
		return "", "", rutter.Errorf(rutter.CodeForbidden, "no matching service account found in project %s for cluster %s, namespace %q: %s matches it and cannot be used: mend its globs and its account",
			p.Name, clusterName(cluster), namespace, rule)
	case how.Enforced:
		return "", "", rutter.Errorf(rutter.CodeForbidden, "no matching service account found in project %s for cluster %s, namespace %q: add an entry to spec.destinationServiceAccounts",
			p.Name, clusterName(cluster), namespace)
	}
	return "", "", nil
}
