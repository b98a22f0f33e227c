package generate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

func TestBudgets(t *testing.T) {
	for text, want := range map[string]struct {
		limits [4]int // of 0, 10, 40 and 1000
		shown  string
	}{
		"":             {[4]int{3, 3, 10, 250}, "25% min 3"},
		"10%":          {[4]int{3, 3, 4, 100}, "10% min 3"},
		" 10 % min 5 ": {[4]int{5, 5, 5, 100}, "10% min 5"},
		"10%, min 0":   {[4]int{0, 1, 4, 100}, "10% min 0"},
		"7":            {[4]int{7, 7, 7, 7}, "7"},
		"0":            {[4]int{0, 0, 0, 0}, "0"},
		"100%":         {[4]int{3, 10, 40, 1000}, "100% min 3"},
	} {
		b := generate.DefaultBudget
		if text != "" {
			var err error
			if b, err = generate.ParseBudget(text); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
		got := [4]int{b.Limit(0), b.Limit(10), b.Limit(40), b.Limit(1000)}
		if got != want.limits || b.String() != want.shown {
			t.Errorf("%q: %v %q, want %v %q", text, got, b, want.limits, want.shown)
		}
		if again, err := generate.ParseBudget(b.String()); err != nil || again != b {
			t.Errorf("%q is read as it is written: %v %v", text, again, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "101%", "10% max 3", "10% min", "10%%", "1e3", "99999999"} {
		if _, err := generate.ParseBudget(text); rutter.CodeOf(err) != rutter.CodeInvalid {
			t.Errorf("%q is refused: %v", text, err)
		}
	}
}

// FuzzAnnotations: whatever people annotate ends in an answer, and what is
// accepted is read as it is written.
func FuzzAnnotations(f *testing.F) {
	for _, s := range []string{"10% min 5", "7", "5% per 90m", "who=a; why=b; until=2026-08-01T12:00:00Z", "who==;;until=", "deadbeef:AAAA"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if b, err := generate.ParseBudget(text); err == nil {
			if again, err := generate.ParseBudget(b.String()); err != nil || again != b {
				t.Errorf("%q: %v, then %v %v", text, b, again, err)
			}
		}
		if h, err := generate.ParseHold(text); err == nil {
			if again, err := generate.ParseHold(h.String()); err != nil || !again.Until.Equal(h.Until.Truncate(time.Second)) {
				t.Errorf("%q: %v, then %v %v", text, h, again, err)
			}
		}
		if _, err := generate.DecodeMemory([]byte(text)); err != nil && rutter.CodeOf(err) == rutter.CodeInternal {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func TestBudgetOfASet(t *testing.T) {
	cases := map[string]struct {
		reason     string
		annotation string
		policy     generate.Policy
		left       int
		held       bool
		say        string
	}{
		"default, within":      {reason: "25 % of 16", left: 12},
		"default, over":        {reason: "and not 5 of 16", left: 11, held: true, say: "5 of 16 Applications would be deleted, at most 4 go without approval"},
		"the operator's":       {reason: "for all sets", policy: generate.Policy{Budget: &generate.Budget{Budget: rutter.Budget{Min: 1}}}, left: 14, held: true},
		"the set's":            {reason: "a set has its own", annotation: "50%", policy: generate.Policy{Budget: &generate.Budget{}}, left: 8},
		"nothing goes":         {reason: "not even one", annotation: "0", left: 15, held: true},
		"one that is nonsense": {reason: "lets through no more than the operator's", annotation: "all", left: 11, held: true, say: `"all" is not a deletion budget`},
	}
	var all []string
	for i := range 16 {
		all = append(all, fmt.Sprintf("a%02d", i))
	}
	f := fleet()
	set := setOf(t, withTemplate(listOf(all...), "{{name}}", "x"))
	apps := liveOf(generate.Reconcile(set, generate.Generate(set, f), nil, generate.Policy{}))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := setOf(t, withTemplate(listOf(all[:tc.left]...), "{{name}}", "x"))
			if tc.annotation != "" {
				after.Annotations = map[string]string{generate.AnnotationBudget: tc.annotation}
			}
			d := generate.Decide(after, generate.Generate(after, f), apps, tc.policy)
			if (d.Held != nil) != tc.held || count(d.Changes, generate.Delete) > 0 == tc.held {
				t.Errorf("%s: %v", tc.reason, verbs(d.Changes))
			}
			said := fmt.Sprint(d.Errors)
			if d.Held != nil {
				said += d.Held.Reason()
			}
			if !strings.Contains(said, tc.say) {
				t.Errorf("%s: %s, want %q", tc.reason, said, tc.say)
			}
		})
	}
}

func TestTicketsAreSmall(t *testing.T) {
	set := setOf(t, withTemplate(listOf("none"), "{{name}}", "x"))
	set.UID = "u"
	apps := make([]*v1alpha1.Application, 50_000)
	owner := liveOf(generate.Reconcile(set, generate.Generate(set, fleet()), nil, generate.Policy{}))[0].OwnerReferences
	for i := range apps {
		app := &v1alpha1.Application{}
		app.Name, app.Namespace, app.UID, app.OwnerReferences = fmt.Sprintf("app-%05d", i), "argocd", types.UID(fmt.Sprint(i)), owner
		apps[i] = app
	}
	held := generate.Decide(set, generate.Generate(set, fleet()), apps, generate.Policy{}).Held
	if held == nil || len(held.Names) != 50_000 {
		t.Fatal("50,000 removals wait")
	}
	if n := len(held.Ticket()); n > 220_000 {
		t.Errorf("the ticket of 50,000 removals has %d bytes, which must fit a status", n)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	f := fleet()
	set := setOf(t, withTemplate(`- clusters: {}
- matrix:
    generators:
    - list: {elements: [{repo: a}, {repo: b}, {repo: c}, {repo: d}]}
    - git: {repoURL: 'https://{{repo}}', directories: [{path: '*'}]}`, "{{repo}}{{name}}{{path}}", "x"))
	for i, url := range []string{"https://a", "https://b", "https://c", "https://d"} {
		files := map[string]string{}
		for j := range 10 + 50*i {
			files[fmt.Sprintf("dir-%d-%x/x", i, j*7919)] = ""
		}
		f.repos[url] = treeOf(files)
	}
	res := generate.Generate(set, f)
	if res.Memory.Len() != 5 {
		t.Fatalf("each leaf is remembered, the list is not: %d", res.Memory.Len())
	}
	whole, left, err := res.Memory.Encode(1 << 20)
	if err != nil || left != 0 {
		t.Fatal(left, err)
	}
	for _, limit := range []int{len(whole), len(whole) - 1, len(whole) / 2, 200, 0} {
		data, left, err := res.Memory.Encode(limit)
		if err != nil || len(data) > limit && left != 5 || (left == 0) != (limit == len(whole)) {
			t.Errorf("limit %d: %d bytes, %d left out, %v", limit, len(data), left, err)
		}
		m, err := generate.DecodeMemory(data)
		if err != nil || m.Len() != 5-left {
			t.Errorf("limit %d: %d answers are read back, %d were left out: %v", limit, m.Len(), left, err)
		}
	}
	again, err := generate.DecodeMemory(whole)
	if err != nil {
		t.Fatal(err)
	}
	first, err1 := res.Memory.Digest()
	second, err2 := again.Digest()
	if first != second || err1 != nil || err2 != nil {
		t.Errorf("a memory that was read is the one that was written: %s %s", first, second)
	}
	for _, data := range []string{"x", string(whole[:len(whole)/2])} {
		if _, err := generate.DecodeMemory([]byte(data)); err == nil {
			t.Errorf("%d bytes of nonsense are refused", len(data))
		}
	}
}

// TestHandOvers: an Application that moves is not deleted and made again.
func TestHandOvers(t *testing.T) {
	f := fleet()
	named := func(set, name, path string, elements ...string) *v1alpha1.ApplicationSet {
		return setOf(t, withTemplate(listOf(elements...), name, path, "metadata: {name: "+set+"}"))
	}
	decide := func(set *v1alpha1.ApplicationSet, live []*v1alpha1.Application) generate.Decision {
		return generate.Decide(set, generate.Generate(set, f), live, generate.Policy{HandOver: true, Clusters: f.clusters})
	}
	old := named("old", "{{name}}", "apps/{{name}}", "a", "b")
	apps := liveOf(decide(old, nil).Changes)

	t.Run("another name", func(t *testing.T) {
		after := named("old", "new-{{name}}", "apps/{{name}}", "a", "b")
		// The same cluster by its name, and the same repository in another writing.
		after.Spec.Template.Spec.Destination = v1alpha1.ApplicationDestination{Name: "in-cluster", Namespace: "x"}
		after.Spec.Template.Spec.Source.RepoURL += ".git"
		d := decide(after, apps)
		if diff := cmp.Diff([]string{"a release~", "b release~", "new-a create", "new-b create"}, verbs(d.Changes)); diff != "" {
			t.Fatal(diff)
		}
		if d.Changes[0].To != "argocd/new-a" || d.Changes[2].From != "argocd/a" || d.Held != nil {
			t.Errorf("%+v", d.Changes)
		}
		if diff := cmp.Diff([]string{"a delete", "b delete", "new-a create", "new-b create"}, verbs(generate.Reconcile(after, generate.Generate(after, f), apps, generate.Policy{}))); diff != "" {
			t.Errorf("only who can hand over is asked to:\n%s", diff)
		}
		after.Spec.Template.Spec.Source.Helm = &v1alpha1.ApplicationSourceHelm{}
		for _, app := range apps {
			app.Spec.Source.Helm = &v1alpha1.ApplicationSourceHelm{}
		}
		if d := decide(after, apps); count(d.Changes, generate.Delete) != 2 {
			t.Errorf("a release that is named after its Application has other objects: %v", verbs(d.Changes))
		}
		for _, app := range apps {
			app.Spec.Source.Helm = nil
		}
	})
	t.Run("other objects", func(t *testing.T) {
		after := named("old", "new-{{name}}", "other/{{name}}", "a", "b")
		if d := decide(after, apps); count(d.Changes, generate.Delete) != 2 || count(d.Changes, generate.Release) != 0 {
			t.Errorf("%v", verbs(d.Changes))
		}
	})
	t.Run("another set", func(t *testing.T) {
		from, to := named("old", "{{name}}", "apps/{{name}}", "a"), named("new", "{{name}}2", "apps/{{name}}", "b")
		sets := []generate.SetChanges{{Set: from, Changes: decide(from, apps).Changes}, {Set: to, Changes: decide(to, apps).Changes}}
		hs := generate.Handovers(sets, f.clusters)
		if len(hs) != 1 || hs[0].From != (generate.Place{Namespace: "argocd", Set: "old", Name: "b"}) || hs[0].To != (generate.Place{Namespace: "argocd", Set: "new", Name: "b2"}) ||
			hs[0].Live != apps[1] || hs[0].Application.Name != "b2" || hs[0].SameObject() {
			t.Fatalf("%+v", hs)
		}
		// Once the other set has made it, the first one sees that by itself.
		there := append(append([]*v1alpha1.Application{}, apps...), hs[0].Application)
		if d := decide(from, there); d.Changes[1].Verb != generate.Release || d.Changes[1].To != "argocd/b2" {
			t.Errorf("%v", verbs(d.Changes))
		}
		if hs := generate.Handovers([]generate.SetChanges{{Set: from, Changes: decide(from, there).Changes}, {Set: to, Changes: decide(to, there).Changes}}, f.clusters); len(hs) != 1 || hs[0].Application != nil {
			t.Errorf("what is there already needs no writing: %+v", hs)
		}
	})
	t.Run("another set, the same name", func(t *testing.T) {
		from, to := named("old", "{{name}}", "apps/{{name}}", "a"), named("new", "{{name}}", "elsewhere/{{name}}", "b")
		sets := []generate.SetChanges{{Set: from, Changes: decide(from, apps).Changes}, {Set: to, Changes: decide(to, apps).Changes}}
		hs := generate.Handovers(sets, nil)
		if len(hs) != 1 || !hs[0].SameObject() || hs[0].To.Set != "new" {
			t.Fatalf("%+v", hs)
		}
		app := hs[0].Application
		if len(app.OwnerReferences) != 1 || app.OwnerReferences[0].Name != "new" || app.Spec.Source.Path != "elsewhere/b" {
			t.Errorf("it gets the other owner and what that generates: %+v", app)
		}
		if apps[1].OwnerReferences[0].Name != "old" || apps[1].Spec.Source.Path != "apps/b" {
			t.Error("what is live is not written to")
		}
	})
	t.Run("a set falls to nothing", func(t *testing.T) {
		from, to := named("old", "{{name}}", "apps/{{name}}"), named("new", "{{name}}2", "apps/{{name}}", "a", "b")
		d := decide(from, apps)
		if d.Held == nil {
			t.Fatal("it waits")
		}
		if hs := generate.Handovers([]generate.SetChanges{{Set: from, Changes: d.Changes}, {Set: to, Changes: decide(to, apps).Changes}}, nil); len(hs) != 2 {
			t.Errorf("what waits is handed over too: %+v", hs)
		}
	})
}

func TestIgnoredFieldsByJQ(t *testing.T) {
	app := func(params ...v1alpha1.HelmParameter) *v1alpha1.Application {
		set := setOf(t, withTemplate(listOf("a"), "{{name}}", "x"))
		set.Spec.Template.Spec.Source.Helm = &v1alpha1.ApplicationSourceHelm{Parameters: params}
		return liveOf(generate.Reconcile(set, generate.Generate(set, fleet()), nil, generate.Policy{}))[0]
	}
	tag := func(v string) v1alpha1.HelmParameter { return v1alpha1.HelmParameter{Name: "tag", Value: v} }
	other := func(v string) v1alpha1.HelmParameter { return v1alpha1.HelmParameter{Name: "other", Value: v} }
	for name, tc := range map[string]struct {
		rule    string
		live    *v1alpha1.Application
		wanted  []v1alpha1.HelmParameter
		verb    generate.Verb
		want    []v1alpha1.HelmParameter
		say     string
		pointer string
	}{
		"an item of a list": {rule: `.spec.source.helm.parameters[] | select(.name == "tag") | .value`, live: app(other("1"), tag("live")),
			wanted: []v1alpha1.HelmParameter{tag("git"), other("1")}, verb: generate.Update, want: []v1alpha1.HelmParameter{tag("live"), other("1")}},
		"only that differs": {rule: `.spec.source.helm.parameters[] | select(.name == "tag") | .value`, live: app(tag("live")), wanted: []v1alpha1.HelmParameter{tag("git")}, verb: generate.Keep},
		"gone from live":    {rule: `.spec.source.helm`, live: app(), wanted: []v1alpha1.HelmParameter{tag("git")}, verb: generate.Keep},
		"more in live":      {rule: `.spec.source.helm.parameters[0,1]`, live: app(tag("a"), tag("b")), wanted: []v1alpha1.HelmParameter{tag("git")}, verb: generate.Update, want: []v1alpha1.HelmParameter{tag("a")}},
		"not a path":        {rule: `.spec.source.path + "x"`, live: app(tag("live")), wanted: []v1alpha1.HelmParameter{tag("git")}, verb: generate.Hold, say: "the operator +"},
		"without end":       {rule: `.spec | recurse(.)`, live: app(tag("live")), wanted: []v1alpha1.HelmParameter{tag("git")}, verb: generate.Refuse, say: "jqPathExpressions[0]"},
		"a loop":            {rule: `def f: f; f`, live: app(tag("live")), wanted: []v1alpha1.HelmParameter{tag("git")}, verb: generate.Hold, say: "def is not acted on"},
		"a long way":        {rule: `recurse(.spec, .spec, .) | select(.x)`, live: app(tag("live")), wanted: []v1alpha1.HelmParameter{tag("git")}, verb: generate.Refuse, say: "takes more steps"},
		"no environment":    {rule: `.spec | select($ENV.HOME == null)`, live: app(tag("live")), wanted: []v1alpha1.HelmParameter{tag("git")}, verb: generate.Hold, say: "$ENV is not acted on"},
		"nor by function":   {rule: `.spec | select(env.HOME == null)`, live: app(tag("live")), wanted: []v1alpha1.HelmParameter{tag("git")}, verb: generate.Hold, say: "env is not acted on"},
		"a condition":       {rule: `.spec.source | if has("helm") then .helm.parameters[0] else .path end | select(.name | test("^t") and (. == "x" | not)) | .value`, live: app(tag("live")), wanted: []v1alpha1.HelmParameter{tag("git")}, verb: generate.Keep},
	} {
		t.Run(name, func(t *testing.T) {
			set := setOf(t, withTemplate(listOf("a"), "{{name}}", "x"))
			set.Spec.Template.Spec.Source.Helm = &v1alpha1.ApplicationSourceHelm{Parameters: tc.wanted}
			set.Spec.IgnoreApplicationDifferences = []v1alpha1.ApplicationSetResourceIgnoreDifferences{{JQPathExpressions: []string{tc.rule}}}
			c := generate.Reconcile(set, generate.Generate(set, fleet()), []*v1alpha1.Application{tc.live}, generate.Policy{})[0]
			if c.Verb != tc.verb || !strings.Contains(fmt.Sprint(c.Err), tc.say) {
				t.Fatalf("%s (%s) %v, want %s", c.Verb, c.Reason, c.Err, tc.verb)
			}
			if tc.want != nil {
				if diff := cmp.Diff(tc.want, c.Application.Spec.Source.Helm.Parameters); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestSetsThatAreRenamed: an Application of a set that is gone, or that lets it
// go, belongs to the set that generates it now. Nothing is deleted on the way.
func TestSetsThatAreRenamed(t *testing.T) {
	f := fleet()
	named := func(set string, elements ...string) *v1alpha1.ApplicationSet {
		return setOf(t, withTemplate(listOf(elements...), "{{name}}", "x", "metadata: {name: "+set+"}"))
	}
	before, after := named("old", "a", "b"), named("new", "a", "b")
	apps := liveOf(generate.Reconcile(before, generate.Generate(before, f), nil, generate.Policy{}))
	reconcile := func(set *v1alpha1.ApplicationSet, live []*v1alpha1.Application, policy generate.Policy) []generate.Change {
		return generate.Reconcile(set, generate.Generate(set, f), live, policy)
	}
	for name, tc := range map[string]struct {
		changes []generate.Change
		want    []string
	}{
		"the old one is there":      {reconcile(after, apps, generate.Policy{Sets: []string{"new", "old"}}), []string{"a refuse!", "b refuse!"}},
		"nobody knows":              {reconcile(after, apps, generate.Policy{}), []string{"a refuse!", "b refuse!"}},
		"the old one is gone":       {reconcile(after, apps, generate.Policy{Sets: []string{"new"}}), []string{"a update", "b update"}},
		"the old one is deleted":    {generate.Teardown(before, apps, generate.Policy{Elsewhere: map[string]string{"a": "new"}}), []string{"a update", "b delete"}},
		"the old one has less":      {reconcile(named("old", "b"), apps, generate.Policy{Elsewhere: map[string]string{"a": "new"}}), []string{"a update", "b keep"}},
		"the old one wants it too":  {reconcile(before, apps, generate.Policy{Elsewhere: map[string]string{"a": "new"}}), []string{"a keep", "b keep"}},
		"the old one falls to none": {reconcile(named("old"), apps, generate.Policy{Elsewhere: map[string]string{"a": "new", "b": "new"}}), []string{"a update", "b update"}},
	} {
		if diff := cmp.Diff(tc.want, verbs(tc.changes)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, c := range tc.changes {
			if c.Verb != generate.Update {
				continue
			}
			owner := ""
			for _, o := range c.Application.OwnerReferences {
				owner += o.Name
			}
			if owner != "" && owner != "new" {
				t.Errorf("%s: %s still belongs to %q", name, c.Name, owner)
			}
		}
	}
	emptied := named("old")
	if d := generate.Decide(emptied, generate.Generate(emptied, f), apps, generate.Policy{Elsewhere: map[string]string{"a": "new"}}); d.Held == nil || !d.Held.Empties {
		t.Error("a set that becomes empty waits, although it deletes only what nobody takes")
	}
	if apps[0].OwnerReferences[0].Name != "old" {
		t.Error("what is live is not written to")
	}
	// What the old set let go, the new one adopts.
	freed := liveOf(generate.Teardown(before, apps, generate.Policy{Elsewhere: map[string]string{"a": "new", "b": "new"}}))
	if diff := cmp.Diff([]string{"a update", "b update"}, verbs(reconcile(after, freed, generate.Policy{}))); diff != "" {
		t.Error(diff)
	}
	moved := generate.Teardown(before, append(apps, func() *v1alpha1.Application {
		other := apps[0].DeepCopy()
		other.Name, other.OwnerReferences[0].Name = "a2", "new"
		return other
	}()), generate.Policy{HandOver: true})
	if diff := cmp.Diff([]string{"a release~", "b release~"}, verbs(moved)); diff != "" {
		t.Errorf("what has its objects elsewhere leaves them there:\n%s", diff)
	}
}
