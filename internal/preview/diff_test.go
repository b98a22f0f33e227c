package preview

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// decoded is JSON as objects hold it.
func decoded(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestFields(t *testing.T) {
	for _, tc := range []struct {
		reason, before, after string
		want                  []Field
	}{
		{"equal", `{"a":1}`, `{"a":1}`, nil},
		{"a scalar", `{"a":1}`, `{"a":2}`, []Field{{".a", "1", "2"}}},
		{"null is not absent", `{"a":null}`, `{}`, []Field{{".a", "null", ""}}},
		{"added and removed", `{"a":1}`, `{"b":"x"}`, []Field{{".a", "1", ""}, {".b", "", `"x"`}}},
		{"a key with dots", `{"m":{"a.b/c":"1"}}`, `{"m":{"a.b/c":"2"}}`, []Field{{`.m["a.b/c"]`, `"1"`, `"2"`}}},
		{
			"elements go by name", `{"c":[{"name":"a","image":"x:1"},{"name":"b"}]}`, `{"c":[{"name":"a","image":"x:2"},{"name":"b"}]}`,
			[]Field{{`.c[name="a"].image`, `"x:1"`, `"x:2"`}},
		},
		{
			"one in the middle is one added", `{"e":[{"name":"a"},{"name":"c"}]}`, `{"e":[{"name":"a"},{"name":"b"},{"name":"c"}]}`,
			[]Field{{`.e[name="b"]`, "", `{"name":"b"}`}},
		},
		{
			"another order is a change of the list", `{"e":[{"name":"a"},{"name":"b"}]}`, `{"e":[{"name":"b"},{"name":"a"}]}`,
			[]Field{{`.e[0].name`, `"a"`, `"b"`}, {`.e[1].name`, `"b"`, `"a"`}},
		},
		{
			"a name that is there twice is none", `{"e":[{"name":"a","v":1},{"name":"a","v":2}]}`, `{"e":[{"name":"a","v":1},{"name":"a","v":3}]}`,
			[]Field{{`.e[1].v`, "2", "3"}},
		},
		{"ports go by number and protocol", `{"p":[{"port":53,"protocol":"UDP","n":1},{"port":53,"protocol":"TCP"}]}`, `{"p":[{"port":53,"protocol":"UDP","n":2},{"port":53,"protocol":"TCP"}]}`, []Field{{`.p[port=53,protocol="UDP"].n`, "1", "2"}}},
		{"scalars of another length are shown whole", `{"a":[1,2]}`, `{"a":[1]}`, []Field{{".a", "[1,2]", "[1]"}}},
		{"a number is not its text", `{"a":1}`, `{"a":"1"}`, []Field{{".a", "1", `"1"`}}},
		{"texts show the lines that differ", `{"a":"1\n2\n3\n"}`, `{"a":"1\nx\n3\n"}`, []Field{{".a", `"line 2: 2"`, `"line 2: x"`}}},
		{"kubectl's memory is not shown", `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"a"}}}`, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"b"}}}`, []Field{{`.metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`, `"(not shown)"`, `"(not shown)"`}}},
	} {
		if diff := cmp.Diff(tc.want, fieldsOf(decoded(t, tc.before), decoded(t, tc.after))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

func TestLongValuesAreBounded(t *testing.T) {
	long := strings.Repeat("é", 3000)
	for _, f := range fieldsOf(map[string]any{"a": long}, map[string]any{"a": long + "x", "b": []any{long}}) {
		if len(f.Old) > 2*maxValue || len(f.New) > 2*maxValue {
			t.Errorf("%s: %d and %d bytes", f.Path, len(f.Old), len(f.New))
		}
		if !json.Valid([]byte(f.New)) {
			t.Errorf("%s: %s is no JSON", f.Path, f.New)
		}
	}
}

// patched applies differences to a value, as if somebody carried them out.
func patched(v any, found []delta) any {
	// Elements that come are put in at their place, after the others went: from
	// the last that goes, then from the first that comes.
	var gone, other []delta
	for _, d := range found {
		if last := len(d.path) - 1; last >= 0 && d.path[last].keys != nil && !d.hasNew {
			gone = append(gone, d)
		} else {
			other = append(other, d)
		}
	}
	slices.Reverse(gone)
	for _, d := range other {
		if last := len(d.path) - 1; last < 0 || d.path[last].keys == nil || d.hasOld {
			v = set(v, d.path, d)
		}
	}
	for _, d := range gone {
		v = set(v, d.path, d)
	}
	for _, d := range other {
		if last := len(d.path) - 1; last >= 0 && d.path[last].keys != nil && !d.hasOld {
			v = set(v, d.path, d)
		}
	}
	return v
}

func set(v any, path []step, d delta) any {
	if len(path) == 0 {
		return d.new
	}
	s, last := path[0], len(path) == 1
	if !s.list {
		m, _ := v.(map[string]any)
		switch {
		case last && !d.hasNew:
			delete(m, s.field)
		case last:
			m[s.field] = d.new
		default:
			m[s.field] = set(m[s.field], path[1:], d)
		}
		return m
	}
	list, _ := v.([]any)
	at := s.index
	if s.keys != nil {
		at = slices.IndexFunc(list, func(e any) bool {
			elem, ok := e.(map[string]any)
			return ok && keyOf(elem, s.keys) == keyOf(s.elem, s.keys)
		})
	}
	switch {
	case last && !d.hasNew:
		return slices.Delete(list, at, at+1)
	case last && !d.hasOld:
		return slices.Insert(list, s.index, d.new)
	case last:
		list[at] = d.new
	default:
		list[at] = set(list[at], path[1:], d)
	}
	return list
}

// TestDifferencesAreAll: carrying the differences out makes the one value of the other.
func TestDifferencesAreAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		before := randomValue(r, 4)
		after := before
		for range r.IntN(4) {
			after = mutated(r, clone(t, after))
		}
		found := differences(before, after)
		got := patched(clone(t, before), found)
		if string(jsonOf(got)) != string(jsonOf(after)) {
			t.Fatalf("%d:\nbefore %s\nafter  %s\ngot    %s\ndifferences %+v", i, jsonOf(before), jsonOf(after), jsonOf(got), found)
		}
		if (len(found) == 0) != (string(jsonOf(before)) == string(jsonOf(after))) {
			t.Fatalf("%d: %d differences of %s and %s", i, len(found), jsonOf(before), jsonOf(after))
		}
	}
}

func clone(t *testing.T, v any) any {
	t.Helper()
	return decoded(t, string(jsonOf(v)))
}

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(8); {
	case depth == 0 || n < 2:
		return []any{"a", "b", float64(r.IntN(3)), true, nil}[r.IntN(5)]
	case n < 5:
		m := map[string]any{}
		for range r.IntN(4) {
			m[[]string{"a", "b", "name", "port", "x.y"}[r.IntN(5)]] = randomValue(r, depth-1)
		}
		return m
	case n < 7:
		list := []any{}
		for i := range r.IntN(5) {
			list = append(list, map[string]any{"name": fmt.Sprintf("n%d", i+r.IntN(2)), "v": randomValue(r, depth-1)})
		}
		return list
	default:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	}
}

// mutated changes one place of a value.
func mutated(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(func(yield func(string) bool) {
			for k := range v {
				if !yield(k) {
					return
				}
			}
		})
		if len(names) == 0 || r.IntN(4) == 0 {
			v["new"] = randomValue(r, 2)
			return v
		}
		name := names[r.IntN(len(names))]
		if r.IntN(4) == 0 {
			delete(v, name)
			return v
		}
		v[name] = mutated(r, v[name])
		return v
	case []any:
		switch {
		case len(v) == 0 || r.IntN(4) == 0:
			return slices.Insert(v, r.IntN(len(v)+1), any(map[string]any{"name": fmt.Sprintf("m%d", r.IntN(9))}))
		case r.IntN(4) == 0:
			at := r.IntN(len(v))
			return slices.Delete(v, at, at+1)
		case r.IntN(6) == 0:
			slices.Reverse(v)
			return v
		}
		at := r.IntN(len(v))
		v[at] = mutated(r, v[at])
		return v
	}
	return randomValue(r, 2)
}
