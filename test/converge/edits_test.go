package converge

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

// hand is who edits.
const hand = "kubectl-edit"

// ownedSet is what the server says that we own, read without internal/compare.
func ownedSet(t *testing.T, u *unstructured.Unstructured) *fieldpath.Set {
	t.Helper()
	out := &fieldpath.Set{}
	for _, e := range u.GetManagedFields() {
		if e.Manager != rutter.FieldManager || e.Operation != metav1.ManagedFieldsOperationApply || e.Subresource != "" {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(e.FieldsV1.Raw)); err != nil { //nolint:staticcheck // as it was sent
			t.Fatal(err)
		}
		out = out.Union(set)
	}
	return out
}

// place is a value in a live object: where it is, and what a difference there is called.
type place struct {
	at   []any
	name string
}

// places are the scalars below the leaves of a set.
func places(u *unstructured.Unstructured, set *fieldpath.Set) (out []place) {
	set.Leaves().Iterate(func(p fieldpath.Path) {
		if at, name, ok := resolve(u.Object, p); ok && !serversOwn(at) {
			scalars(valueAt(u.Object, at), at, func(at []any, _ any) { out = append(out, place{at: at, name: name}) })
		}
	})
	return out
}

// serversOwn are places that say who the object is.
func serversOwn(at []any) bool {
	if len(at) < 2 || at[0] != "metadata" {
		return len(at) == 1 && (at[0] == "apiVersion" || at[0] == "kind") || len(at) > 0 && at[0] == "status"
	}
	return at[1] != "labels" && at[1] != "annotations" && at[1] != "finalizers"
}

// resolve finds the place of a path in an object.
func resolve(v any, p fieldpath.Path) (at []any, name string, ok bool) {
	for _, e := range p {
		switch {
		case e.FieldName != nil:
			m, isMap := v.(map[string]any)
			if !isMap || m[*e.FieldName] == nil {
				return nil, "", false
			}
			v = m[*e.FieldName]
			at, name = append(at, *e.FieldName), name+fieldName(*e.FieldName)
		case e.Key != nil:
			i := slices.IndexFunc(list(v), func(elem any) bool {
				m, _ := elem.(map[string]any)
				return !slices.ContainsFunc(*e.Key, func(f fieldNameValue) bool { return fmt.Sprint(m[f.Name]) != fmt.Sprint(f.Value.Unstructured()) })
			})
			if i < 0 {
				return nil, "", false
			}
			v = list(v)[i]
			var keys []string
			for _, f := range *e.Key {
				keys = append(keys, f.Name+"="+jsonOf(f.Value.Unstructured()))
			}
			slices.Sort(keys)
			at, name = append(at, i), name+"["+strings.Join(keys, ",")+"]"
		case e.Value != nil:
			want := (*e.Value).Unstructured()
			i := slices.IndexFunc(list(v), func(elem any) bool { return fmt.Sprint(elem) == fmt.Sprint(want) })
			if i < 0 {
				return nil, "", false
			}
			v = list(v)[i]
			at, name = append(at, i), name+"[="+jsonOf(want)+"]"
		default:
			return nil, "", false
		}
	}
	return at, name, true
}

func fieldName(name string) string {
	plain := strings.IndexFunc(name, func(r rune) bool {
		known := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '$'
		return !known
	}) < 0
	if plain && name != "" {
		return "." + name
	}
	return fmt.Sprintf("[%q]", name)
}

// edit is an edit of a live object, and what the server would make of it.
type edit struct {
	change, live *unstructured.Unstructured
	to           any
}

// edited returns an edit by hand that is not done, with the first value that the
// server takes and keeps.
func (s *suite) edited(t *testing.T, x *shape, p place) (edit, bool) {
	t.Helper()
	before := valueAt(x.live.Object, p.at)
	try := candidates(before)
	for i := 0; i < len(try); i++ {
		v := try[i]
		change := x.live.DeepCopy()
		put(change.Object, p.at, v)
		answer, err := s.resource(t, x).Update(t.Context(), change, metav1.UpdateOptions{FieldManager: hand, DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil && jsonOf(valueAt(answer.Object, p.at)) != jsonOf(before):
			return edit{change: change, live: answer, to: v}, true
		case err != nil && final(err):
			return edit{}, false
		case err != nil && i == 0:
			try = slices.Insert(try, 1, supported(err)...)
		}
	}
	return edit{}, false
}

// ownedEdits: each field that is ours, edited by hand, is found and named.
func (s *suite) ownedEdits(t *testing.T, x *shape) {
	t.Helper()
	ours := ownedSet(t, x.live)
	hash, ok := compare.OwnedHash(x.live, rutter.FieldManager, nil)
	if !ok {
		t.Fatal("nothing is ours")
	}
	for _, p := range places(x.live, ours) {
		e, ok := s.edited(t, x, p)
		if !ok {
			s.refused.Add(1)
			continue
		}
		if ownedSet(t, e.live).Equals(ours) {
			continue // the server does not count it as a change of ours
		}
		s.owned.Add(1)
		s.found(t, x, p, e.live, x.told, hash, fmt.Sprintf("%s = %v by hand", p.name, e.to))
		if s.offline(x, e.live).Equal && !marks(p.at) && !null(x.sent.Object, p.at) {
			s.missedDrift.Add(1)
			t.Errorf("%s = %v by hand: offline says equal", p.name, e.to)
		}
	}
}

// found makes sure that an edit of a field that is ours is drift, by that name
// and with who made it.
func (s *suite) found(t *testing.T, x *shape, p place, live, told *unstructured.Unstructured, hash, what string) {
	t.Helper()
	opts := compare.Options{Types: s.types}
	if after, _ := compare.OwnedHash(live, rutter.FieldManager, nil); after == hash {
		s.missedDrift.Add(1)
		t.Errorf("%s: the hash of what is ours is the same", what)
		return
	}
	if compare.Local(x.sent, live, compare.Options{}).Equal {
		s.missedDrift.Add(1)
		t.Errorf("%s: Local without types says equal", what)
	}
	for form, r := range map[string]compare.Result{"Local": compare.Local(x.sent, live, opts), "Predicted": compare.Predicted(told, live, opts)} {
		if r.Equal {
			s.missedDrift.Add(1)
			t.Errorf("%s: %s says equal", what, form)
			continue
		}
		named := func(d rutter.FieldDiff) bool {
			return (strings.HasPrefix(p.name, d.Path) || strings.HasPrefix(d.Path, p.name)) && (d.Live == "" || d.Manager == hand)
		}
		if !slices.ContainsFunc(r.Diffs, named) {
			s.unnamed.Add(1)
			t.Errorf("%s: %s does not name it: %+v", what, form, r.Diffs)
		}
	}
}

// foreignEdits: whatever is not ours may be edited, added or injected.
func (s *suite) foreignEdits(t *testing.T, x *shape) {
	t.Helper()
	ours := ownedSet(t, x.live)
	mine := map[string]bool{}
	for _, p := range places(x.live, ours) {
		mine[jsonOf(p.at)] = true
	}
	hash, _ := compare.OwnedHash(x.live, rutter.FieldManager, nil)
	judge := func(what string, e edit) {
		live := e.live
		if !ownedSet(t, live).Equals(ours) {
			return // the server has changed something of ours with it
		}
		s.foreign.Add(1)
		after, _ := compare.OwnedHash(live, rutter.FieldManager, nil)
		local := compare.Local(x.sent, live, compare.Options{Types: s.types})
		predicted := compare.Predicted(x.told, live, compare.Options{Types: s.types})
		if r := s.offline(x, live); !r.Equal {
			s.falseDrift.Add(1)
			t.Errorf("%s: offline takes it for drift: %+v", what, r.Diffs)
		}
		if after == hash && (local.Equal || predicted.Equal) {
			return
		}
		if r := s.reallyEdited(t, x, e.change); !r.Equal {
			s.falseDrift.Add(1)
			t.Errorf("%s: is taken for drift: %+v", what, r.Diffs)
		}
	}
	scalars(x.live.Object, nil, func(at []any, _ any) {
		if mine[jsonOf(at)] || serversOwn(at) {
			return
		}
		if e, ok := s.edited(t, x, place{at: at}); ok {
			judge(fmt.Sprintf("%v = %v", at, e.to), e)
		}
	})
	for what, change := range injections(x.live) {
		live, err := s.resource(t, x).Update(t.Context(), change, metav1.UpdateOptions{FieldManager: "injector", DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			judge(what, edit{change: change, live: live})
		}
	}
}

// reallyEdited makes an edit that was only tried, for the server to say what an
// apply would change of it, and puts the object back.
func (s *suite) reallyEdited(t *testing.T, x *shape, change *unstructured.Unstructured) compare.Result {
	t.Helper()
	live, err := s.resource(t, x).Update(t.Context(), change, metav1.UpdateOptions{FieldManager: hand})
	if err != nil {
		t.Error(err)
		return compare.Result{}
	}
	r := s.judge(t, x, live, s.types)
	old := x.live.DeepCopy()
	old.SetResourceVersion("")
	if _, err := s.resource(t, x).Update(t.Context(), old, metav1.UpdateOptions{FieldManager: hand}); err != nil {
		t.Error(err)
	}
	if x.live, err = s.cluster.Apply(t.Context(), x.sent, rutter.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	return r
}

// marks are written by whoever applies, and are no part of what Git has.
func marks(at []any) bool {
	return len(at) == 3 && (at[2] == rutter.LabelUnit || at[2] == rutter.AnnotationTracking)
}

// injections are what webhooks and people add to an object.
func injections(live *unstructured.Unstructured) map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}
	add := func(what string, change func(u *unstructured.Unstructured)) {
		u := live.DeepCopy()
		change(u)
		out[what] = u
	}
	add("a label", func(u *unstructured.Unstructured) {
		l := u.GetLabels()
		l["injected"] = "x"
		u.SetLabels(l)
	})
	add("an annotation", func(u *unstructured.Unstructured) {
		a := u.GetAnnotations()
		a["injected"] = "x"
		u.SetAnnotations(a)
	})
	add("a finalizer", func(u *unstructured.Unstructured) {
		u.SetFinalizers(append([]string{"cv.example.com/injected"}, u.GetFinalizers()...))
	})
	add("an owner", func(u *unstructured.Unstructured) {
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}})
	})
	if live.GetKind() == "ClusterRole" && live.Object["aggregationRule"] != nil {
		add("aggregated rules", func(u *unstructured.Unstructured) {
			u.Object["rules"] = []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}}
		})
	}
	elements(live.Object, nil, func(at []any, elem map[string]any) {
		name := at[len(at)-1]
		add(fmt.Sprintf("an element of %v", at), func(u *unstructured.Unstructured) {
			another := maps.Clone(elem)
			switch name {
			case "containers", "initContainers", "volumes", "env", "imagePullSecrets", "byName":
				another["name"] = "injected"
			case "ports", "byTwo":
				another["name"], another["port"] = "injected", int64(9876)
				delete(another, "nodePort")
				if elem["containerPort"] != nil {
					delete(another, "port")
					another["containerPort"] = int64(9876)
				}
			case "webhooks":
				another["name"] = "injected.cv.example.com"
			default:
				return
			}
			put(u.Object, at, append([]any{another}, list(valueAt(u.Object, at))...))
		})
	})
	webhooks, _, _ := unstructured.NestedSlice(live.Object, "webhooks")
	for i := range webhooks {
		add(fmt.Sprintf("the CA bundle of webhook %d", i), func(u *unstructured.Unstructured) {
			put(u.Object, []any{"webhooks", i, "clientConfig", "caBundle"}, "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K")
		})
	}
	return out
}

// realEdit edits a field of ours for real, asks the server, and puts it back.
func (s *suite) realEdit(t *testing.T, x *shape) {
	t.Helper()
	hash, _ := compare.OwnedHash(x.live, rutter.FieldManager, nil)
	ours := ownedSet(t, x.live)
	for _, p := range places(x.live, ours) {
		if p.name == ".immutable" {
			continue // there is no way back
		}
		e, ok := s.edited(t, x, p)
		if !ok || ownedSet(t, e.live).Equals(ours) {
			continue
		}
		live, err := s.resource(t, x).Update(t.Context(), e.change, metav1.UpdateOptions{FieldManager: hand})
		if err != nil {
			continue
		}
		told, err := s.cluster.Apply(t.Context(), compare.Respect(x.sent, live, nil), rutter.ApplyOptions{DryRun: true})
		if err != nil {
			t.Errorf("dry run after %s = %v: %v", p.name, e.to, err)
			return
		}
		s.real.Add(1)
		s.found(t, x, p, live, told, hash, fmt.Sprintf("%s = %v for real", p.name, e.to))
		back, err := s.cluster.Apply(t.Context(), x.sent, rutter.ApplyOptions{})
		if err != nil {
			t.Errorf("put back: %v", err)
		} else if r := s.judge(t, x, back, s.types); !r.Equal {
			s.falseDrift.Add(1)
			t.Errorf("put back, and not Synced: %+v", r.Diffs)
		}
		return
	}
}
