package argo

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
)

// Keys of argocd-cm that are Rutter's own.
const (
	// KeyClusterGone is what becomes of Applications that are deleted while their
	// cluster is not one of the fleet: "release" (default) or "wait".
	KeyClusterGone = "rutter.deletion.cluster-gone"
)

// RemovalSettings are what the operator sets about removing objects.
type RemovalSettings struct {
	// WaitForCluster keeps Applications whose cluster is gone, until it is back.
	WaitForCluster bool
}

// ParseRemoval reads them; what cannot be read is named and has no effect.
func ParseRemoval(cm *corev1.ConfigMap) (s RemovalSettings, problems []error) {
	switch v := cm.Data[KeyClusterGone]; v {
	case "", "release":
	case "wait":
		s.WaitForCluster = true
	default:
		problems = append(problems, rutter.Errorf(rutter.CodeInvalid, "%s: data[%q]: %q: write release or wait", ConfigMapName, KeyClusterGone, v))
	}
	return s, problems
}
