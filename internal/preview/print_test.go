package preview

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rutterhq/rutter"
)

// large is a plan of many changes, no two of them alike but for 60.
func large(t *testing.T) Plan {
	t.Helper()
	var base, head Side
	for i := range 60 {
		name := fmt.Sprintf("shop-%03d", i)
		base.Units = append(base.Units, unit(t, name, configMap(name, "a"), configMap(name+"-own", "a")))
		head.Units = append(head.Units, unit(t, name, configMap(name, "b"), configMap(name+"-own", fmt.Sprintf("v%d", i))))
	}
	for i := range 40 {
		base.Units = append(base.Units, unit(t, fmt.Sprintf("old-%03d", i), configMap(fmt.Sprintf("old-%03d", i), "a")))
	}
	return Compare(base, head)
}

func TestFold(t *testing.T) {
	p := large(t)
	var equal *Group
	for i, g := range p.Groups {
		if g.Verb == Change && g.Count == 60 {
			equal = &p.Groups[i]
		}
	}
	if equal == nil || len(equal.Applications) != 60 || len(equal.Names) != maxNames {
		t.Fatalf("the change that 60 have in common is not folded: %+v", equal)
	}
	if p.Groups[0].Verb != Delete {
		t.Errorf("the first group is of %s, not of what is deleted", p.Groups[0].Verb)
	}
	if n := strings.Count(Text(p, TextOptions{}), "\n"); n > 50 {
		t.Errorf("%d lines do not fit a screen", n)
	}
}

func TestWord(t *testing.T) {
	for _, tc := range []struct{ in, name, want string }{
		{"web", "web", "<n>"},
		{"a/web:1", "web", "a/<n>:1"},
		{"website web webs cobweb web", "web", "website <n> webs cobweb <n>"},
		{"webweb-web", "web", "webweb-<n>"},
		{"ab", "ab", "ab"},
		{"", "web", ""},
	} {
		if got := word(tc.in, tc.name, "<n>"); got != tc.want {
			t.Errorf("%q in %q: %q, want %q", tc.name, tc.in, got, tc.want)
		}
	}
}

// TestMarkdownFits: whatever the limit, nothing is cut: what is left out is counted.
func TestMarkdownFits(t *testing.T) {
	p := large(t)
	least := len(Markdown(p, 1))
	for _, limit := range []int{1, least, 1000, 2000, 4000, 8000, 16000, 65000, 1 << 20} {
		out := Markdown(p, limit)
		if len(out) > max(limit, least) {
			t.Errorf("limit %d: %d bytes", limit, len(out))
		}
		if strings.Count(out, "<details") != strings.Count(out, "</details>") || !strings.Contains(out, p.Digest) || !utf8.ValidString(out) {
			t.Errorf("limit %d: cut:\n%s", limit, out)
		}
	}
	if least > 1500 {
		t.Errorf("the least comment has %d bytes", least)
	}
}

// TestMarkdownOfManyFits: 5,000 changes of which no two are alike are numbers,
// and what is deleted is still named first.
func TestMarkdownOfManyFits(t *testing.T) {
	var base, head Side
	for i := range 2500 {
		name := fmt.Sprintf("shop-%04d", i)
		base.Units = append(base.Units, unit(t, name, configMap(name, "a"), configMap(name+"-own", "a")))
		head.Units = append(head.Units, unit(t, name, configMap(name, fmt.Sprintf("v%d", i)), configMap(name+"-own", fmt.Sprintf("w%d", i))))
	}
	base.Units = append(base.Units, unit(t, "gone", "{apiVersion: v1, kind: Namespace, metadata: {name: gone}}"))
	p := Compare(base, head)
	if p.Summary.Objects.Change != 5000 {
		t.Fatalf("%d objects change", p.Summary.Objects.Change)
	}
	for _, limit := range []int{60_000, 2000} {
		out := Markdown(p, limit)
		if len(out) > limit {
			t.Errorf("limit %d: %d bytes", limit, len(out))
		}
		for _, want := range []string{"| objects | **1** | 0 | 0 | 5000 | 0 |", "Namespace/gone is deleted", p.Digest} {
			if !strings.Contains(out, want) {
				t.Errorf("limit %d: %q is not said:\n%s", limit, want, out)
			}
		}
		if strings.Count(out, "<details") != strings.Count(out, "</details>") || strings.Index(out, "gone") > strings.Index(out, "shop-0000") && strings.Contains(out, "shop-0000") {
			t.Errorf("limit %d: cut, or not deletions first", limit)
		}
	}
}

// TestNothingSteers: what is in a repository is shown and does nothing.
func TestNothingSteers(t *testing.T) {
	evil := "\x1b[2J</details><script>alert(1)</script> @everyone `` ![x](http://evil)\u202e"
	u := unit(t, "one", configMap("x", "a"))
	after := with(unit(t, "one", configMap("x", "b")), func(u *Unit) { u.Objects[0].Object["data"] = map[string]any{"k": evil} })
	p := Compare(Side{Name: evil, Units: []Unit{u}}, Side{Name: "h", Units: []Unit{after}, Problems: []Problem{{Where: evil, Message: evil}}})
	p.Held = []Held{{Set: evil, Applications: []string{evil}, Reason: evil, Digest: evil, Risks: []Risk{{Rule: evil, Message: evil, Cluster: evil, Application: evil}}}}
	p.Risks = []Risk{{Rule: evil, Message: evil, Cluster: evil, Application: evil}}
	p.Refused = []Refusal{{Application: evil, Object: evil, Reason: evil}}
	p.Notes = []string{evil}
	p.AddDrift([]Drift{{Application: evil, Cluster: evil, Kind: evil, Name: evil, Reason: evil, Fields: []DriftField{{Path: evil, Declared: evil, Live: evil, Manager: evil}}}})
	page, err := HTML(p)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page, "<script>") {
		t.Error("HTML: not escaped")
	}
	if text := Text(p, TextOptions{Width: 400}); strings.Contains(text, "\x1b") || strings.Contains(text, "\u202e") {
		t.Errorf("the text steers the terminal: %q", text)
	}
	for line := range strings.Lines(Markdown(p, 0)) {
		if before, _, ok := strings.Cut(line, "<script>"); ok && !strings.Contains(before, "```") {
			t.Errorf("Markdown: outside of code: %s", line)
		}
	}
}

// TestSchema: what is printed as JSON is what docs/plan.schema.json describes.
func TestSchema(t *testing.T) {
	data, err := os.ReadFile("../../docs/plan.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("plan.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("plan.json")
	if err != nil {
		t.Fatal(err)
	}
	full := large(t)
	full.Held = append(full.Held, Held{Set: "s", Applications: []string{"a"}, Reason: "r", ObjectsStay: true, Risks: []Risk{{Rule: "r", Message: "m", Application: "a"}}})
	full.Refused = append(full.Refused, Refusal{Application: "a", Object: "o", Cluster: "c", Reason: "r"})
	full.Risks = append(full.Risks, Risk{Rule: "r", Message: "m", Application: "a"})
	full.Problems = append(full.Problems, Problem{Where: "w", Message: "m", Known: true})
	full.Sets = append(full.Sets, SetChange{Verb: Add, Name: "s", Fields: []Field{{Path: ".a", Old: "1"}}})
	full.Projects = append(full.Projects, ProjectChange{Verb: Delete, Name: "p"})
	full.Notes = append(full.Notes, "n")
	full.AddDrift([]Drift{{Application: "a", Cluster: "c", Kind: "K", Name: "n", Reason: "differs", Healed: true, Fields: []DriftField{{Path: ".a", Declared: "1", Live: "2", Manager: "m", Touched: true}}}})
	for name, p := range map[string]Plan{"empty": Compare(Side{}, Side{}), "full": full} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(jsonOf(p))))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		v.(map[string]any)["surprise"] = true
		if schema.Validate(v) == nil {
			t.Errorf("%s: a field that the schema does not know is taken", name)
		}
	}
}

func TestInventory(t *testing.T) {
	const head = "apiVersion: rutter.dev/v1alpha1\nkind: ClusterInventory\n"
	for _, tc := range []struct{ reason, text, err string }{
		{"good", head + "clusters: [{name: a, server: 'https://a:6443', labels: {x: y}, version: v1.37.0, apiVersions: [v1], clusterScoped: [g/K]}]\n", ""},
		{"a credential has no place", head + "clusters: [{name: a, server: 'https://a', token: x}]\n", `unknown field "token"`},
		{"nor has a login", head + "clusters: [{name: a, server: 'https://u:secret@a'}]\n", "without a login"},
		{"another kind", "apiVersion: v1\nkind: List\n", "rutter cluster export"},
		{"twice", head + "clusters: [{name: a, server: 'https://a'}, {name: a, server: 'https://b'}]\n", "there twice"},
		{"no name", head + "clusters: [{server: 'https://a'}]\n", "name is missing"},
		{"no server", head + "clusters: [{name: a}]\n", "server must be a URL"},
	} {
		inv, err := ParseInventory([]byte(tc.text), "f.yaml")
		switch {
		case tc.err == "" && err != nil:
			t.Errorf("%s: %v", tc.reason, err)
		case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), "f.yaml") || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s: error %v, want %s", tc.reason, err, tc.err)
		case tc.err == "":
			if c, ok := inv.Find(rutter.Target{Name: "a"}); !ok || c.Server != "https://a:6443" {
				t.Errorf("%s: found %+v", tc.reason, c)
			}
			if Namespaced(rutter.GVK{Group: "g", Version: "v1", Kind: "K"}, nil, inv.Clusters[0]) {
				t.Error("what the inventory says of a kind is not used")
			}
			out, err := json.Marshal(inv)
			if err != nil {
				t.Fatal(err)
			}
			again, err := ParseInventory(out, "again")
			if diff := cmp.Diff(inv, again); err != nil || diff != "" {
				t.Errorf("written and read again: %v\n%s", err, diff)
			}
		}
	}
}
