package helm

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	release "helm.sh/helm/v4/pkg/release/v1"

	"github.com/rutterhq/rutter"
)

// findRandom compares two renders of the same inputs, notes on each object of
// the first which fields came out differently, and returns a warning for each
// of these objects.
func findRandom(first, second []rutter.Object) ([]string, error) {
	if len(first) != len(second) {
		return nil, notRepeatable("renders %d objects the first time and %d the second", len(first), len(second))
	}
	var warnings []string
	for i := range first {
		a, b := &first[i], second[i]
		if !sameObject(*a, b) {
			return nil, notRepeatable("renders %s %s the first time and another object the second", a.Ref(), inFile(a.Origin))
		}
		if differing("", a.Object, b.Object, &a.Random); len(a.Random) == 0 {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s: %s comes out differently each time it is rendered: the first value that is applied is kept",
			a.Ref(), strings.Join(a.Random, ", ")))
	}
	return warnings, nil
}

// sameObject reports whether two objects are the same one. A hook may have
// another name each time: it is made anew whenever it runs.
func sameObject(a, b rutter.Object) bool {
	x, y := a.Ref(), b.Ref()
	if a.GetAnnotations()[release.HookAnnotation] != "" && b.GetAnnotations()[release.HookAnnotation] != "" {
		x.Name, y.Name = "", ""
	}
	return x == y && a.GetAPIVersion() == b.GetAPIVersion()
}

func notRepeatable(format string, args ...any) error {
	return rutter.Errorf(rutter.CodeInvalid, "the chart names its objects by chance or by the time: it "+format+
		". Objects that are new each time cannot be kept in sync: give them fixed names", args...)
}

func inFile(o rutter.Origin) string {
	if o.File == "" {
		return ""
	}
	return "(" + o.File + ")"
}

// differing appends JSON pointers to the fields that differ, the deepest there are.
func differing(at string, a, b any, out *[]string) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			for _, k := range union(x, y) {
				va, inA := x[k]
				vb, inB := y[k]
				if p := at + "/" + escapePointer(k); inA != inB {
					*out = append(*out, p)
				} else {
					differing(p, va, vb, out)
				}
			}
			return
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				differing(at+"/"+strconv.Itoa(i), x[i], y[i], out)
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		*out = append(*out, at)
	}
}

// union returns the keys of both, sorted.
func union(a, b map[string]any) []string {
	keys := make([]string, 0, len(a))
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func escapePointer(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
