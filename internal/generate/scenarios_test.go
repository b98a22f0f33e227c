package generate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// The scenarios of the regression list that can be shown without a server.

// remembered is the memory of a result after it was written and read again.
func remembered(t *testing.T, res generate.Result) generate.Memory {
	t.Helper()
	data, left, err := res.Memory.Encode(200 << 10)
	if err != nil || left != 0 {
		t.Fatalf("%d answers left out: %v", left, err)
	}
	m, err := generate.DecodeMemory(data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func count(changes []generate.Change, verb generate.Verb) int {
	n := 0
	for _, c := range changes {
		if c.Verb == verb {
			n++
		}
	}
	return n
}

func TestB1OutageKeepsParametersInForce(t *testing.T) {
	set := setOf(t, withTemplate("- clusters: {selector: {matchExpressions: [{key: env, operator: Exists}]}}", "{{name}}", "{{metadata.labels.region}}"))
	f := fleet()
	good := generate.Generate(set, f)
	apps := liveOf(generate.Reconcile(set, good, nil, generate.Policy{}))
	if len(apps) != 3 {
		t.Fatalf("three live Applications, not %v", names(good))
	}

	down := &facts{clustersErr: rutter.Errorf(rutter.CodeUnavailable, "the API server answers 500")}
	res := generate.Options{Memory: remembered(t, good)}.Generate(set, down)
	if res.Completeness != generate.Partial || len(res.Errors) != 1 || len(res.Applications) != 3 || !res.Elements[0].Stale {
		t.Errorf("the last good parameters stay in force: %s %v %v", res.Completeness, names(res), res.Errors)
	}
	if diff := cmp.Diff(good.Applications, res.Applications); diff != "" {
		t.Errorf("and give the same Applications:\n%s", diff)
	}
	changes := generate.Reconcile(set, res, apps[:2], generate.Policy{})
	if diff := cmp.Diff([]string{"east keep", "lab keep", "west create"}, verbs(changes)); diff != "" {
		t.Errorf("one that is lost meanwhile comes back:\n%s", diff)
	}

	again := generate.Options{Memory: remembered(t, res)}.Generate(set, down)
	if len(again.Applications) != 3 {
		t.Errorf("an outage that lasts keeps them: %v", names(again))
	}
	f.clusters = f.clusters[1:]
	recovered := generate.Options{Memory: remembered(t, again)}.Generate(set, f)
	if recovered.Completeness != generate.Complete || len(recovered.Applications) != 2 || recovered.Elements[0].Stale {
		t.Errorf("it recovers by itself: %s %v", recovered.Completeness, names(recovered))
	}

	// Without a memory, and with that of another question, nothing is deleted either.
	edited := set.DeepCopy()
	edited.Spec.Generators[0].Clusters.Selector.MatchExpressions[0].Key = "region"
	for name, res := range map[string]generate.Result{
		"none": generate.Generate(set, down), "another": generate.Options{Memory: remembered(t, good)}.Generate(edited, down),
	} {
		changes := generate.Reconcile(set, res, apps, generate.Policy{})
		if res.Completeness != generate.Failed || count(changes, generate.Keep) != 3 {
			t.Errorf("memory %s: %s %v", name, res.Completeness, verbs(changes))
		}
	}
}

func TestB3OneGeneratorFails(t *testing.T) {
	text := func(path string, elements ...string) string {
		return withTemplate("- git: {repoURL: https://git.example.com/fleet, directories: [{path: apps/shop}, {path: apps/cart}], values: {v: g}}\n"+
			"- list: {elements: ["+strings.Join(elements, ",")+"]}", "{{path.basename}}", path)
	}
	f := fleet()
	set := setOf(t, text("{{values.v}}", "{path.basename: a, values: {v: '1'}}", "{path.basename: b, values: {v: '1'}}"))
	good := generate.Generate(set, f)
	apps := liveOf(generate.Reconcile(set, good, nil, generate.Policy{}))
	f.repos = nil
	for name, memory := range map[string]generate.Memory{"with a memory": remembered(t, good), "without": {}} {
		after := setOf(t, text("{{values.v}}", "{path.basename: a, values: {v: '2'}}", "{path.basename: c, values: {v: '2'}}"))
		res := generate.Options{Memory: memory}.Generate(after, f)
		want := []string{"a update", "b keep", "c create", "cart keep", "shop keep"}
		if diff := cmp.Diff(want, verbs(generate.Reconcile(after, res, apps, generate.Policy{}))); diff != "" {
			t.Errorf("%s: those of Git are frozen, those of the list go on, and none is deleted:\n%s", name, diff)
		}
	}
}

func TestB3InAMatrix(t *testing.T) {
	set := setOf(t, goTemplated(withTemplate(`- matrix:
    generators:
    - git: {repoURL: https://git.example.com/fleet, files: [{path: clusters/west/config.yaml}], values: {x: '{{.cluster}}'}}
    - clusters: {flatList: true, values: {c: '{{.name}}'}}`, "{{.cluster}}-{{len .clusters}}", `{{(index .clusters 0).values.c}}{{.values.x}}{{.replicas}}`), "missingkey=error"))
	f := fleet()
	good := generate.Generate(set, f)
	f.repos, f.clustersErr = nil, rutter.Errorf(rutter.CodeUnavailable, "down")
	res := generate.Options{Memory: remembered(t, good)}.Generate(set, f)
	if diff := cmp.Diff(good.Applications, res.Applications); diff != "" || len(good.Applications) != 1 || len(res.Errors) != 2 {
		t.Errorf("both children are remembered: %v %v\n%s", names(good), res.Errors, diff)
	}
}

func TestB4FallsToNothing(t *testing.T) {
	budget := `metadata: {name: set, uid: u1, annotations: {rutter.dev/deletion-budget: 10%}}`
	var all []string
	for i := range 40 {
		all = append(all, fmt.Sprintf("app-%02d", i))
	}
	f := fleet()
	before := setOf(t, withTemplate(listOf(all...), "{{name}}", "x", budget))
	apps := liveOf(generate.Reconcile(before, generate.Generate(before, f), nil, generate.Policy{}))
	for i, app := range apps {
		app.UID = types.UID(fmt.Sprint("uid-", i))
	}
	decide := func(policy generate.Policy, annotations map[string]string, live []*v1alpha1.Application, names ...string) generate.Decision {
		set := setOf(t, withTemplate(listOf(names...), "{{name}}", "x", budget))
		maps.Copy(set.Annotations, annotations)
		return generate.Decide(set, generate.Generate(set, f), live, policy)
	}

	d := decide(generate.Policy{}, nil, apps)
	if d.Held == nil || len(d.Held.Names) != 40 || !d.Held.Empties || count(d.Changes, generate.Delete) != 0 || count(d.Changes, generate.Hold) != 40 {
		t.Fatalf("40 to 0 waits: %+v", d.Held)
	}
	if again := decide(generate.Policy{}, map[string]string{"unrelated": "x"}, apps); again.Held.Digest != d.Held.Digest {
		t.Error("the digest does not change by itself")
	}
	approval := map[string]string{generate.AnnotationApprove: d.Held.Digest}
	approved := decide(generate.Policy{}, approval, apps)
	if count(approved.Changes, generate.Delete) != 40 || approved.Held != nil || approved.Ticket == "" {
		t.Fatalf("with approval all 40 go: %+v", approved.Held)
	}
	// Killed after ten of them: the ticket tells that the rest is the approved plan.
	if rest := decide(generate.Policy{Ticket: approved.Ticket}, approval, apps[10:]); count(rest.Changes, generate.Delete) != 30 || rest.Ticket != approved.Ticket {
		t.Errorf("the rest goes: %+v", rest.Held)
	}
	if rest := decide(generate.Policy{}, approval, apps[10:]); count(rest.Changes, generate.Delete) != 0 {
		t.Error("without the ticket the rest is another plan")
	}
	// An Application of the same name that was made since is not part of what was approved.
	remade := apps[39].DeepCopy()
	remade.UID = "another"
	if more := decide(generate.Policy{Ticket: approved.Ticket}, approval, append(slices.Clone(apps[:39]), remade)); count(more.Changes, generate.Delete) != 0 {
		t.Error("an approval is of exactly that plan")
	}
	if empty := decide(generate.Policy{}, map[string]string{generate.AnnotationAllowEmpty: "true"}, apps); count(empty.Changes, generate.Delete) != 40 {
		t.Errorf("a set may be allowed to become empty: %+v", empty.Held)
	}

	for left, held := range map[int]bool{39: false, 36: false, 35: true, 1: true} {
		d := decide(generate.Policy{}, nil, apps, append(slices.Clone(all[:left]), "new")...)
		if (d.Held != nil) != held || count(d.Changes, generate.Create) != 1 || count(d.Changes, generate.Delete)+count(d.Changes, generate.Hold) != 40-left {
			t.Errorf("40 to %d: held is %v, want %v, and growth goes on", left, d.Held, held)
		}
	}
	one := decide(generate.Policy{}, nil, apps[:1])
	if one.Held == nil {
		t.Error("a set that falls to nothing always waits")
	}
}

func TestB5PolicyHoldsWhenTheSetIsDeleted(t *testing.T) {
	set := setOf(t, withTemplate(listOf("a", "b"), "{{name}}", "x"))
	policy(v1alpha1.ApplicationsSyncPolicyCreateUpdate)(set, nil)
	apps := liveOf(generate.Reconcile(set, generate.Generate(set, fleet()), nil, generate.Policy{}))
	for _, c := range generate.Teardown(set, apps, generate.Policy{}) {
		if c.Verb != generate.Update || len(c.Application.OwnerReferences) != 0 || !strings.Contains(c.Reason, "detached") {
			t.Errorf("%+v", c)
		}
	}
}

func TestB6AbsentKeys(t *testing.T) {
	set := setOf(t, goTemplated(withTemplate("- list: {elements: [{name: a, tier: gold}, {name: b}]}", "{{.name}}", `{{.dir | default "base"}}`), "missingkey=error"))
	set.Spec.Template.Labels = map[string]string{"tier": "{{.tier}}"}
	res := generate.Generate(set, fleet())
	if diff := cmp.Diff([]string{"a"}, names(res)); diff != "" || res.Applications[0].Spec.Source.Path != "base" {
		t.Errorf("an absent key with a default is the default: %s", problems(res))
	}
	want := `generators[0].list element 1 (name="b"): spec.template.metadata.labels.tier: .tier: there is no parameter "tier"`
	if res.Elements[1].Err == nil || res.Elements[1].Err.Error() != want || res.Completeness != generate.Complete {
		t.Errorf("one without stops its element, with both named:\n%v, want\n%s", res.Elements[1].Err, want)
	}
}

func TestB8Products(t *testing.T) {
	set := setOf(t, goTemplated(withTemplate(`- matrix:
    generators:
    - clusters: {selector: {matchLabels: {env: production}}}
    - git: {repoURL: https://git.example.com/fleet, directories: [{path: apps/*}]}
    - list: {elements: [{tier: 'hot-{{.path.basename}}'}, {tier: cold}]}`, "{{.name}}-{{.path.basename}}-{{.tier}}", "x"), "missingkey=error"))
	res := generate.Generate(set, fleet())
	if len(res.Applications) != 2*3*2 || names(res)[0] != "east-cart-cold" || names(res)[1] != "east-cart-hot-cart" {
		t.Errorf("clusters by directories by what the list makes of them: %v\n%s", names(res), problems(res))
	}
	deep := "- list: {elements: [{k0: a}, {k0: b}]}"
	for i := range 5 {
		deep = fmt.Sprintf("- matrix:\n    generators:\n    - list: {elements: [{k%d: '{{.k0}}%d'}, {k%d: x}]}\n%s", i+1, i+1, i+1, indent(deep, 4))
	}
	if i := strings.LastIndex(deep, "k1: '{{.k0}}1'"); i < 0 {
		t.Fatal(deep)
	}
	deep = strings.NewReplacer("{{.k0}}1", "q", "{{.k0}}2", "{{.k3}}2", "{{.k0}}3", "{{.k4}}3", "{{.k0}}4", "{{.k5}}4", "{{.k0}}5", "5").Replace(deep)
	res = generate.Generate(setOf(t, goTemplated(withTemplate(deep, "{{.k5}}-{{.k4}}-{{.k3}}-{{.k2}}-{{.k1}}-{{.k0}}", "x"), "missingkey=error")), fleet())
	if len(res.Applications) != 64 || !slices.Contains(names(res), "5-54-543-5432-q-a") {
		t.Errorf("five levels, each seeing the one outside of it: %d %v\n%s", len(res.Applications), names(res), problems(res))
	}
}

func TestB9Collisions(t *testing.T) {
	text := `- matrix:
    generators:
    - clusters: {selector: {matchLabels: {env: staging}}}
    - list: {elements: [{app: x, metadata: {labels: {env: mine}, note: w}}]}`
	path := `{{.metadata.labels.env}} {{.metadata.labels.region}} {{.metadata.note}}`
	for name, tc := range map[string]struct {
		annotation string
		opts       generate.Options
		want       string
		errs       []string
	}{
		"undeclared": {errs: []string{`parameter "metadata" is an object from generators[0].matrix.generators[0].clusters and an object from generators[0].matrix.generators[1].list`, "rutter.dev/collisions"}},
		"first":      {annotation: "first", want: "staging eu w"},
		"last":       {annotation: "last", want: "mine eu w"},
		"reference":  {annotation: "reference", want: "staging eu w"},
		"switch":     {opts: generate.Options{ReferenceCollisions: true}, want: "staging eu w"},
		"strict":     {annotation: "error", opts: generate.Options{ReferenceCollisions: true}, errs: []string{"metadata"}},
		"nonsense":   {annotation: "merge", errs: []string{`metadata.annotations[rutter.dev/collisions]: "merge" is not first, last, reference or error`}},
	} {
		set := setOf(t, goTemplated(withTemplate(text, "{{.name}}", path)))
		if tc.annotation != "" {
			set.Annotations = map[string]string{generate.AnnotationCollisions: tc.annotation}
		}
		res := tc.opts.Generate(set, fleet())
		if tc.want != "" {
			if len(res.Applications) != 1 || res.Applications[0].Spec.Source.Path != tc.want {
				t.Errorf("%s: want %q: %v %s", name, tc.want, res.Applications, problems(res))
			}
			continue
		}
		for _, part := range tc.errs {
			if !strings.Contains(problems(res), part) || len(res.Applications) > 0 || res.Completeness == generate.Complete {
				t.Errorf("%s: no error says %q: %s", name, part, problems(res))
			}
		}
	}
	runCases(t, map[string]generatorCase{
		"equal values": {reason: "need no precedence", set: goTemplated(withTemplate(`- matrix:
    generators:
    - list: {elements: [{name: lab, m: {a: [1]}}]}
    - list: {elements: [{name: lab, m: {a: [1]}}]}`, "{{.name}}", "x")), want: []string{"lab x"}},
		"values": {reason: "the map of values is shared; each of its keys counts for itself", set: goTemplated(withTemplate(`- matrix:
    generators:
    - clusters: {selector: {matchLabels: {env: staging}}, values: {a: '1'}}
    - git: {repoURL: https://git.example.com/fleet, directories: [{path: apps/shop}], values: {b: '2'}}`, "{{.name}}", "{{.values.a}}{{.values.b}}")), want: []string{"lab 12"}},
		"a key of values": {reason: "and is named", set: goTemplated(withTemplate(`- matrix:
    generators:
    - clusters: {selector: {matchLabels: {env: staging}}, values: {a: '1'}}
    - git: {repoURL: https://git.example.com/fleet, directories: [{path: apps/shop}], values: {a: '2'}}`, "{{.name}}", "x")),
			complete: generate.Partial, errs: []string{`parameter "values.a" is "1" from generators[0].matrix.generators[0].clusters and "2" from generators[0].matrix.generators[1].git`}},
		"two git generators": {reason: "the remedy for paths is their prefix", set: withTemplate(`- matrix:
    generators:
    - git: {repoURL: https://git.example.com/fleet, directories: [{path: apps/shop}]}
    - git: {repoURL: https://git.example.com/fleet, directories: [{path: clusters/lab}]}`, "{{path.basename}}", "x"),
			complete: generate.Partial, errs: []string{`parameter "path" is "apps/shop" from`, "pathParamPrefix"}},
	})
}

func TestB10BadElements(t *testing.T) {
	elements := make([]string, 50)
	for i := range elements {
		name, cluster := fmt.Sprintf("app%d", i), "lab"
		switch i {
		case 7:
			cluster = "mars"
		case 20, 31:
			name = "same"
		case 44:
			name = ""
		}
		elements[i] = fmt.Sprintf("{name: '%s', cluster: %s}", name, cluster)
	}
	set := setOf(t, withTemplate("- list: {elements: ["+strings.Join(elements, ",")+"]}", "{{name}}", "new"))
	set.Spec.Template.Spec.Destination = v1alpha1.ApplicationDestination{Name: "{{cluster}}"}
	old := set.DeepCopy()
	old.Spec.Template.Spec.Source.Path = "old"
	for _, i := range []int{7, 20, 31, 44} {
		name := map[int]string{7: "app7", 20: "same", 31: "app31", 44: "app44"}[i]
		old.Spec.Generators[0].List.Elements[i].Raw = fmt.Appendf(nil, `{"name":%q,"cluster":"lab"}`, name)
	}
	apps := liveOf(generate.Reconcile(old, generate.Generate(old, fleet()), nil, generate.Policy{}))
	changes := generate.Reconcile(set, generate.Generate(set, fleet()), apps, generate.Policy{Clusters: fleet().clusters, Projects: []string{"default"}})
	if n := count(changes, generate.Update); n != 46 {
		t.Errorf("%d of 50 reconcile, want 46", n)
	}
	want := map[string]string{
		"app7": `refuse: Application app7: spec.destination.name: there is no cluster "mars"`,
		"same": `keep: generators[0].list element 20 (name="same" cluster="lab"): the name "same" is also that of generators[0].list element 31`,
	}
	for _, c := range changes {
		if c.Verb == generate.Update {
			continue
		}
		if c.Application == nil || c.Application.Spec.Source.Path != "old" {
			t.Errorf("%s keeps its last good state: %+v", c.Name, c.Application)
		}
		if text, ok := want[c.Name]; ok && !strings.HasPrefix(fmt.Sprintf("%s: %v", c.Verb, c.Err), text) {
			t.Errorf("%s: %s: %v, want %s", c.Name, c.Verb, c.Err, text)
		}
	}
	set.Spec.Template.Spec.Project = "none"
	for _, c := range generate.Reconcile(set, generate.Generate(set, fleet()), nil, generate.Policy{Projects: []string{"default"}}) {
		if c.Verb != generate.Refuse || !strings.Contains(c.Err.Error(), `spec.project: there is no project "none"`) {
			t.Fatalf("a missing project: %+v", c)
		}
	}
}

func TestB11Types(t *testing.T) {
	set := setOf(t, `
spec:
  goTemplate: true
  generators:
  - list:
      elements: [{name: a, prune: true, limit: 7, options: [A=b, C=d], zones: [x, z], tag: '1.10', map: {k: 1}}, {name: b, prune: 'yes', limit: 7, options: [], zones: [], tag: x, map: {}}]
      template:
        metadata: {}
        spec:
          syncPolicy:
            automated: {prune: '{{ .prune }}', selfHeal: '{{ not .prune | not }}'}
            syncOptions: '{{ .options }}'
            retry: {limit: '{{ .limit }}'}
          revisionHistoryLimit: '{{ add .limit 1 }}'
  template:
    metadata: {name: '{{.name}}'}
    spec:
      project: default
      source:
        repoURL: r
        path: p
        helm: {valuesObject: {live: '{{ .prune }}', count: '{{ .limit }}', z: '{{ .zones }}', m: '{{.map}}', tag: '{{ .tag }}', text: 'n={{ .limit }}', deep: [{live: '{{.prune}}'}], none: '{{ .absent }}'}}
        kustomize: {replicas: [{name: x, count: '{{ .limit }}'}]}
      destination: {name: in-cluster}
`)
	res := generate.Generate(set, fleet())
	if len(res.Applications) != 1 {
		t.Fatal(problems(res))
	}
	spec := res.Applications[0].Spec
	p := spec.SyncPolicy
	if !p.Automated.Prune || !p.Automated.SelfHeal || p.Retry.Limit != 7 || *spec.RevisionHistoryLimit != 8 || !slices.Equal(p.SyncOptions, []string{"A=b", "C=d"}) {
		t.Errorf("booleans, numbers and lists go into fields of their type: %+v %+v %+v", p.Automated, p.Retry, p.SyncOptions)
	}
	if got, want := string(spec.Source.Helm.ValuesObject.Raw),
		`{"count":7,"deep":[{"live":true}],"live":true,"m":{"k":1},"none":"\u003cno value\u003e","tag":"1.10","text":"n=7","z":["x","z"]}`; got != want {
		t.Errorf("and keep it where anything may stand:\n%s, want\n%s", got, want)
	}
	if c := spec.Source.Kustomize.Replicas[0].Count; c.IntValue() != 7 {
		t.Errorf("a count is a number: %v", c)
	}
	want := `spec.template.spec.syncPolicy.automated.prune: "yes" is a text, want a boolean`
	if err := res.Elements[1].Err; err == nil || !strings.Contains(err.Error(), want) || res.Elements[1].Name != "b" {
		t.Errorf("a text for a boolean fails with its path: %v, want %q", err, want)
	}
	set.Annotations = map[string]string{generate.AnnotationTypedValues: "false"}
	res = generate.Generate(set, fleet())
	if got, want := string(res.Applications[0].Spec.Source.Helm.ValuesObject.Raw), `"count":"7"`; !strings.Contains(got, want) {
		t.Errorf("a set can ask for texts: %s", got)
	}
}

func TestB13LocalCluster(t *testing.T) {
	local := &facts{clusters: []rutter.ClusterInfo{inCluster()}}
	labelled := &facts{clusters: []rutter.ClusterInfo{{Name: "in-cluster", Server: generate.InClusterServer, Labels: map[string]string{"env": "hub"}}}}
	for name, tc := range map[string]struct {
		f        *facts
		selector string
		want     []string
	}{
		"fresh install":          {local, "{}", []string{"in-cluster"}},
		"a selector":             {local, "{matchLabels: {env: hub}}", nil},
		"with a Secret":          {labelled, "{}", []string{"in-cluster"}},
		"with a Secret, by that": {labelled, "{matchLabels: {env: hub}}", []string{"in-cluster"}},
	} {
		res := generate.Generate(setOf(t, withTemplate("- clusters: {selector: "+tc.selector+"}", "{{name}}", "x")), tc.f)
		if diff := cmp.Diff(append([]string{}, tc.want...), names(res)); diff != "" || res.Completeness != generate.Complete {
			t.Errorf("%s: %s\n%s", name, res.Completeness, diff)
		}
	}
}

func TestX6HoldsOutliveTheSet(t *testing.T) {
	set := setOf(t, withTemplate(listOf("a", "b", "c"), "{{name}}", "new"))
	set.Spec.Template.Spec.SyncPolicy = &v1alpha1.SyncPolicy{Automated: &v1alpha1.SyncPolicyAutomated{Prune: true}, SyncOptions: []string{"A=b"}}
	apps := liveOf(generate.Reconcile(set, generate.Generate(set, fleet()), nil, generate.Policy{}))
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	hold := func(app *v1alpha1.Application, text string) {
		app.Annotations = map[string]string{generate.AnnotationHold: text}
		paused := *app.Spec.SyncPolicy
		paused.Automated = nil
		app.Spec.SyncPolicy = &paused
	}
	hold(apps[0], "who=ada; why=incident 7; until=2026-08-01T13:00:00Z")
	hold(apps[1], "who=bob; why=done; until=2026-08-01T12:00:00Z")
	hold(apps[2], "who=eve; why=forgot the end")
	apps[0].Spec.Source = &v1alpha1.ApplicationSource{RepoURL: "edited"}
	d := generate.Decide(set, generate.Generate(set, fleet()), apps, generate.Policy{Now: now})
	if diff := cmp.Diff([]string{"a update", "b update", "c keep"}, verbs(d.Changes)); diff != "" {
		t.Fatal(diff)
	}
	a, b := d.Changes[0].Application, d.Changes[1].Application
	if a.Spec.SyncPolicy.Automated != nil || a.Spec.Source.Path != "new" || a.Annotations[generate.AnnotationHold] == "" || len(a.Spec.SyncPolicy.SyncOptions) != 1 {
		t.Errorf("what is held stays off, all else goes on, and the hold stays: %+v %+v", a.Spec, a.Annotations)
	}
	if b.Spec.SyncPolicy.Automated == nil || len(b.Annotations) != 0 {
		t.Errorf("a hold ends by itself: %+v", b)
	}
	want := []generate.ApplicationHold{{Application: "a", Who: "ada", Why: "incident 7", Until: now.Add(time.Hour)}, {Application: "c", Who: "eve", Why: "forgot the end"}}
	if diff := cmp.Diff(want, d.Holds); diff != "" || d.Requeue != time.Hour {
		t.Errorf("holds are shown, and the set is due when the first ends (%s):\n%s", d.Requeue, diff)
	}
	if len(d.Errors) != 1 || !strings.Contains(d.Errors[0].Error(), "Application c: metadata.annotations[rutter.dev/hold]: has no until") {
		t.Errorf("one that does not say when it ends is heeded, and said: %v", d.Errors)
	}
	if set.Spec.Template.Spec.SyncPolicy.Automated == nil {
		t.Error("the set is not written to")
	}
	fewer := setOf(t, withTemplate(listOf("b"), "{{name}}", "new"))
	d = generate.Decide(fewer, generate.Generate(fewer, fleet()), apps, generate.Policy{Now: now})
	if diff := cmp.Diff([]string{"a hold", "b update", "c hold"}, verbs(d.Changes)); diff != "" || !strings.Contains(d.Changes[0].Reason, "ada holds it until 2026-08-01T13:00:00Z") {
		t.Errorf("nor is what is held deleted: %+v\n%s", d.Changes[0], diff)
	}
	for _, c := range generate.Teardown(fewer, apps, generate.Policy{Now: now}) {
		if c.Name == "b" != (c.Verb == generate.Delete) {
			t.Errorf("a hold outlives its set: %+v", c)
		}
	}
	if again, err := generate.ParseHold(want[0].String()); err != nil || again.Who != "ada" || !again.Until.Equal(want[0].Until) {
		t.Errorf("a hold is read as it is written: %+v %v", again, err)
	}
}

// TestX6HoldsPassToAnotherName: what a person holds stays held under another name.
func TestX6HoldsPassToAnotherName(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	set := setOf(t, withTemplate(listOf("a", "b"), "{{name}}", "apps/{{name}}"))
	apps := liveOf(generate.Reconcile(set, generate.Generate(set, fleet()), nil, generate.Policy{}))
	const hold = "who=ada; why=incident 7; until=2026-08-01T13:00:00Z"
	apps[0].Annotations = map[string]string{generate.AnnotationHold: hold}
	renamed := setOf(t, withTemplate(listOf("a", "b"), "x-{{name}}", "apps/{{name}}"))
	d := generate.Decide(renamed, generate.Generate(renamed, fleet()), apps, generate.Policy{Now: now, HandOver: true})
	if diff := cmp.Diff([]string{"a hold", "b release~", "x-a create", "x-b create"}, verbs(d.Changes)); diff != "" {
		t.Fatal(diff)
	}
	for _, c := range d.Changes {
		want := ""
		if c.Name == "x-a" {
			want = hold
		}
		if c.Verb == generate.Create && c.Application.Annotations[generate.AnnotationHold] != want {
			t.Errorf("%s has the hold %q, want %q", c.Name, c.Application.Annotations[generate.AnnotationHold], want)
		}
	}
	later := generate.Decide(renamed, generate.Generate(renamed, fleet()), apps, generate.Policy{Now: now.Add(time.Hour), HandOver: true})
	if diff := cmp.Diff([]string{"a release~", "b release~", "x-a create", "x-b create"}, verbs(later.Changes)); diff != "" || later.Changes[2].Application.Annotations[generate.AnnotationHold] != "" {
		t.Errorf("a hold that has ended is not passed on: %s", diff)
	}
}
