package compare

import "strings"

// atomicName reports whether the built-in kinds keep a map that is replaced as
// a whole at a field of this name. It is only asked where live ownership
// doesn't say it.
func atomicName(field string) bool {
	switch field {
	case "selector", "labelSelector", "podSelector", "namespaceSelector", "objectSelector", "nodeSelector",
		"nodeSelectorTerms", "scopeSelector", "dataSource", "required", "matchConstraints", "matchResources", "paramKind",
		"preference", "regarding", "nodeTopology":
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
		return field == "volumeClaimTemplates" || v == "True" && field == "onPodConditions"
	case "phase":
		return field == "status" && parent == "volumeClaimTemplates"
	case "matchPolicy":
		return v == "Equivalent" && matchResources(field)
	case "namespaceSelector", "objectSelector":
		m, ok := v.(map[string]any)
		return ok && len(m) == 0 && matchResources(field)
	case "allocationMode":
		return v == "ExactCount" && deviceRequest(field)
	case "count":
		i, ok := asInt(v)
		return ok && i == 1 && deviceRequest(field)
	case "default":
		// What a container is limited to, where only its maximum is declared.
		return w.kind == "LimitRange" && field == "limits" && sameQuantities(v, l["max"])
	case "defaultRequest":
		return w.kind == "LimitRange" && field == "limits" && sameQuantities(v, l["default"], l["max"])
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
		return v == "*" && (field == "rules" && strings.HasSuffix(w.kind, "WebhookConfiguration") || field == "resourceRules" || field == "excludeResourceRules")
	case "apiGroup":
		if field == "subjects" && (l["kind"] == "User" || l["kind"] == "Group") {
			return v == "rbac.authorization.k8s.io"
		}
		return v == "rbac.authorization.k8s.io" && field == "roleRef"
	}
	return false
}

// filledIn reports whether a live value is what the server puts in the place of
// a declared one that is empty.
func (w *localWalk) filledIn(d, l any) bool {
	field, parent := w.field()
	list, isList := d.([]any)
	switch {
	case zeroScalar(d):
		return isDefault(w.typ(), l) || field == "nodePort" && w.kind == "Service"
	case isList && len(list) == 0 && field == "metrics" && parent == "spec" && w.kind == "HorizontalPodAutoscaler":
		return sameValue(l, []any{map[string]any{"type": "Resource", "resource": map[string]any{
			"name": "cpu", "target": map[string]any{"type": "Utilization", "averageUtilization": int64(80)},
		}}})
	}
	return false
}

// matchResources are the fields that say what an admission policy is about.
func matchResources(field string) bool {
	return field == "matchResources" || field == "matchConstraints"
}

// deviceRequest are the fields that ask for devices.
func deviceRequest(field string) bool { return field == "exactly" || field == "firstAvailable" }

// sameQuantities reports whether a map of quantities holds those of any of the
// others.
func sameQuantities(v any, others ...any) bool {
	m, ok := v.(map[string]any)
	for _, other := range others {
		o, isMap := other.(map[string]any)
		same := ok && isMap && len(m) == len(o)
		for name := range m {
			same = same && sameQuantity(m[name], o[name])
		}
		if same {
			return true
		}
	}
	return false
}
