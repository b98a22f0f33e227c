package argo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// conditions sorts by type and message; an unchanged one keeps its time.
func conditions(r rutter.Report, old []v1alpha1.ApplicationCondition, now time.Time) []v1alpha1.ApplicationCondition {
	var out []v1alpha1.ApplicationCondition
	for _, c := range slices.Concat(r.Conditions, unknownResources(r.Resources)) {
		next := v1alpha1.ApplicationCondition{Type: c.Type, Message: c.Message, LastTransitionTime: stamp(now)}
		for _, o := range old {
			if o.Type == c.Type && o.Message == c.Message && o.LastTransitionTime != nil {
				next.LastTransitionTime = o.LastTransitionTime
			}
		}
		out = append(out, next)
	}
	slices.SortFunc(out, func(a, b v1alpha1.ApplicationCondition) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(out, same)
}

func same(a, b v1alpha1.ApplicationCondition) bool { return a.Type == b.Type && a.Message == b.Message }

func sameConditions(a, b []v1alpha1.ApplicationCondition) bool { return slices.EqualFunc(a, b, same) }

// shownRefs is how many objects a condition names.
const shownRefs = 3

// unknownResources says why objects are Unknown, one condition for each cause:
// the list of resources has no field for it.
func unknownResources(in []rutter.ResourceReport) []rutter.Condition {
	byReason := map[string][]string{}
	for _, r := range in {
		if r.State == rutter.SyncUnknown && r.Reason != "" {
			byReason[r.Reason] = append(byReason[r.Reason], r.Ref.String())
		}
	}
	var out []rutter.Condition
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		refs := byReason[reason]
		slices.Sort(refs)
		more := ""
		if n := len(refs) - shownRefs; n > 0 {
			refs, more = refs[:shownRefs], fmt.Sprintf(" and %d more", n)
		}
		out = append(out, rutter.Condition{Type: rutter.CondComparison, Message: strings.Join(refs, ", ") + more + ": " + reason})
	}
	return out
}
