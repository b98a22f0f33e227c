package fieldpath

import (
	"fmt"
	"strings"

	"github.com/rutterhq/rutter"
)

// Rule is the narrowest entry of ignoreDifferences that leaves a field of an object
// alone: a pointer where one can name it, a jq expression where the field is in a
// list. False when the path names no field.
func Rule(ref rutter.Ref, path string) (rutter.IgnoreRule, bool) {
	r := rutter.IgnoreRule{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	segments, ok := Parse(path)
	if !ok {
		return r, false
	}
	if p, ok := Pointer(segments); ok {
		r.JSONPointers = []string{p}
	} else {
		r.JQ = []string{JQ(segments)}
	}
	return r, true
}

// Text is a rule as it is written in an Application.
func Text(r rutter.IgnoreRule) string {
	var b strings.Builder
	b.WriteString("spec:\n  ignoreDifferences:\n")
	fmt.Fprintf(&b, "    - group: %s\n      kind: %s\n", quote(r.Group), quote(r.Kind))
	if r.Namespace != "" {
		fmt.Fprintf(&b, "      namespace: %s\n", quote(r.Namespace))
	}
	fmt.Fprintf(&b, "      name: %s\n", quote(r.Name))
	for field, list := range map[string][]string{"jsonPointers": r.JSONPointers, "jqPathExpressions": r.JQ, "managedFieldsManagers": r.Managers} {
		if len(list) > 0 { // a narrowest rule has one of them
			quoted := make([]string, len(list))
			for i, v := range list {
				quoted[i] = quote(v)
			}
			fmt.Fprintf(&b, "      %s: [%s]\n", field, strings.Join(quoted, ", "))
		}
	}
	return b.String()
}
