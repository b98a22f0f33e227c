package compare

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func isSecret(u *unstructured.Unstructured) bool {
	if u == nil || u.GetKind() != "Secret" {
		return false
	}
	return u.GetAPIVersion() == "v1"
}

// FoldSecret returns a Secret with stringData moved into data, where the
// server keeps it; any other object is returned as it is. What is applied
// should be folded too: the server records stringData as the owned field, and
// a later change of the data would then be nobody's. Entries that are no text
// stay behind for the server to refuse.
func FoldSecret(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if !isSecret(obj) {
		return obj
	}
	text, ok := obj.Object["stringData"].(map[string]any)
	if !ok {
		return obj
	}
	old, isMap := obj.Object["data"].(map[string]any)
	if !isMap && obj.Object["data"] != nil {
		return obj
	}
	data, rest := make(map[string]any, len(old)+len(text)), map[string]any{}
	maps.Copy(data, old)
	for k, v := range text {
		if s, ok := v.(string); ok {
			data[k] = base64.StdEncoding.EncodeToString([]byte(s))
		} else {
			rest[k] = v
		}
	}
	out := maps.Clone(obj.Object)
	out["data"] = data
	delete(out, "stringData")
	if len(rest) > 0 {
		out["stringData"] = rest
	}
	return &unstructured.Unstructured{Object: out}
}

// mask hides what a Secret holds. Equal values get equal runs of "+", and
// distinct ones distinct runs, so that a reader still sees what differs.
type mask struct {
	secret bool
	runs   map[string]int
}

func newMask(obj *unstructured.Unstructured) *mask {
	return &mask{secret: isSecret(obj), runs: map[string]int{}}
}

// render shows a value at p; absent is "".
func (m *mask) render(p path, v any, present bool) string {
	if !present {
		return ""
	}
	if !m.hides(p) {
		return showValue(v)
	}
	return showValue(m.cover(p, v))
}

// hides reports whether the value at p, or a part of it, may be secret. Of a
// Secret only what is known to be harmless is shown; a misspelt "stringdata"
// is hidden like the right one.
func (m *mask) hides(p path) bool {
	if len(p) > 0 && p[len(p)-1].name == lastApplied {
		return true // it repeats the whole object; for other kinds it may be long, never useful
	}
	if !m.secret {
		return false
	}
	if len(p) == 0 {
		return true
	}
	switch p[0].name {
	case "apiVersion", "kind", "type", "immutable":
		return false
	case "metadata":
		return len(p) == 1 || p[1].name == "annotations" && (len(p) == 2 || p[2].name != rutter.AnnotationTracking)
	}
	return true
}

// cover replaces every leaf and keeps the names of the keys, which say which
// entry is meant.
func (m *mask) cover(p path, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, child := range v {
			out[k] = m.coverChild(append(slices.Clip(p), step{kind: stepField, name: k}), child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = m.cover(p, child)
		}
		return out
	case nil:
		return nil
	default:
		return m.plus(string(toJSON(v)))
	}
}

// coverChild shows the harmless parts of metadata even where all of it differs.
func (m *mask) coverChild(p path, v any) any {
	if !m.hides(p) {
		return v
	}
	return m.cover(p, v)
}

func (m *mask) plus(value string) string {
	n, ok := m.runs[value]
	if !ok {
		n = 8 + 4*len(m.runs)
		m.runs[value] = n
	}
	return strings.Repeat("+", n)
}
