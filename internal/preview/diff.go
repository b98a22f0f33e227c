package preview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

// step is one step down: into a field, or into an element of a list, which has
// an index and, where the list has such, the keys that name it.
type step struct {
	field string
	keys  []string
	elem  map[string]any
	index int
	list  bool
}

// delta is one difference. Where an element of a list that goes by keys comes
// or goes, index is its place on the side that has it.
type delta struct {
	path           []step
	old, new       any
	hasOld, hasNew bool
}

// differences of two JSON values, by path.
func differences(before, after any) []delta {
	d := &differ{}
	d.value(before, after)
	return d.found
}

type differ struct {
	at    []step
	found []delta
}

func (d *differ) push(s step) { d.at = append(d.at, s) }
func (d *differ) pop()        { d.at = d.at[:len(d.at)-1] }

func (d *differ) add(before any, hadBefore bool, after any, hasAfter bool) {
	d.found = append(d.found, delta{path: slices.Clone(d.at), old: before, new: after, hasOld: hadBefore, hasNew: hasAfter})
}

func (d *differ) value(before, after any) {
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			d.mapping(b, a)
			return
		}
	case []any:
		if a, ok := after.([]any); ok {
			d.list(b, a)
			return
		}
	}
	if !same(before, after) {
		d.add(before, true, after, true)
	}
}

func (d *differ) mapping(before, after map[string]any) {
	names := make([]string, 0, len(before)+len(after))
	for k := range before {
		names = append(names, k)
	}
	for k := range after {
		if _, both := before[k]; !both {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	for _, k := range names {
		b, had := before[k]
		a, has := after[k]
		d.push(step{field: k})
		if had && has {
			d.value(b, a)
		} else {
			d.add(b, had, a, has)
		}
		d.pop()
	}
}

// listKeys are the names by which elements of lists are known, in the order in
// which they are tried.
var listKeys = [][]string{{"name"}, {"mountPath"}, {"containerPort", "protocol"}, {"port", "protocol"}, {"key"}, {"ip"}, {"type"}}

// list pairs elements by their keys where all have some and the common ones
// keep their order, else by place, and where the lengths differ as a whole.
func (d *differ) list(before, after []any) {
	for _, keys := range listKeys {
		b, a := keyed(before, keys), keyed(after, keys)
		if b != nil && a != nil && sameOrder(before, after, b, a, keys) {
			d.keyed(before, after, b, a, keys)
			return
		}
	}
	if len(before) != len(after) {
		d.add(before, true, after, true)
		return
	}
	for i := range before {
		d.push(step{list: true, index: i})
		d.value(before[i], after[i])
		d.pop()
	}
}

func (d *differ) keyed(before, after []any, b, a map[string]int, keys []string) {
	for i, v := range before {
		elem, _ := v.(map[string]any)
		d.push(step{list: true, index: i, keys: keys, elem: elem})
		if at, ok := a[keyOf(elem, keys)]; ok {
			d.value(v, after[at])
		} else {
			d.add(v, true, nil, false)
		}
		d.pop()
	}
	for i, v := range after {
		elem, _ := v.(map[string]any)
		if _, ok := b[keyOf(elem, keys)]; ok {
			continue
		}
		d.push(step{list: true, index: i, keys: keys, elem: elem})
		d.add(nil, false, v, true)
		d.pop()
	}
}

// keyed indexes the elements of a list by key; nil when an element has none, or
// two have the same.
func keyed(list []any, keys []string) map[string]int {
	out := make(map[string]int, len(list))
	for i, v := range list {
		elem, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		if first, ok := elem[keys[0]]; !ok || isCompound(first) {
			return nil
		}
		k := keyOf(elem, keys)
		if _, twice := out[k]; twice {
			return nil
		}
		out[k] = i
	}
	return out
}

func isCompound(v any) bool {
	switch v.(type) {
	case map[string]any, []any, nil:
		return true
	}
	return false
}

func keyOf(elem map[string]any, keys []string) string {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%v\x00", elem[k])
	}
	return b.String()
}

// sameOrder reports whether the elements that both lists have come in one order.
func sameOrder(before, after []any, b, a map[string]int, keys []string) bool {
	last := -1
	for _, v := range after {
		elem, _ := v.(map[string]any)
		at, ok := b[keyOf(elem, keys)]
		if !ok {
			continue
		}
		if at < last {
			return false
		}
		last = at
	}
	return len(before) == len(b) && len(after) == len(a)
}

// same compares scalars in whichever form they were decoded, and all else by content.
func same(a, b any) bool {
	return bytes.Equal(jsonOf(a), jsonOf(b))
}

// jsonOf encodes for people: without the escapes that only HTML needs.
func jsonOf(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte(`"a value that has no JSON form"`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// text writes a path as rutter.FieldDiff does.
func text(path []step) string {
	var b strings.Builder
	for _, s := range path {
		switch {
		case s.list && s.keys == nil:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case s.list:
			b.WriteString("[" + keysText(s) + "]")
		case plain(s.field):
			b.WriteString("." + s.field)
		default:
			b.WriteString("[" + strconv.Quote(s.field) + "]")
		}
	}
	if b.Len() == 0 {
		return "."
	}
	return b.String()
}

func keysText(s step) string {
	var parts []string
	for _, k := range s.keys {
		if v, ok := s.elem[k]; ok {
			parts = append(parts, k+"="+string(jsonOf(v)))
		}
	}
	return strings.Join(parts, ",")
}

// plain reports whether a field needs no quotes in a path.
func plain(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '$'
	}) < 0
}

// maxValue bounds a shown value.
const maxValue = 400

// showBoth renders both values. Of texts of several lines only those that
// differ are shown, behind their number.
func showBoth(d delta) (before, after string) {
	b, isText := d.old.(string)
	a, bothText := d.new.(string)
	if !isText || !bothText || !strings.Contains(b+a, "\n") {
		return show(d.old, d.hasOld), show(d.new, d.hasNew)
	}
	old, now := strings.Split(b, "\n"), strings.Split(a, "\n")
	first := 0
	for first < len(old) && first < len(now) && old[first] == now[first] {
		first++
	}
	last := 0
	for last < len(old)-first && last < len(now)-first && old[len(old)-1-last] == now[len(now)-1-last] {
		last++
	}
	lines := func(all []string) string {
		part := all[first : len(all)-last]
		return show(fmt.Sprintf("line %d: %s", first+1, strings.Join(part, "\n")), true)
	}
	return lines(old), lines(now)
}

// show renders a value; what is long becomes its beginning and its length.
func show(v any, present bool) string {
	if !present {
		return ""
	}
	b := jsonOf(v)
	if len(b) <= maxValue {
		return string(b)
	}
	cut := string(b)
	if s, ok := v.(string); ok {
		cut = s
	}
	cut = strings.ToValidUTF8(cut[:min(len(cut), maxValue)], "")
	return string(jsonOf(fmt.Sprintf("%s… (%d bytes in all)", cut, len(b))))
}

// lastApplied repeats a whole object, Secrets included.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// fieldsOf renders differences of declarations.
func fieldsOf(before, after any) []Field {
	var out []Field
	for _, d := range differences(before, after) {
		f := Field{Path: text(d.path)}
		f.Old, f.New = showBoth(d)
		if n := len(d.path); n > 0 && d.path[n-1].field == lastApplied {
			f.Old, f.New = hidden(d.hasOld), hidden(d.hasNew)
		}
		out = append(out, f)
	}
	return out
}

func hidden(present bool) string {
	if !present {
		return ""
	}
	return `"(not shown)"`
}

// objectFields renders differences of objects. What a Secret holds is hidden by
// the comparison that hides it everywhere.
func objectFields(before, after *unstructured.Unstructured) []Field {
	if !isSecret(before) && !isSecret(after) {
		return fieldsOf(before.Object, after.Object)
	}
	var out []Field
	for _, d := range compare.Predicted(after, before, compare.Options{}).Diffs {
		out = append(out, Field{Path: d.Path, Old: d.Live, New: d.Desired})
	}
	return out
}

func isSecret(u *unstructured.Unstructured) bool {
	return u != nil && u.GetKind() == "Secret" && u.GetAPIVersion() == "v1"
}

// unmarked is an object without the marks of its owner, for a comparison across
// a hand-over, which says that itself.
func unmarked(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	labels, annotations := out.GetLabels(), out.GetAnnotations()
	delete(labels, rutter.LabelUnit)
	delete(annotations, rutter.AnnotationTracking)
	out.SetLabels(labels)
	out.SetAnnotations(annotations)
	return out
}
