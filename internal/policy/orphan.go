package policy

import (
	"slices"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// LiveObject is what is known of an object that lives on a cluster.
type LiveObject struct {
	rutter.Ref

	// Owned says that another object owns it: it is not to be declared.
	Owned bool
	// Managed says that some Application that exists manages it.
	Managed bool
}

// WatchesOrphans reports whether the project wants to know of objects that no
// Application declares (6.6), and whether it wants its Applications to warn of them.
func (p *Project) WatchesOrphans() (watches, warns bool) {
	o := p.own.Spec.OrphanedResources
	return o != nil, o != nil && o.Warn != nil && *o.Warn
}

// Orphans are the objects in the namespace of an Application's destination that
// no Application manages and the project may manage, in order: namespaced ones
// without an owner, but for those that Kubernetes makes in every namespace and
// those that the project ignores. None, where the project does not watch for them.
func (p *Project) Orphans(cluster rutter.ClusterInfo, namespace string, live []LiveObject) []rutter.Ref {
	if watches, _ := p.WatchesOrphans(); !watches || namespace == "" {
		return nil
	}
	var out []rutter.Ref
	ignore := ignoredOrphans(p.own.Spec.OrphanedResources.Ignore)
	for _, o := range live {
		if o.Namespace != namespace || o.Owned || o.Managed || builtIn(o.Ref) || p.CheckResource(cluster, o.Ref, true) != nil {
			continue
		}
		if !slices.ContainsFunc(ignore, func(i ignoredOrphan) bool { return i.match(o.Ref) }) {
			out = append(out, o.Ref)
		}
	}
	slices.SortFunc(out, rutter.Ref.Compare)
	return out
}

// builtIn objects are made by Kubernetes itself.
func builtIn(ref rutter.Ref) bool {
	return ref.Group == "" && (ref.Kind == "Service" && ref.Namespace == "default" && ref.Name == "kubernetes" ||
		ref.Kind == "ServiceAccount" && ref.Name == "default" || ref.Kind == "ConfigMap" && ref.Name == "kube-root-ca.crt")
}

// ignoredOrphan is an entry of spec.orphanedResources.ignore: an empty kind or
// name is any, an empty group the core group only.
type ignoredOrphan struct{ group, kind, name pattern }

func ignoredOrphans(keys []v1alpha1.OrphanedResourceKey) []ignoredOrphan {
	out := make([]ignoredOrphan, 0, len(keys))
	for _, k := range keys {
		out = append(out, ignoredOrphan{plainPattern(k.Group), plainPattern(k.Kind), plainPattern(k.Name)})
	}
	return out
}

func (i ignoredOrphan) match(ref rutter.Ref) bool {
	return i.group.match(ref.Group).allows() && (i.kind.text == "" || i.kind.match(ref.Kind).allows()) && (i.name.text == "" || i.name.match(ref.Name).allows())
}
