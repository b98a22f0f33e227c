package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// deletions that take more with them than the object itself.
var deletions = map[[2]string][2]string{
	{"", "Namespace"}:             {"delete-namespace", "everything in it is deleted with it"},
	{"", "PersistentVolumeClaim"}: {"delete-pvc", "its data may be deleted with it"},
	{"", "PersistentVolume"}:      {"delete-pv", "its data may be deleted with it"},
	{"apps", "StatefulSet"}:       {"delete-statefulset", "what it keeps state for stops"},
}

// objectRisks judges every change of an object.
func objectRisks(changes []ObjectChange) []Risk {
	var out []Risk
	for _, c := range changes {
		add := func(rule, format string, args ...any) {
			out = append(out, Risk{Rule: rule, Message: fmt.Sprintf(format, args...), Cluster: c.Cluster, Object: c.Ref().String(), Application: c.Application})
		}
		switch c.Verb {
		case Delete:
			if d, ok := deletions[[2]string{c.Group, c.Kind}]; ok {
				add(d[0], "%s is deleted: %s", objectName(c.Ref()), d[1])
			}
		case Add, Change:
			changeRisks(c, add)
		case Leave, Move:
		}
	}
	return out
}

// heldRisks are those of the removals that a budget holds back: whoever approves
// them has to know.
func (c *comparison) heldRisks(h Held) []Risk {
	if h.ObjectsStay {
		return nil
	}
	prefix := h.Set[:strings.LastIndex(h.Set, "/")+1] // Applications are in the namespace of their set
	var gone []ObjectChange
	for _, name := range h.Applications {
		u := c.base.byName[prefix+name]
		if u == nil || u.blind() || u.Orphans != "" {
			continue
		}
		for _, o := range u.Objects {
			if o.Hook || o.Stays || o.Refused != "" {
				continue
			}
			ref := o.Ref()
			gone = append(gone, ObjectChange{Verb: Delete, Cluster: u.clusterName(), Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Application: u.Name})
		}
	}
	return objectRisks(gone)
}

// changeRisks judges what an apply would write.
func changeRisks(c ObjectChange, add func(rule, format string, args ...any)) {
	name := objectName(c.Ref())
	if c.Before != nil && !c.Hook { // a hook is made anew
		for _, field := range immutableChanges(c.Before, c.After) {
			add("immutable-field", "%s: %s cannot be changed: the API server refuses it until the object is deleted and made anew", name, field)
		}
		if before, after := replicas(c.Before), replicas(c.After); after == 0 && before != 0 && scales(c.Ref()) {
			add("replicas-zero", "%s is scaled to 0", name)
		}
		if was, is := serviceType(c.Before), serviceType(c.After); c.Group == "" && c.Kind == "Service" && was != is {
			add("service-type", "%s becomes %s, it was %s: it is reached at other addresses", name, is, was)
		}
	}
	if c.Kind == "ClusterRole" && c.Group == rbacGroup {
		if wider := widened(c.Before, c.After); len(wider) > 0 {
			add("cluster-role-widened", "%s allows more in the whole cluster: %s", name, wider)
		}
	}
	if c.Kind == "ClusterRoleBinding" && c.Group == rbacGroup {
		if subjects := newSubjects(c.Before, c.After); roleOf(c.After) == "cluster-admin" && subjects != "" {
			add("cluster-admin", "%s makes %s an administrator of the whole cluster", name, subjects)
		}
	}
}

// scales reports whether a kind has replicas.
func scales(ref rutter.Ref) bool {
	return ref.Group == "apps" && slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet"}, ref.Kind) || ref.Group == "" && ref.Kind == "ReplicationController"
}

// replicas are those that are declared; -1 when that is left to others.
func replicas(u *unstructured.Unstructured) int64 {
	switch v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "replicas"); n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return -1
}

// serviceType is how a Service is reached; the server's default where nothing is declared.
func serviceType(u *unstructured.Unstructured) string {
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "type")
	return cmp.Or(kind, "ClusterIP")
}

// unitRisks are those of whole Applications.
func (c *comparison) unitRisks() []Risk {
	var out []Risk
	for _, u := range c.head.units {
		before := c.base.byName[u.Name]
		if before != nil && before.Server != u.Server {
			out = append(out, Risk{Rule: "moves-cluster", Message: "it goes to another cluster: its objects on " + before.clusterName() + " stay there and are nobody's, and their data does not come along",
				Cluster: u.clusterName(), Application: u.Name})
		}
		switch {
		case before == nil:
		case u.Vanished && !before.Vanished:
			message := "what its source names is gone: its objects stay, and nothing of it is synced any more"
			if u.Prunes {
				message += "; it prunes, so that they are deleted as soon as the source is there and empty"
			}
			out = append(out, Risk{Rule: "source-gone", Message: message, Cluster: u.clusterName(), Application: u.Name})
		case !u.blind() && !before.blind() && len(u.Objects) == 0 && len(before.Objects) > 0:
			out = append(out, Risk{Rule: "renders-nothing", Message: fmt.Sprintf("it rendered %d objects and renders none any more", len(before.Objects)),
				Cluster: u.clusterName(), Application: u.Name})
		}
	}
	return out
}
