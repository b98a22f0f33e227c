// Package inventory reads and writes the marks by which an object is known to
// belong to an application. PURE ring. The formats are other people's
// compatibility contracts; tests pin them.
package inventory

import (
	"strings"

	"github.com/rutterhq/rutter"
)

// TrackingID is Argo CD's tracking annotation (reference 2.11):
// instance:group/kind:namespace/name. A cluster-scoped object carries the
// destination's namespace.
func TrackingID(instance string, ref rutter.Ref, destNamespace string) string {
	ns := ref.Namespace
	if ns == "" {
		ns = destNamespace
	}
	return instance + ":" + ref.Group + "/" + ref.Kind + ":" + ns + "/" + ref.Name
}

// ParseTrackingID is the inverse; ok is false when s is not a tracking id.
func ParseTrackingID(s string) (instance string, ref rutter.Ref, ok bool) {
	parts := strings.SplitN(s, ":", 3) // a name may hold colons, as those of RBAC do
	if len(parts) != 3 || parts[0] == "" || strings.Count(parts[1], "/") != 1 || strings.Count(parts[2], "/") != 1 {
		return "", rutter.Ref{}, false
	}
	ref.Group, ref.Kind, _ = strings.Cut(parts[1], "/")
	ref.Namespace, ref.Name, _ = strings.Cut(parts[2], "/")
	if ref.Kind == "" || ref.Name == "" {
		return "", rutter.Ref{}, false
	}
	return parts[0], ref, true
}

// Tracked is the instance that the tracking annotation of the live object ref
// names, if that is an annotation of this very object: a copied one names another.
// The namespace is not compared where the object has none.
func Tracked(tracking string, ref rutter.Ref) (instance string, ok bool) {
	i, tracked, ok := ParseTrackingID(tracking)
	return i, ok && tracked.Group == ref.Group && tracked.Kind == ref.Kind && tracked.Name == ref.Name &&
		(ref.Namespace == "" || tracked.Namespace == ref.Namespace)
}

// Label is an instance's name as the value of a label, which may be shorter.
func Label(instance string) string {
	const limit = 63
	if len(instance) > limit {
		instance = instance[:limit]
	}
	return strings.TrimRight(instance, "-_.")
}
