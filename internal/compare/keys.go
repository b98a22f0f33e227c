package compare

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// appendKey appends the FieldsV1 name of the element of an associative list,
// as the API server writes it: keys sorted, values as JSON.
func appendKey(b []byte, elem map[string]any, keys []string) []byte {
	b = append(b, "k:{"...)
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, k...)
		b = append(b, '"', ':')
		v, ok := elem[k]
		if !ok {
			v = keyDefault(k)
		}
		b = appendKeyValue(b, v)
	}
	return append(b, '}')
}

func appendKeyValue(b []byte, v any) []byte {
	if s, ok := v.(string); ok && plainJSON(s) {
		b = append(b, '"')
		b = append(b, s...)
		return append(b, '"')
	}
	if i, ok := asInt(v); ok {
		return strconv.AppendInt(b, i, 10)
	}
	return append(b, toJSON(v)...)
}

// plainJSON reports whether s is its own JSON form.
func plainJSON(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// keyDefault is what the schemas of the built-in kinds put in for a list key
// that a manifest leaves out.
func keyDefault(key string) any {
	if key == "protocol" {
		return "TCP"
	}
	return nil
}

// keyNames returns the sorted names in a "k:{…}" entry, nil when it is none.
func keyNames(entry string) []string {
	m := parseKey(entry)
	if m == nil {
		return nil
	}
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

// parseKey decodes a "k:{…}" entry, nil when it is none.
func parseKey(entry string) map[string]any {
	text, ok := strings.CutPrefix(entry, prefixKeyed)
	if !ok {
		return nil
	}
	// The usual entry has one key with a plain text value; the decoder costs a
	// microsecond and this runs for every event.
	if name, value, ok := strings.Cut(text, `":"`); ok &&
		strings.HasPrefix(name, `{"`) && strings.HasSuffix(value, `"}`) {
		name, value = name[2:], value[:len(value)-2]
		if plainJSON(name) && plainJSON(value) {
			return map[string]any{name: value}
		}
	}
	var m map[string]any
	if json.Unmarshal([]byte(text), &m) != nil {
		return nil
	}
	return m
}

// keyMatches reports whether a "k:{…}" entry names elem.
func keyMatches(entry string, elem map[string]any) bool {
	m := parseKey(entry)
	if m == nil {
		return false
	}
	return hasKeys(elem, m)
}

// hasKeys reports whether elem has the given keys' values.
func hasKeys(elem, want map[string]any) bool {
	for k, v := range want {
		have, ok := elem[k]
		if !ok {
			have = keyDefault(k)
		}
		if !sameScalar(have, v) {
			return false
		}
	}
	return true
}

// sameKeys reports whether two elements are the same one by keys.
func sameKeys(a, b map[string]any, keys []string) bool {
	for _, k := range keys {
		av, ok := a[k]
		if !ok {
			av = keyDefault(k)
		}
		bv, ok := b[k]
		if !ok {
			bv = keyDefault(k)
		}
		if !sameScalar(av, bv) {
			return false
		}
	}
	return true
}

// findElem returns the index of the only element of list with the keys of
// elem, -1 when there is none. Several are as good as none: unique is false.
func findElem(list []any, elem map[string]any, keys []string) (at int, unique bool) {
	at, unique = -1, true
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok || !sameKeys(m, elem, keys) {
			continue
		}
		if at >= 0 {
			return at, false
		}
		at = i
	}
	return at, unique
}

// builtinKeys are the keys of the associative lists of the built-in kinds, by
// field name. They are only asked when live ownership doesn't say it.
func builtinKeys(kind, field, parent string, list []any) []string {
	switch field {
	case "containers", "initContainers", "ephemeralContainers", "volumes", "env",
		"imagePullSecrets", "resourceClaims", "schedulingGates", "webhooks", "secrets", "matchConditions", "variables", "drivers":
		return present(list, "name")
	case "volumeMounts":
		return present(list, "mountPath")
	case "volumeDevices":
		return present(list, "devicePath")
	case "hostAliases":
		return present(list, "ip")
	case "topologySpreadConstraints":
		return present(list, "topologyKey", "whenUnsatisfiable")
	case "ownerReferences":
		if parent == "metadata" {
			return present(list, "uid")
		}
	case "ports":
		if kind == "Service" && parent == "spec" {
			return portKeys(list, "port")
		}
		return portKeys(list, "containerPort")
	}
	return nil
}

// present returns keys when every element of list has all of them.
func present(list []any, keys ...string) []string {
	for _, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		for _, k := range keys {
			if _, ok := m[k]; !ok {
				return nil
			}
		}
	}
	return keys
}

// portKeys are the keys of ports that are told apart by number and protocol.
func portKeys(list []any, port string) []string {
	if present(list, port) == nil {
		return nil
	}
	return []string{port, "protocol"}
}
