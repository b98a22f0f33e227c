package compare

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
)

// Pair is a declared object and the live one that it stands for; one of them
// may be nil.
type Pair struct{ Desired, Live *unstructured.Unstructured }

// Match pairs objects by group, kind, namespace and name, in the order in which
// they are declared; what is only live comes last. A declared object without a
// namespace stands for the only live one of that name: it would get its
// namespace when it is applied.
func Match(desired, live []*unstructured.Unstructured) []Pair {
	taken := make([]bool, len(live))
	out := make([]Pair, len(desired), len(desired)+len(live))
	take := func(i int, fits func(a, b rutter.Ref) bool) {
		at := -1
		for j, l := range live {
			if taken[j] || !fits(rutter.RefOf(desired[i]), rutter.RefOf(l)) {
				continue
			}
			if at >= 0 {
				return
			}
			at = j
		}
		if at >= 0 {
			taken[at], out[i].Live = true, live[at]
		}
	}
	for i, d := range desired {
		out[i].Desired = d
		take(i, func(a, b rutter.Ref) bool { return a == b })
	}
	for i := range desired {
		if out[i].Live == nil {
			take(i, func(a, b rutter.Ref) bool {
				same := a.Group == b.Group && a.Kind == b.Kind && a.Name == b.Name
				return same && (a.Namespace == "" || b.Namespace == "")
			})
		}
	}
	for j, l := range live {
		if !taken[j] {
			out = append(out, Pair{Live: l})
		}
	}
	return out
}

// Extraneous reports whether a live object that is not declared is no
// difference: it says so itself, or it is made by what is declared.
func Extraneous(live *unstructured.Unstructured) bool {
	for option := range strings.SplitSeq(live.GetAnnotations()["argocd.argoproj.io/compare-options"], ",") {
		if strings.TrimSpace(option) == "IgnoreExtraneous" {
			return true
		}
	}
	owners := live.GetOwnerReferences()
	return slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller })
}
