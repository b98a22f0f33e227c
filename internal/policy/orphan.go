package policy

import (
	"slices"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// WatchesOrphans reports whether the project wants to know of objects that no
// Application declares (6.6), and whether it wants its Applications to warn of them.
func (p *Project) WatchesOrphans() (watches, warns bool) {
	o := p.own.Spec.OrphanedResources
	return o != nil, o != nil && o.Warn != nil && *o.Warn
}

// Orphan reports whether an object that has a namespace, no owner and no
// Application counts as one: the project may manage it and does not ignore it,
// and Kubernetes does not make it in every namespace.
func (p *Project) Orphan(cluster rutter.ClusterInfo, ref rutter.Ref) bool {
	return !builtIn(ref) && !slices.ContainsFunc(p.ignored, func(i ignoredOrphan) bool { return i.match(ref) }) && p.CheckResource(cluster, ref, true) == nil
}

// builtIn objects are made by Kubernetes itself.
func builtIn(ref rutter.Ref) bool {
	switch ref.Kind {
	case "Service":
		return ref.Group == "" && ref.Namespace == "default" && ref.Name == "kubernetes"
	case "ServiceAccount":
		return ref.Group == "" && ref.Name == "default"
	case "ConfigMap":
		return ref.Group == "" && ref.Name == "kube-root-ca.crt"
	case "Event": // of both groups: nobody declares one
		return true
	case "Endpoints", "EndpointSlice", "Lease", "PodMetrics": // records of controllers
		return true
	}
	return false
}

// ignoredOrphan is an entry of spec.orphanedResources.ignore: an empty kind or
// name is any, an empty group the core group only.
type ignoredOrphan struct{ group, kind, name pattern }

func ignoredOrphans(o *v1alpha1.OrphanedResources) []ignoredOrphan {
	if o == nil {
		return nil
	}
	out := make([]ignoredOrphan, 0, len(o.Ignore))
	for _, k := range o.Ignore {
		out = append(out, ignoredOrphan{plainPattern(k.Group), plainPattern(k.Kind), plainPattern(k.Name)})
	}
	return out
}

func (i ignoredOrphan) match(ref rutter.Ref) bool {
	return i.group.match(ref.Group).allows() && (i.kind.text == "" || i.kind.match(ref.Kind).allows()) && (i.name.text == "" || i.name.match(ref.Name).allows())
}
