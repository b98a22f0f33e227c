package policy

import (
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// ServiceAccount returns the user with whose rights a project works at a
// destination: that of the first matching entry of
// spec.destinationServiceAccounts (reference 6.8), and false when none matches.
// appNamespace stands in for an empty namespace of the destination.
func ServiceAccount(p *v1alpha1.AppProject, cluster rutter.ClusterInfo, namespace, appNamespace string) (user string, ok bool) {
	for _, a := range p.Spec.DestinationServiceAccounts {
		if !globs(a.Server, cluster.Server).allows() || !globs(a.Namespace, namespace).allows() {
			continue
		}
		ns, name, qualified := strings.Cut(a.DefaultServiceAccount, ":")
		if !qualified {
			ns, name = namespace, a.DefaultServiceAccount
			if ns == "" {
				ns = appNamespace
			}
		}
		if ns == "" || name == "" {
			return "", false
		}
		return "system:serviceaccount:" + ns + ":" + name, true
	}
	return "", false
}
