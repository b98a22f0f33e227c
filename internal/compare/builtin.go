package compare

import "strings"

// atomicName reports whether the built-in kinds keep a map that is replaced as
// a whole at a field of this name. It is only asked where live ownership
// doesn't say it.
func atomicName(field string) bool {
	switch field {
	case "selector", "labelSelector", "podSelector", "namespaceSelector", "objectSelector", "nodeSelector",
		"nodeSelectorTerms", "scopeSelector", "dataSource", "required":
		return true
	}
	return strings.HasSuffix(field, "Ref")
}

// defaulted reports whether a live field in a map that is owned whole is one
// that the server fills in there. l is the map that holds it.
func (w *localWalk) defaulted(name string, v any, l map[string]any) bool {
	if isDefault(w.typ().Field(name), v) {
		return true
	}
	if !w.builtin {
		return false
	}
	field, parent := w.field()
	switch name {
	case "apiVersion":
		return v == "v1" && (field == "fieldRef" || field == "volumeClaimTemplates")
	case "kind":
		return v == "PersistentVolumeClaim" && field == "volumeClaimTemplates"
	case "status":
		// The server writes {"phase":"Pending"}; nobody can declare anything here.
		return field == "volumeClaimTemplates"
	case "volumeMode":
		return v == "Filesystem" && field == "spec" && parent == "volumeClaimTemplates"
	case "divisor":
		return v == "0" && field == "resourceFieldRef"
	case "protocol":
		return v == "TCP" && field == "ports"
	case "expirationSeconds":
		i, ok := asInt(v)
		return ok && i == 3600 && field == "serviceAccountToken"
	case "scope":
		return v == "*" && field == "rules" && strings.HasSuffix(w.kind, "WebhookConfiguration")
	case "apiGroup":
		if field == "subjects" && (l["kind"] == "User" || l["kind"] == "Group") {
			return v == "rbac.authorization.k8s.io"
		}
		return v == "rbac.authorization.k8s.io" && field == "roleRef"
	}
	return false
}
