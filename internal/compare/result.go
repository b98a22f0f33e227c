package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/schema"
)

const (
	// maxDiffs bounds a verdict: it is remembered for every object that differs.
	maxDiffs = 50
	// maxValue bounds one shown value, so that a large ConfigMap doesn't stay in memory.
	maxValue = 1024
)

// Options says whose fields are compared and what is left out.
type Options struct {
	// Manager is the field manager whose Apply entry counts as ours; empty means rutter.FieldManager.
	Manager string
	// Rules are what is left out of every comparison.
	Rules *Rules
	// Types are what is known of the objects' types; nil leaves to the server
	// what it takes a type to decide.
	Types *Types
	// Type is the type of the object, where it is of a kind that Types don't know.
	Type *schema.Type
	// Webhooks counts what an apply would change of fields that are not ours, which
	// is a webhook's doing; only Predicted can tell.
	Webhooks bool
	// Final says that there is no server to ask, so that a doubt is no difference.
	Final bool
}

func (o Options) manager() string { return cmp.Or(o.Manager, rutter.FieldManager) }

// Result is the outcome of a comparison.
type Result struct {
	Equal bool
	// Owned says, beside Equal of Local, that everything declared belongs to our
	// manager. Only then does an unchanged OwnedHash say that the object is still
	// equal: a field that somebody wrote back by hand as it was is that one's, and
	// may be written again without the hash showing it.
	Owned bool
	// Diffs are sorted by path and at most 51: a last entry without values says
	// how many more there are.
	Diffs []rutter.FieldDiff
}

// finding is a difference before it is rendered; rendering is put off until
// the findings are sorted and cut, because values can be large.
type finding struct {
	path    path
	text    string
	desired any
	live    any
	// hasDesired and hasLive tell null from absent.
	hasDesired, hasLive bool
}

// findings collects what a walk finds.
type findings struct {
	list []finding
	at   path
	// status says that the status is compared like anything else.
	status bool
}

func (f *findings) push(s step) { f.at = append(f.at, s) }
func (f *findings) pop()        { f.at = f.at[:len(f.at)-1] }

// field is the name of the innermost field on the way, and parent the one above it.
func (f *findings) field() (field, parent string) {
	for _, v := range slices.Backward(f.at) {
		if v.kind != stepField {
			continue
		}
		if field != "" {
			return field, v.name
		}
		field = v.name
	}
	return field, ""
}

// lastApplied says that a field is kubectl's annotation, which describes the
// past of the object and not its state.
func (f *findings) lastApplied(name string) bool {
	return name == lastApplied && len(f.at) == 2 && f.at[1].name == "annotations"
}

func (f *findings) add(desired any, hasDesired bool, live any, hasLive bool) {
	p := slices.Clone(f.at)
	f.list = append(f.list, finding{
		path: p, desired: desired, hasDesired: hasDesired, live: live, hasLive: hasLive,
	})
}

// result sorts, cuts, masks and renders.
func (f *findings) result(live *unstructured.Unstructured) Result {
	if len(f.list) == 0 {
		return Result{Equal: true}
	}
	mask := newMask(live)
	for i := range f.list {
		f.list[i].text = f.list[i].path.String()
	}
	slices.SortStableFunc(f.list, func(a, b finding) int { return cmp.Compare(a.text, b.text) })
	f.list = slices.CompactFunc(f.list, func(a, b finding) bool { return a.text == b.text })

	shown := f.list[:min(len(f.list), maxDiffs)]
	diffs := make([]rutter.FieldDiff, 0, len(shown)+1)
	for _, d := range shown {
		diffs = append(diffs, rutter.FieldDiff{
			Path:    d.text,
			Desired: mask.render(d.path, d.desired, d.hasDesired),
			Live:    mask.render(d.path, d.live, d.hasLive),
			Manager: ownerOf(live, d.path),
		})
	}
	if more := len(f.list) - len(shown); more > 0 {
		diffs = append(diffs, rutter.FieldDiff{Path: fmt.Sprintf("and %d more", more)})
	}
	return Result{Diffs: diffs}
}

// showValue renders a value as JSON of a bounded size: what is longer becomes
// a JSON string with its beginning and its length.
func showValue(v any) string {
	b := toJSON(v)
	if len(b) <= maxValue {
		return string(b)
	}
	text := string(b)
	if s, ok := v.(string); ok {
		text = s
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxValue)], "")
	return string(toJSON(fmt.Sprintf("%s… (%d bytes in all)", text, len(b))))
}
