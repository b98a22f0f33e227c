package explain

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter/internal/fieldpath"
)

// Writer is an entry of an object's managedFields.
type Writer struct {
	Manager     string
	Operation   string
	Subresource string
	// At is when it last wrote any of its fields; zero when the entry has no time.
	At     time.Time
	fields map[string]any
}

// WritersOf are the entries of a live object that are not about its status.
func WritersOf(live *unstructured.Unstructured) []Writer {
	if live == nil {
		return nil
	}
	var out []Writer
	for _, e := range live.GetManagedFields() {
		if e.Subresource == "status" || e.FieldsV1 == nil {
			continue
		}
		w := Writer{Manager: e.Manager, Operation: string(e.Operation), Subresource: e.Subresource}
		if e.Time != nil {
			w.At = e.Time.Time
		}
		if json.Unmarshal(e.FieldsV1.GetRawBytes(), &w.fields) != nil {
			continue // nothing can be said of what it owns
		}
		out = append(out, w)
	}
	return out
}

// writerOf is the entry of a manager that owns a field, or else its latest; nil
// when it has none.
func writerOf(writers []Writer, manager string, path []fieldpath.Segment) *Writer {
	var owner, latest *Writer
	for i := range writers {
		w := &writers[i]
		if w.Manager != manager {
			continue
		}
		if w.owns(path) && (owner == nil || w.At.After(owner.At)) {
			owner = w
		}
		if latest == nil || w.At.After(latest.At) {
			latest = w
		}
	}
	if owner != nil {
		return owner
	}
	return latest
}

// owns reports whether the entry names the field, or something in it.
func (w *Writer) owns(path []fieldpath.Segment) bool {
	at := w.fields
	for _, s := range path {
		var next any
		var ok bool
		switch {
		case s.Field != "":
			next, ok = at["f:"+s.Field]
		case s.Value != "":
			next, ok = at["v:"+s.Value]
		case len(s.Keys) > 0:
			next, ok = element(at, s.Keys)
		default:
			return true // a list that is owned as a whole
		}
		if !ok {
			return false
		}
		if at, ok = next.(map[string]any); !ok || len(at) == 0 {
			return true // what is above a field is owned as a whole
		}
	}
	return len(path) > 0
}

// element is what is owned of a list's element.
func element(at map[string]any, keys []fieldpath.Key) (any, bool) {
	for name, v := range at {
		if len(name) < 2 || name[:2] != "k:" {
			continue
		}
		var have map[string]json.RawMessage
		if json.Unmarshal([]byte(name[2:]), &have) != nil {
			continue
		}
		same := len(have) == len(keys)
		for _, k := range keys {
			same = same && string(have[k.Name]) == k.Value
		}
		if same {
			return v, true
		}
	}
	return nil, false
}
