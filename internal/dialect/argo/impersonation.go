package argo

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/policy"
)

// ParseImpersonation reads whose rights syncs use from argocd-cm (reference 6.8);
// cm may be nil. What cannot be read is a problem and counts as the safe answer:
// the rights of the tenant, and none without one.
func ParseImpersonation(cm *corev1.ConfigMap) (policy.Impersonation, []error) {
	var problems []error
	read := func(key string, absent bool) bool {
		if cm == nil || cm.Data[key] == "" {
			return absent
		}
		on, err := strconv.ParseBool(cm.Data[key])
		if err != nil {
			problems = append(problems, rutter.Errorf(rutter.CodeInvalid, "%s in ConfigMap %s: %q is neither true nor false; it counts as true", key, cm.Name, cm.Data[key]))
			return true
		}
		return on
	}
	how := policy.Impersonation{
		Enabled:  read("application.sync.impersonation.enabled", false),
		Enforced: read("application.sync.impersonation.enforced", true),
	}
	return how, problems
}

// Identity is the user with whose rights a unit works at a cluster; empty means
// the engine's own. A project that is not there has named nobody: only the
// default one may be missing, and then it is as if it were empty.
func Identity(unit rutter.Unit, cluster rutter.ClusterInfo, projects Projects, how policy.Impersonation) (user string, err error) {
	p, ok := projects(unit.Project)
	if !ok {
		p = policy.New(&v1alpha1.AppProject{ObjectMeta: metav1.ObjectMeta{Name: unit.Project}}, policy.Around{})
	}
	user, _, err = p.Identity(how, cluster, unit.Target.Namespace, unit.ID.Namespace)
	return user, err
}
