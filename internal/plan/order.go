package plan

import (
	"cmp"
	"slices"

	"github.com/rutterhq/rutter"
)

// kindOrder is the order of kinds within a wave (reference 2.3); kinds that
// are not in it share the last rank. The group does not matter.
var kindOrder = func() map[string]int {
	order := map[string]int{}
	for i, kind := range []string{
		"Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy", "PodDisruptionBudget",
		"ServiceAccount", "Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume",
		"PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding",
		"ClusterRoleBindingList", "Role", "RoleList", "RoleBinding", "RoleBindingList", "Service", "DaemonSet", "Pod",
		"ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob",
		"IngressClass", "Ingress", "APIService",
	} {
		order[kind] = i
	}
	return order
}()

func rank(kind string) int {
	if r, ok := kindOrder[kind]; ok {
		return r
	}
	return len(kindOrder)
}

var phaseOrder = map[rutter.Phase]int{
	rutter.PhasePreSync: 0, rutter.PhaseSync: 1, rutter.PhasePostSync: 2, rutter.PhaseSyncFail: 3,
}

// slot is the place of a step in the total order.
type slot struct {
	phase rutter.Phase
	wave  int
}

func (s slot) compare(o slot) int {
	return cmp.Or(cmp.Compare(phaseOrder[s.phase], phaseOrder[o.phase]), cmp.Compare(s.wave, o.wave))
}

func slotOf(s rutter.Step) slot { return slot{s.Phase, s.Wave} }

// hoist moves namespaces before the first step that lives in them, and CRDs
// before the first object of their kind, into that step's phase and wave.
func hoist(steps []rutter.Step, crdKind func(rutter.Step) (group, kind string)) {
	namespaces := map[string]*rutter.Step{}
	crds := map[[2]string]*rutter.Step{}
	for i := range steps {
		switch s := &steps[i]; {
		case s.Action != rutter.ActionApply:
		case s.Ref.Kind == "Namespace" && s.Ref.Group == "":
			namespaces[s.Ref.Name] = s
		case s.Ref.Kind == "CustomResourceDefinition":
			g, k := crdKind(*s)
			crds[[2]string{g, k}] = s
		}
	}
	for i := range steps {
		s := &steps[i]
		if s.Action != rutter.ActionApply {
			continue
		}
		earlier(namespaces[s.Ref.Namespace], s)
		earlier(crds[[2]string{s.Ref.Group, s.Ref.Kind}], s)
	}
}

func earlier(needed, user *rutter.Step) {
	if needed != nil && needed != user && slotOf(*user).compare(slotOf(*needed)) < 0 {
		needed.Phase, needed.Wave = user.Phase, user.Wave
	}
}

// group sorts steps into groups of one phase and wave, and each group into
// batches: prunes first, then one batch a kind.
func group(steps []rutter.Step) []rutter.Group {
	slices.SortStableFunc(steps, func(a, b rutter.Step) int {
		return cmp.Or(slotOf(a).compare(slotOf(b)), cmp.Compare(batchOf(a), batchOf(b)),
			cmp.Compare(a.Ref.Kind, b.Ref.Kind), a.Ref.Compare(b.Ref))
	})
	var groups []rutter.Group
	for i, s := range steps {
		newGroup := i == 0 || slotOf(steps[i-1]) != slotOf(s)
		if newGroup {
			groups = append(groups, rutter.Group{Phase: s.Phase, Wave: s.Wave})
		}
		g := &groups[len(groups)-1]
		if newGroup || batchOf(steps[i-1]) != batchOf(s) || steps[i-1].Ref.Kind != s.Ref.Kind && s.Action != rutter.ActionPrune {
			g.Batches = append(g.Batches, nil)
		}
		last := len(g.Batches) - 1
		g.Batches[last] = append(g.Batches[last], s)
	}
	return groups
}

func batchOf(s rutter.Step) int {
	if s.Action == rutter.ActionPrune {
		return -1
	}
	return rank(s.Ref.Kind)
}

// mirror swaps the waves of prunes, lowest with highest and so on, so that
// what was created last is removed first (reference 2.5).
func mirror(prunes []rutter.Step) {
	var waves []int
	for _, s := range prunes {
		if !slices.Contains(waves, s.Wave) {
			waves = append(waves, s.Wave)
		}
	}
	slices.Sort(waves)
	for i := range prunes {
		at, _ := slices.BinarySearch(waves, prunes[i].Wave)
		prunes[i].Wave = waves[len(waves)-1-at]
	}
}

// CompareKinds orders kinds as a sync creates them.
func CompareKinds(a, b string) int { return cmp.Compare(rank(a), rank(b)) }
