package compare

import (
	"encoding/base64"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// sameScalar reports whether two leaves are the same whichever way a number
// was decoded. Maps and lists are never the same here.
func sameScalar(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		s, ok := b.(string)
		return ok && a == s
	case bool:
		t, ok := b.(bool)
		return ok && a == t
	case map[string]any, []any:
		return false
	}
	if x, ok := asInt(a); ok {
		y, ok := asInt(b)
		return ok && x == y
	}
	x, ok := asFloat(a)
	if !ok {
		return false
	}
	y, ok := asFloat(b)
	return ok && x == y
}

// sameValue is sameScalar for whole values.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		m, ok := b.(map[string]any)
		if !ok || len(a) != len(m) {
			return false
		}
		for k, v := range a {
			other, ok := m[k]
			if !ok || !sameValue(v, other) {
				return false
			}
		}
		return true
	case []any:
		l, ok := b.([]any)
		if !ok || len(a) != len(l) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], l[i]) {
				return false
			}
		}
		return true
	default:
		return sameScalar(a, b)
	}
}

// zeroScalar is a value that Go's omitempty drops.
func zeroScalar(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case bool:
		return !v
	}
	i, ok := asInt(v)
	return ok && i == 0
}

// freeForm are maps of the built-in kinds whose keys users choose: their
// entries have no type beyond string, whatever the key is called.
func freeForm(field string) bool {
	switch field {
	case "labels", "annotations", "data", "stringData", "binaryData", "matchLabels", "nodeSelector", "selector",
		"parameters", "options", "volumeAttributes":
		return true
	}
	return false
}

// quantityField reports whether the built-in kinds keep a quantity at field.
func quantityField(kind, field, parent string) bool {
	switch parent {
	case "limits", "requests", "capacity", "allocatable", "hard", "used", "podFixed", "default", "defaultRequest",
		"max", "min", "maxLimitRequestRatio", "allocatedResources":
		return true
	}
	if freeForm(parent) {
		return false
	}
	switch field {
	case "sizeLimit", "divisor", "averageValue", "maximumVolumeSize":
		return true
	case "value":
		return kind == "HorizontalPodAutoscaler"
	}
	return false
}

// sameQuantity compares two quantities by value: the server writes 1000m as 1.
func sameQuantity(a, b any) bool {
	x, ok := asQuantity(a)
	if !ok {
		return false
	}
	y, ok := asQuantity(b)
	return ok && x.Cmp(y) == 0
}

func asQuantity(v any) (resource.Quantity, bool) {
	s, ok := v.(string)
	if !ok {
		f, isNumber := asFloat(v)
		if !isNumber {
			return resource.Quantity{}, false
		}
		s = strconv.FormatFloat(f, 'f', -1, 64)
	}
	q, err := resource.ParseQuantity(s)
	return q, err == nil
}

// sameBase64 compares the bytes that two texts stand for: Git often holds
// wrapped lines, the server never does.
func sameBase64(a, b any) bool {
	x, ok := a.(string)
	if !ok {
		return false
	}
	y, ok := b.(string)
	if !ok {
		return false
	}
	p, err := base64.StdEncoding.DecodeString(strings.TrimSpace(x))
	if err != nil {
		return false
	}
	q, err := base64.StdEncoding.DecodeString(strings.TrimSpace(y))
	return err == nil && string(p) == string(q)
}
