package preview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// object is one of a manifest.
func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatalf("%s: %v", manifest, err)
	}
	return u
}

// unit is an Application with objects on cluster c1.
func unit(t *testing.T, name string, manifests ...string) Unit {
	t.Helper()
	u := Unit{ID: rutter.UnitID{Dialect: "argo", Namespace: "argocd", Name: name}, Name: name, Cluster: "c1", Server: "https://c1", Namespace: "ns", Prunes: true,
		Key: name + strings.Join(manifests, "---"), Inputs: strings.Join(manifests, "---"), Declaration: map[string]any{"spec": map[string]any{}}}
	for _, m := range manifests {
		o := object(t, m)
		o.SetLabels(map[string]string{rutter.LabelUnit: u.ID.Hash()})
		o.SetAnnotations(map[string]string{rutter.AnnotationTracking: name})
		u.Objects = append(u.Objects, Object{Unstructured: o})
	}
	return u
}

func configMap(name, data string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: ns}, data: {k: " + data + "}}"
}

func with(u Unit, edit func(*Unit)) Unit {
	edit(&u)
	return u
}

// brief is a plan in lines.
func brief(p Plan) []string {
	var out []string
	for _, a := range p.Applications {
		line := string(a.Verb) + " application " + a.Name
		if a.From != "" {
			line += " from " + a.From
		}
		out = append(out, line)
	}
	for _, o := range p.Objects {
		line := string(o.Verb) + " " + o.Kind + "/" + o.Name + " of " + o.Application
		if o.From != "" {
			line += " from " + o.From
		}
		for _, f := range o.Fields {
			line += " " + f.Path
		}
		out = append(out, line)
	}
	for _, e := range p.Problems {
		line := "error " + e.Where
		if e.Known {
			line = "known " + line
		}
		out = append(out, line)
	}
	for _, r := range p.Refused {
		line := "refused " + r.Application + " " + r.Object
		if r.Known {
			line = "known " + line
		}
		out = append(out, line)
	}
	for _, r := range p.Risks {
		out = append(out, "risk "+r.Rule)
	}
	return out
}

func TestCompare(t *testing.T) {
	a, b := configMap("x", "a"), configMap("x", "b")
	for _, tc := range []struct {
		reason     string
		base, head []Unit
		want       []string
	}{
		{"equal", []Unit{unit(t, "one", a)}, []Unit{unit(t, "one", a)}, nil},
		{"a changed object", []Unit{unit(t, "one", a)}, []Unit{unit(t, "one", b)}, []string{"change application one", "change ConfigMap/x of one .data.k"}},
		{"an added Application", nil, []Unit{unit(t, "one", a)}, []string{"add application one", "add ConfigMap/x of one"}},
		{"a removed Application takes its objects with it", []Unit{unit(t, "one", a)}, nil, []string{"delete application one", "delete ConfigMap/x of one"}},
		{
			"one that goes without its objects", []Unit{with(unit(t, "one", a), func(u *Unit) { u.Orphans = "no finalizer" })}, nil,
			[]string{"delete application one", "leave ConfigMap/x of one"},
		},
		{
			"one that nobody deletes", []Unit{with(unit(t, "one", a), func(u *Unit) { u.Stays = "the parent does not prune" })}, nil,
			[]string{"leave application one", "leave ConfigMap/x of one"},
		},
		{
			"what is pruned", []Unit{unit(t, "one", a, configMap("z", "a"))}, []Unit{unit(t, "one", a)},
			[]string{"change application one", "delete ConfigMap/z of one"},
		},
		{
			"what is not pruned without being asked", []Unit{unit(t, "one", a, configMap("z", "a"))}, []Unit{with(unit(t, "one", a), func(u *Unit) { u.Prunes = false })},
			[]string{"change application one", "leave ConfigMap/z of one"},
		},
		{
			"what forbids to be pruned", []Unit{with(unit(t, "one", a, configMap("z", "a")), func(u *Unit) { u.Objects[1].Stays = true })}, []Unit{unit(t, "one", a)},
			[]string{"change application one", "leave ConfigMap/z of one"},
		},
		{
			"hooks that go are not run any more", []Unit{with(unit(t, "one", a, configMap("z", "a")), func(u *Unit) { u.Objects[1].Hook = true })}, []Unit{unit(t, "one", a)},
			[]string{"change application one", "leave ConfigMap/z of one"},
		},
		{"another name for the same objects is a move", []Unit{unit(t, "one", a)}, []Unit{unit(t, "two", a)}, []string{"move application two from one", "move ConfigMap/x of two from one"}},
		{
			"a move with a change", []Unit{unit(t, "one", a)}, []Unit{unit(t, "two", b)},
			[]string{"move application two from one", "change ConfigMap/x of two from one .data.k"},
		},
		{
			"another name elsewhere is no move", []Unit{unit(t, "one", a)}, []Unit{with(unit(t, "two", a), func(u *Unit) { u.Cluster, u.Server = "c2", "https://c2" })},
			[]string{"delete application one", "add application two", "delete ConfigMap/x of one", "add ConfigMap/x of two"},
		},
		{
			"only a part moves", []Unit{unit(t, "one", a, configMap("z", "a"))}, []Unit{unit(t, "two", a)},
			[]string{"delete application one", "add application two", "delete ConfigMap/z of one", "move ConfigMap/x of two from one"},
		},
		{
			"an object goes from one to another", []Unit{unit(t, "one", a, configMap("z", "a")), unit(t, "two")}, []Unit{unit(t, "one", a), unit(t, "two", configMap("z", "a"))},
			[]string{"change application one", "change application two", "move ConfigMap/z of two from one"},
		},
		{
			"another set takes it over", []Unit{with(unit(t, "one", a), func(u *Unit) { u.Set = "s" })}, []Unit{with(unit(t, "one", a), func(u *Unit) { u.Set = "t" })},
			[]string{"move application one from one"},
		},
		{
			"another destination leaves what is there", []Unit{unit(t, "one", a)}, []Unit{with(unit(t, "one", a), func(u *Unit) { u.Cluster, u.Server, u.Key = "c2", "https://c2", "other" })},
			[]string{"change application one", "leave ConfigMap/x of one", "add ConfigMap/x of one", "risk moves-cluster"},
		},
		{
			"nothing is concluded from a failure", []Unit{unit(t, "one", a)}, []Unit{with(unit(t, "one"), func(u *Unit) { u.Failed = true })}, nil,
		},
		{
			"a path that went", []Unit{unit(t, "one", a)}, []Unit{with(unit(t, "one"), func(u *Unit) { u.Failed, u.Vanished = true, true })}, []string{"risk source-gone"},
		},
		{
			"all objects went", []Unit{unit(t, "one", a)}, []Unit{unit(t, "one")},
			[]string{"change application one", "delete ConfigMap/x of one", "risk renders-nothing"},
		},
		{
			"a new refusal", []Unit{with(unit(t, "one", a), func(u *Unit) { u.Key = "k" })}, []Unit{with(unit(t, "one", a), func(u *Unit) { u.Objects[0].Refused = "no" })},
			[]string{"refused one ConfigMap/ns/x"},
		},
		{
			"an old refusal", []Unit{with(unit(t, "one", a), func(u *Unit) { u.Refused = "no" })}, []Unit{with(unit(t, "one", b), func(u *Unit) { u.Refused = "no" })},
			[]string{"known refused one "},
		},
		{
			"what is refused is not sent", []Unit{unit(t, "one", a)}, []Unit{with(unit(t, "one", b, configMap("z", "a")), func(u *Unit) { u.Objects[0].Refused, u.Objects[1].Refused = "no", "no" })},
			[]string{"refused one ConfigMap/ns/x", "refused one ConfigMap/ns/z"},
		},
		{
			"what was refused comes", []Unit{with(unit(t, "one", a), func(u *Unit) { u.Objects[0].Refused, u.Key = "no", "k" })}, []Unit{unit(t, "one", a)},
			[]string{"change application one", "add ConfigMap/x of one"},
		},
		{
			"a unit that is refused touches nothing", []Unit{unit(t, "one", a, configMap("z", "a"))}, []Unit{with(unit(t, "one", b), func(u *Unit) { u.Refused = "no" })},
			[]string{"refused one "},
		},
	} {
		p := Compare(Side{Units: tc.base}, Side{Units: tc.head})
		if diff := cmp.Diff(tc.want, brief(p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

func TestProblems(t *testing.T) {
	a, b := unit(t, "one", configMap("x", "a")), unit(t, "one", configMap("x", "b"))
	failed := func(u Unit) Unit { u.Failed, u.Objects = true, nil; return u }
	problem := []Problem{{Where: "one", Message: "no"}}
	for _, tc := range []struct {
		reason     string
		base, head Side
		want       []string
		errors     int
	}{
		{"the change brings it", Side{Units: []Unit{a}}, Side{Units: []Unit{failed(a)}, Problems: problem}, []string{"error one"}, 1},
		{"it was there before", Side{Units: []Unit{failed(a)}, Problems: problem}, Side{Units: []Unit{failed(a)}, Problems: problem}, []string{"known error one"}, 0},
		{
			"the change mends it, and nobody knows what was there", Side{Units: []Unit{failed(a)}, Problems: problem}, Side{Units: []Unit{b}},
			[]string{"error one"}, 1,
		},
		{
			"what it is about changes", Side{Units: []Unit{failed(a)}, Problems: problem},
			Side{Units: []Unit{failed(with(b, func(u *Unit) { u.Declaration = map[string]any{"spec": "other"} }))}, Problems: problem},
			[]string{"change application one", "error one"}, 1,
		},
	} {
		p := Compare(tc.base, tc.head)
		if diff := cmp.Diff(tc.want, brief(p)); diff != "" || p.Summary.Errors != tc.errors {
			t.Errorf("%s: %d errors (-want +got):\n%s", tc.reason, p.Summary.Errors, diff)
		}
	}
}

// TestSecretsAreHidden: neither what is shown nor the digest comes from the
// content of a Secret.
func TestSecretsAreHidden(t *testing.T) {
	secret := func(v string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, data: {password: " + v + "}}"
	}
	same := func(u *Unit) { u.Inputs = "sealed" }
	one := Compare(Side{Units: []Unit{with(unit(t, "one", secret("aHVudGVyMg==")), same)}}, Side{Units: []Unit{with(unit(t, "one", secret("aHVudGVyMw==")), same)}})
	two := Compare(Side{Units: []Unit{with(unit(t, "one", secret("aHVudGVyMg==")), same)}}, Side{Units: []Unit{with(unit(t, "one", secret("aHVudGVyNA==")), same)}})
	if len(one.Objects) != 1 || len(one.Objects[0].Fields) != 1 {
		t.Fatalf("got %v, want a change of one field", brief(one))
	}
	page, err := HTML(one)
	if err != nil {
		t.Fatal(err)
	}
	for name, shown := range map[string]string{"text": Text(one, TextOptions{}), "markdown": Markdown(one, 0), "html": page, "json": string(jsonOf(one))} {
		if strings.Contains(shown, "aHVudGVy") || strings.Contains(shown, "hunter") {
			t.Errorf("%s shows the Secret:\n%s", name, shown)
		}
		if !strings.Contains(shown, ".data.password") {
			t.Errorf("%s does not say which entry changes", name)
		}
	}
	if one.Digest != two.Digest {
		t.Error("the digest tells one password from another: it can be guessed at")
	}
	other := Compare(Side{Units: []Unit{with(unit(t, "one", secret("aHVudGVyMg==")), same)}}, Side{Units: []Unit{unit(t, "one", secret("aHVudGVyNA=="))}})
	if one.Digest == other.Digest {
		t.Error("the digest does not see that the Secret was rendered from something else")
	}
}

// TestDigest: whatever is done to the fleet is in the digest, and nothing else.
func TestDigest(t *testing.T) {
	base := Side{Name: "main", Revision: "1", Units: []Unit{unit(t, "one", configMap("x", "a")), unit(t, "two", configMap("z", "a"))}}
	head := func(manifest string) Side {
		return Side{Name: "pr", Units: []Unit{unit(t, "one", manifest), unit(t, "two", configMap("z", "a"))}}
	}
	first := Compare(base, head(configMap("x", "b"))).Digest
	again := head(configMap("x", "b"))
	again.Name, again.Revision, again.Units[0], again.Units[1] = "other", "2", again.Units[1], again.Units[0]
	if got := Compare(base, again).Digest; got != first {
		t.Error("another name, commit or order is another digest")
	}
	if got := Compare(base, head(configMap("x", "c"))).Digest; got == first {
		t.Error("another value is the same digest")
	}
	if got := Compare(base, head(configMap("x", strings.Repeat("b", 2000)))).Digest; got == Compare(base, head(configMap("x", strings.Repeat("b", 2001)))).Digest {
		t.Error("what is cut when it is shown is cut in the digest")
	}
	if got := Compare(base, Side{Units: []Unit{unit(t, "one", configMap("x", "b"))}}).Digest; got == first {
		t.Error("a removed Application is not in the digest")
	}
}

func TestSetsAndProjects(t *testing.T) {
	base := Side{
		Sets:     []Set{{Name: "gone", Size: 2}, {Name: "same", Size: 1, Declaration: map[string]any{"a": 1}}, {Name: "grows", Size: 1}},
		Projects: []Project{{Name: "team", Declaration: map[string]any{"a": 1}}},
	}
	head := Side{
		Sets: []Set{
			{Name: "same", Size: 1, Declaration: map[string]any{"a": 1}}, {Name: "grows", Size: 3}, {Name: "new", Size: 1},
			{Name: "held", Size: 1, Held: &Held{Set: "held", Applications: []string{"x"}, Reason: "too many"}},
		},
		Projects: []Project{{Name: "team", Declaration: map[string]any{"a": 2}}},
	}
	p := Compare(base, head)
	want := []SetChange{{Verb: Delete, Name: "gone", Before: 2}, {Verb: Change, Name: "grows", Before: 1, After: 3}, {Verb: Add, Name: "held", After: 1}, {Verb: Add, Name: "new", After: 1}}
	if diff := cmp.Diff(want, p.Sets, cmpopts.IgnoreUnexported(SetChange{})); diff != "" {
		t.Errorf("sets (-want +got):\n%s", diff)
	}
	if len(p.Projects) != 1 || p.Projects[0].Fields[0].Path != ".a" {
		t.Errorf("projects: %+v", p.Projects)
	}
	if !p.Blocked() || p.Summary.Held != 1 {
		t.Errorf("held: %+v", p.Held)
	}
}
