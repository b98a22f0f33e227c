package argo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// ParseHealthExprs reads assessments in CEL from argocd-cm: the keys
// resource.customizations.healthCheckExprs.GROUP_KIND, each an entry of Flux's
// healthCheckExprs in YAML. GROUP_ is every kind of the group. Each problem is one key.
func ParseHealthExprs(cm *corev1.ConfigMap) (exprs []rutter.HealthExpr, problems []string) {
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		name, ok := strings.CutPrefix(key, customizations+".healthCheckExprs.")
		if !ok {
			continue
		}
		e := rutter.HealthExpr{Source: ConfigMapName + ": " + key}
		e.Group, e.Kind = groupKind(name)
		if err := parseHealthExpr(cm.Data[key], &e); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", key, err)) // without current it makes its kind Unknown
		}
		exprs = append(exprs, e)
	}
	return exprs, problems
}

func parseHealthExpr(text string, e *rutter.HealthExpr) error {
	var in struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		InProgress string `json:"inProgress"`
		Failed     string `json:"failed"`
		Current    string `json:"current"`
	}
	if err := yaml.UnmarshalStrict([]byte(text), &in); err != nil {
		return rutter.Errorf(rutter.CodeInvalid, "has current, and may have inProgress and failed: %w", err)
	}
	if gv, err := schema.ParseGroupVersion(in.APIVersion); err != nil || in.APIVersion != "" && gv.Group != e.Group {
		return rutter.Errorf(rutter.CodeInvalid, "apiVersion %q is not of the group %q that the key names", in.APIVersion, e.Group)
	}
	if in.Kind != "" && in.Kind != e.Kind {
		return rutter.Errorf(rutter.CodeInvalid, "kind %q is not %q, which the key names", in.Kind, e.Kind)
	}
	e.InProgress, e.Failed, e.Current = in.InProgress, in.Failed, in.Current
	return nil
}
