package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
)

// Doomed is a live object that the deletion of its unit removes.
type Doomed struct {
	Ref rutter.Ref
	GVK rutter.GVK
	UID string
	// Wave is the one that it was created in.
	Wave int
	// Deleting is true once its deletion was asked for.
	Deleting bool
}

// Teardown returns the step of a deletion that is due: the objects to be removed
// now, or none while all of that step are going already. The highest wave goes
// first (reference 2.9). Within a wave what depends on something else goes before
// it: custom resources, then the rest in the reversed order of kinds - so what
// acts on the custom resources is there until they are gone - then namespaces,
// which go after everything that is in them, whatever their wave.
//
// What is going in a later step already holds nothing back: it may itself wait
// for something of this one.
func Teardown(all []Doomed) (step []Doomed, wave int) {
	if len(all) == 0 {
		return nil, 0
	}
	waves := map[string]int{} // of what is in a namespace
	for _, x := range all {
		if w, seen := waves[x.Ref.Namespace]; x.Ref.Namespace != "" && (!seen || x.Wave < w) {
			waves[x.Ref.Namespace] = x.Wave
		}
	}
	place := func(x Doomed) (wave, tier int) {
		wave = x.Wave
		if w, used := waves[x.Ref.Name]; used && isNamespace(x.Ref) {
			wave = min(wave, w)
		}
		return wave, tierOf(x.Ref)
	}
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Doomed) int {
		wa, ta := place(a)
		wb, tb := place(b)
		return cmp.Or(cmp.Compare(wb, wa), cmp.Compare(ta, tb), a.Ref.Compare(b.Ref))
	})
	wave, tier := place(sorted[0])
	for _, x := range sorted {
		if w, t := place(x); w != wave || t != tier {
			break
		}
		step = append(step, x)
	}
	return step, wave
}

func isNamespace(ref rutter.Ref) bool { return ref.Group == "" && ref.Kind == "Namespace" }

// tierOf orders kinds for a deletion: the lower goes first.
func tierOf(ref rutter.Ref) int {
	switch {
	case isNamespace(ref):
		return len(kindOrder) + 2
	case !BuiltIn(ref.Group):
		return 0
	}
	return 1 + len(kindOrder) - rank(ref.Kind)
}

// BuiltIn reports whether an API group is Kubernetes' own, and not one that a
// definition of custom resources or an aggregated server brought.
func BuiltIn(group string) bool {
	if !strings.Contains(group, ".") {
		return true // "", apps, batch, autoscaling, policy, extensions
	}
	return builtIn[group]
}

// builtIn are the groups of Kubernetes whose names could be anybody's.
var builtIn = map[string]bool{
	"admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true,
	"authentication.k8s.io": true, "authorization.k8s.io": true, "certificates.k8s.io": true, "coordination.k8s.io": true,
	"discovery.k8s.io": true, "events.k8s.io": true, "flowcontrol.apiserver.k8s.io": true, "internal.apiserver.k8s.io": true,
	"networking.k8s.io": true, "node.k8s.io": true, "rbac.authorization.k8s.io": true, "resource.k8s.io": true,
	"scheduling.k8s.io": true, "storage.k8s.io": true, "storagemigration.k8s.io": true,
}
