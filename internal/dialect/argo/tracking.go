package argo

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rutterhq/rutter"
)

// defaultInstanceLabel is the label of the tracking methods with one (reference 2.11).
const defaultInstanceLabel = "app.kubernetes.io/instance"

// ParseTracking reads from argocd-cm how managed objects are to be marked. Each
// problem is one key that is not acted on, with the reason.
func ParseTracking(cm *corev1.ConfigMap) (t rutter.Tracking, problems []string) {
	key := cmp.Or(cm.Data["application.instanceLabelKey"], defaultInstanceLabel)
	if errs := validation.IsQualifiedName(key); len(errs) > 0 {
		problems = append(problems, fmt.Sprintf("application.instanceLabelKey: %q is no key of a label: %s", key, strings.Join(errs, "; ")))
		key = defaultInstanceLabel
	}
	switch method := cm.Data["application.resourceTrackingMethod"]; method {
	case "label", "annotation+label":
		t.Label = key
	case "", "annotation":
	default:
		problems = append(problems, fmt.Sprintf("application.resourceTrackingMethod: %q is none of annotation, label, annotation+label: annotation is used", method))
	}
	t.InstallationID = cm.Data["installationID"]
	return t, problems
}
