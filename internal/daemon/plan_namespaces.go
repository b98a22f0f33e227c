package daemon

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/preview"
)

// makers decides which units show the namespace that they make before they go
// into it (CreateNamespace=true): the first of the head that goes where none of
// the base goes, and those that make it on both sides, since what they write on
// it may differ. A namespace that is made so is never deleted, and so never shown
// as gone.
func (p *planner) makers() {
	type place struct{ server, namespace string }
	at := func(u *planUnit) place { return place{u.cluster.Server, u.unit.Target.Namespace} }
	taken := map[place]bool{}
	for _, u := range p.base.units {
		taken[at(u)] = true
	}
	for _, u := range p.head.ordered() {
		if !u.unit.Policy.CreateNamespace || u.unit.Target.Namespace == "" {
			continue
		}
		if before := p.base.units[u.name]; before != nil && before.unit.Policy.CreateNamespace && at(before) == at(u) {
			u.makes, before.makes = true, true
			continue
		}
		u.makes = !taken[at(u)]
		taken[at(u)] = true
	}
}

// namespace is what a unit makes before it goes into it, unless it declares it.
func (u *planUnit) namespace() (preview.Object, bool) {
	name := u.unit.Target.Namespace
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	for _, o := range u.objects {
		if o.Ref() == (rutter.Ref{Kind: "Namespace", Name: name}) {
			return preview.Object{}, false
		}
	}
	if l := u.unit.Policy.NamespaceLabels; len(l) > 0 {
		ns.SetLabels(l)
	}
	if a := u.unit.Policy.NamespaceAnnotations; len(a) > 0 {
		ns.SetAnnotations(a)
	}
	return preview.Object{Unstructured: ns, Stays: true}, u.makes
}
