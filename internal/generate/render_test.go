package generate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter/internal/generate"
)

// one is a set with one list element and a whole template.
func one(element, template string, rest ...string) string {
	return "spec:\n" + indent(strings.Join(rest, "\n"), 2) + "\n  generators:\n  - list: {elements: [" + element + "]}\n  template:\n" + indent(template, 4)
}

const plainTemplate = `metadata: {name: 'app-%s'}
spec:
  project: default
  source: {repoURL: r, path: '%s'}
  destination: {name: in-cluster, namespace: x}`

func TestGoTemplates(t *testing.T) {
	strict := "goTemplateOptions: [missingkey=error]"
	cases := map[string]struct {
		reason, element, path string
		option                string
		want                  string
		err, warning          string
	}{
		"default for an absent key": {reason: "B6: a default stands in even where missing keys are errors",
			element: "{name: a}", path: `{{.dir | default "base"}}`, option: strict, want: "base"},
		"default for a nested key": {reason: "B6: at any depth", element: "{name: a}",
			path: `{{ default "base" .meta.labels.dir }}-{{ $.x.y | default "q" }}`, option: strict, want: "base-q"},
		"default within": {reason: "B6: in parentheses and conditions", element: "{name: a}",
			path: `{{ if (.no.way | default true) }}{{ (coalesce .p .name) | upper }}{{ end }}`, option: strict, want: "A"},
		"default does not hide a value": {reason: "the key is there", element: "{name: a, dir: d}",
			path: `{{.dir | default "base"}}`, option: strict, want: "d"},
		"absent key": {reason: "B6: only that element fails, and the key is named", element: "{name: a}",
			path: "apps/{{.dir}}", option: strict, err: `spec.template.spec.source.path: .dir: there is no parameter "dir"`},
		"absent key without the option": {reason: "the reference ships it", element: "{name: a}",
			path: "apps/{{.dir}}", err: "spec.template.spec.source.path: a parameter is missing"},
		"no environment": {reason: "sets must not read the controller's environment", element: "{name: a}",
			path: `{{env "HOME"}}`, err: `function "env" not defined`},
		"no resolver": {reason: "nor the network", element: "{name: a}", path: `{{getHostByName "x"}}`, err: "not defined"},
		"normalize":   {reason: "fit for a name", element: "{name: a}", path: `{{normalize "-Feature/A_b.C-"}}`, want: "feature-a-b.c"},
		"slugify":     {reason: "cut between words", element: "{name: a}", path: `{{slugify 12 true "Hello wonderful World"}}|{{slugify 12 false "Hello wonderful World"}}|{{slugify "Ünï Cödé"}}`, want: "hello|hello-wonder|uni-code"},
		"yaml": {reason: "both ways", element: "{name: a}",
			path: `{{ (fromYaml "k: {v: 1}").k.v }}{{ index (fromYamlArray "[5, 6]") 1 }}{{ toYaml (dict "a" 1) }}`, want: "16a: 1"},
		"syntax error": {reason: "it names the field", element: "{name: a}", path: "{{.a", err: "spec.template.spec.source.path: is not a Go template"},
		"fails itself": {reason: "the author's words are kept", element: "{name: a}", path: `{{fail "no such tier"}}`, err: "no such tier"},
		"loops": {reason: "sound loops work as ever", element: "{name: a, l: [1, 2]}",
			path: `{{range $i, $e := .l}}{{if $i}},{{end}}{{$e}}{{end}}|{{range until 3}}{{.}}{{else}}none{{end}}|{{with .l}}{{len .}}{{end}}|{{seq 2 5}}`, want: "1,2|012|2|2 3 4 5"},
		"definitions": {reason: "templates within work", element: "{name: a}", path: `{{define "x"}}<{{.}}>{{end}}{{template "x" (upper .name)}}`, want: "<A>"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := one(tc.element, fmt.Sprintf(plainTemplate, "{{.name}}", strings.ReplaceAll(tc.path, "'", "''")), "goTemplate: true", tc.option)
			res := generate.Generate(setOf(t, text), fleet())
			e := res.Elements[0]
			if tc.err != "" {
				if e.Err == nil || !strings.Contains(e.Err.Error(), tc.err) {
					t.Fatalf("%s\nerror %v, want %q", tc.reason, e.Err, tc.err)
				}
				if e.Name != "app-a" || res.Completeness != generate.Complete {
					t.Errorf("%s\nthe name is known (%q), so the answer is complete: %s", tc.reason, e.Name, res.Completeness)
				}
				return
			}
			if e.Err != nil {
				t.Fatalf("%s\n%v", tc.reason, e.Err)
			}
			if got := e.Application.Spec.Source.Path; got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
			if warnings := strings.Join(e.Warnings, "\n"); !strings.Contains(warnings, tc.warning) || (tc.warning == "") != (warnings == "") {
				t.Errorf("%s\nwarnings %q, want %q", tc.reason, warnings, tc.warning)
			}
		})
	}
}

// TestTemplatesEnd: text/template cannot be stopped, so what would not end in
// time or memory must be refused by itself.
func TestTemplatesEnd(t *testing.T) {
	for name, text := range map[string]string{
		"loop over a number":   `{{range 1000000000}}{{end}}`,
		"loops in loops":       `{{range 100000}}{{range 100000}}{{end}}{{end}}`,
		"until":                `{{range until 2000000000}}{{end}}`,
		"seq":                  `{{seq 1 2000000000}}`,
		"repeat":               `{{repeat 2000000000 "x"}}`,
		"indent":               `{{indent 2000000000 "x"}}`,
		"doubling":             `{{$x := "aaaaaaaaaa"}}{{range 60}}{{$x = printf "%s%s" $x $x}}{{end}}`,
		"doubling with":        strings.Repeat(`{{with printf "%s%s" . .}}`, 40) + strings.Repeat("{{end}}", 40),
		"recursion":            `{{define "r"}}{{template "r" .}}{{template "r" .}}{{end}}{{template "r" .}}`,
		"output":               `{{range 900000}}aaaaaaaaaa{{end}}`,
		"replace":              `{{$x := repeat 1000 "a"}}{{range 9}}{{$x = replace "a" $x $x}}{{end}}`,
		"slow functions":       `{{range 1000}}{{$x := bcrypt "x"}}{{end}}`,
		"work on large values": `{{$x := repeat 1000000 "a"}}{{range 900000}}{{$y := upper $x}}{{end}}`,
		"overflow":             `{{repeat 9223372036854775807 "xx"}}`,
		"exponential template": exponential(40),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			res := generate.Generate(setOf(t, one("{name: a}", fmt.Sprintf(plainTemplate, "a", "PATH"), "goTemplate: true")), fleet())
			if res.Elements[0].Err != nil {
				t.Fatal(res.Elements[0].Err)
			}
			set := setOf(t, one("{name: a}", fmt.Sprintf(plainTemplate, "a", "PATH"), "goTemplate: true"))
			set.Spec.Template.Spec.Source.Path = text
			e := generate.Generate(set, fleet()).Elements[0]
			if e.Err == nil {
				t.Fatalf("rendered %d bytes", len(e.Application.Spec.Source.Path))
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v: %v", took, e.Err)
			}
		})
	}
}

// exponential are templates of which each calls the next one twice.
func exponential(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{{define "t%d"}}{{template "t%d" .}}{{template "t%d" .}}{{end}}`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `{{define "t%d"}}{{end}}{{template "t0" .}}`, n)
	return b.String()
}

// TestUnknownKeys: an expression that no generator fills is refused where it
// says what is deployed and where to, with how it is written right; elsewhere it
// stays, because the text may be a template of somebody else.
func TestUnknownKeys(t *testing.T) {
	two := "- git: {repoURL: https://git.example.com/fleet, directories: [{path: apps/*}]}\n- clusters: {selector: {matchLabels: {env: production}}}"
	for name, tc := range map[string]struct{ set, err, warning string }{
		"another's":  {set: withTemplate(two, "{{path.basename}}", "{{name}}"), err: `spec.template.spec.source.path: no parameter "name" comes from generators[0].git, which gives path, path.basename, path.basenameNormalized; generators[1].clusters gives it, but to elements of its own: to combine the two, put both into one matrix generator`},
		"misspelt":   {set: one("{name: a, region: eu}", fmt.Sprintf(plainTemplate, "{{name}}", "apps/{{ regoin }}")), err: `no parameter "regoin" comes from generators[0].list, which gives name, region; did you mean "region"?`},
		"nobody's":   {set: one("{name: a}", fmt.Sprintf(plainTemplate, "{{name}}", "apps/{{ tier }}")), err: `no parameter "tier" comes from generators[0].list, which gives name; give it to each element (with a list generator as tier: …, or below values), or write the value itself`},
		"a Go field": {set: one("{name: a}", fmt.Sprintf(plainTemplate, "{{.name}}", "apps/{{ .tier }}"), "goTemplate: true"), err: `spec.template.spec.source.path: a parameter is missing here and was printed as "<no value>"; it has name`},
		"a value":    {set: one("{name: a}", fmt.Sprintf(plainTemplate, "{{name}}", "x")+"\n  syncPolicy: {syncOptions: ['{{ Release }}']}"), warning: "spec.template.spec.syncPolicy.syncOptions[0]: {{Release}}: generators[0].list has no such parameter; the text stays as it is written"},
	} {
		t.Run(name, func(t *testing.T) {
			e := generate.Generate(setOf(t, tc.set), fleet()).Elements[0]
			if tc.err != "" && (e.Err == nil || !strings.Contains(e.Err.Error(), tc.err) || e.Application != nil) || tc.err == "" && e.Err != nil {
				t.Errorf("error %v, want %q", e.Err, tc.err)
			}
			if got := strings.Join(e.Warnings, "\n"); got != tc.warning {
				t.Errorf("warnings %q, want %q", got, tc.warning)
			}
		})
	}
}

func TestBadElementsStopOnlyThemselves(t *testing.T) {
	var elements []string
	for i := range 50 {
		name := fmt.Sprintf("app%d", i)
		switch i {
		case 20, 31:
			name = "same"
		case 44:
			name = ""
		case 45:
			name = "Not_A_Name"
		case 46:
			name = strings.Repeat("x", 254)
		}
		elements = append(elements, fmt.Sprintf("{name: '%s', id: 'no%d'}", name, i))
	}
	set := setOf(t, withTemplate("- list: {elements: ["+strings.Join(elements, ",")+"]}", "{{name}}", "x"))
	res := generate.Generate(set, fleet())
	if len(res.Applications) != 45 || len(res.Elements) != 50 {
		t.Errorf("B10: %d of %d elements are good, want 45 of 50", len(res.Applications), len(res.Elements))
	}
	if res.Completeness != generate.Partial {
		t.Errorf("an element without a name may stand for any Application: %s", res.Completeness)
	}
	for i, want := range map[int]string{
		20: `generators[0].list element 20 (name="same" id="no20"): the name "same" is also that of generators[0].list element 31 (name="same" id="no31")`,
		31: `is also that of generators[0].list element 20`,
		44: `generators[0].list element 44 (name="" id="no44"): spec.template.metadata.name: is empty`,
		45: `"Not_A_Name" is not a name`,
		46: `has 254 characters`,
	} {
		if err := res.Elements[i].Err; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("element %d: error %v, want %q", i, err, want)
		}
	}
}

func TestTemplatePatch(t *testing.T) {
	tmpl := fmt.Sprintf(plainTemplate, "{{.name}}", "x")
	cases := map[string]struct {
		reason, element, patch string
		want                   string // JSON of spec.syncPolicy
		err, warning           string
	}{
		"typed values": {reason: "B11: a patch can set what is not a text", element: "{name: a, prune: true}",
			patch: "spec:\n  syncPolicy:\n    automated:\n      prune: {{ .prune }}\n", want: `{"automated":{"prune":true}}`},
		"a text for a boolean": {reason: "B11: it fails when the set is evaluated, with its path", element: "{name: a, prune: maybe}",
			patch: "spec:\n  syncPolicy:\n    automated:\n      prune: {{ .prune }}\n", err: "spec.syncPolicy.automated.prune"},
		"the project stays": {reason: "a patch cannot move an Application to another project", element: "{name: a}",
			patch: "spec: {project: other, syncPolicy: {syncOptions: [A=b]}}", want: `{"syncOptions":["A=b"]}`, warning: "changes neither spec.project"},
		"conditional": {reason: "an empty patch changes nothing", element: "{name: a, auto: false}",
			patch: "{{ if .auto }}spec: {syncPolicy: {automated: {}}}{{ end }}", want: "null"},
		"an empty spec": {reason: "what is left when all lines are conditional wipes nothing", element: "{name: a}",
			patch: "spec:\n  {{ if .no }}syncPolicy: {}{{ end }}\nmetadata:", want: "null", warning: "spec is empty after rendering; it changes nothing"},
		"null": {reason: "nor does a patch of nothing", element: "{name: a}", patch: "null", want: "null"},
		"a lost destination": {reason: "what an Application cannot do without is missed aloud", element: "{name: a}",
			patch: "spec: {destination: null}", err: "names no cluster; set server or name"},
		"free-form values": {reason: "are merged too", element: "{name: a}",
			patch: "spec: {source: {helm: {valuesObject: {a: {b: 1}}}}, syncPolicy: {retry: {limit: 2}}}", want: `{"retry":{"limit":2}}`},
		"finalizers": {reason: "are the one list that is added to", element: "{name: a}",
			patch: "metadata: {finalizers: [x.example.com/y]}\nspec: {syncPolicy: {syncOptions: [A=b]}}", want: `{"syncOptions":["A=b"]}`},
		"unknown field": {reason: "it is ignored and said", element: "{name: a}", patch: "spec: {nonsense: 1}",
			want: "null", warning: "spec.nonsense"},
		"not YAML": {reason: "the place is named", element: "{name: a}", patch: "a: b: c", err: "spec.templatePatch: is not YAML"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := setOf(t, one(tc.element, tmpl, "goTemplate: true"))
			set.Spec.TemplatePatch = &tc.patch
			e := generate.Generate(set, fleet()).Elements[0]
			if tc.err != "" {
				if e.Err == nil || !strings.Contains(e.Err.Error(), tc.err) {
					t.Errorf("%s\nerror %v, want %q", tc.reason, e.Err, tc.err)
				}
				return
			}
			if e.Err != nil {
				t.Fatalf("%s\n%v", tc.reason, e.Err)
			}
			got, err := json.Marshal(e.Application.Spec.SyncPolicy)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want || e.Application.Spec.Project != "default" || e.Application.Spec.Source.Path != "x" {
				t.Errorf("%s\ngot %s in project %s", tc.reason, got, e.Application.Spec.Project)
			}
			if !strings.Contains(strings.Join(e.Warnings, "\n"), tc.warning) {
				t.Errorf("%s\nwarnings %q, want %q", tc.reason, e.Warnings, tc.warning)
			}
		})
	}
}

func TestTemplateOfAGenerator(t *testing.T) {
	set := setOf(t, `
spec:
  generators:
  - list:
      elements: [{name: a}]
      template:
        metadata: {labels: {from: generator}}
        spec: {source: {path: 'own/{{name}}', helm: {valueFiles: [one.yaml]}}}
  - list: {elements: [{name: b}]}
  template:
    metadata: {name: '{{name}}', labels: {team: t, from: set}}
    spec:
      project: default
      source: {repoURL: r, path: p, targetRevision: main, helm: {valueFiles: [two.yaml, three.yaml]}}
      destination: {name: in-cluster}
`)
	res := generate.Generate(set, fleet())
	if len(res.Applications) != 2 || problems(res) != "" {
		t.Fatalf("got %v: %s", names(res), problems(res))
	}
	a, b := res.Applications[0], res.Applications[1]
	if diff := cmp.Diff(map[string]string{"team": "t", "from": "generator"}, a.Labels); diff != "" {
		t.Errorf("labels are merged, the generator's win:\n%s", diff)
	}
	if s := a.Spec.Source; s.Path != "own/a" || s.RepoURL != "r" || s.TargetRevision != "main" || len(s.Helm.ValueFiles) != 1 {
		t.Errorf("fields are filled, lists are not concatenated: %+v", s)
	}
	if b.Spec.Source.Path != "p" || b.Labels["from"] != "set" {
		t.Errorf("another generator has the set's template: %+v", b)
	}
}

func TestFinalizersAndPlace(t *testing.T) {
	tmpl := `metadata: {name: '{{name}}', namespace: elsewhere%s}
spec: {project: p, destination: {name: x}, source: {repoURL: r, path: '{{name}}', helm: {valuesObject: {'{{name}}-key': '{{name}}', num: 1, nothing: null, l: ['{{name}}']}}}}`
	for name, tc := range map[string]struct {
		finalizers, policy string
		want               []string
	}{
		"default":   {want: []string{"resources-finalizer.argocd.argoproj.io"}},
		"preserve":  {policy: "syncPolicy: {preserveResourcesOnDeletion: true}"},
		"their own": {finalizers: ", finalizers: [mine.example.com/x]", want: []string{"mine.example.com/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := setOf(t, one("{name: a}", fmt.Sprintf(tmpl, tc.finalizers), tc.policy))
			set.Namespace = "team"
			res := generate.Generate(set, fleet())
			if len(res.Applications) != 1 {
				t.Fatal(problems(res))
			}
			app := res.Applications[0]
			if diff := cmp.Diff(tc.want, app.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
			if app.Namespace != "team" || app.Kind != "Application" || app.APIVersion != "argoproj.io/v1alpha1" {
				t.Errorf("an Application is made in its set's namespace: %s %s %s", app.Namespace, app.APIVersion, app.Kind)
			}
			if got := string(app.Spec.Source.Helm.ValuesObject.Raw); got != `{"a-key":"a","l":["a"],"nothing":null,"num":1}` {
				t.Errorf("texts and keys of free-form values are rendered, the rest is kept: %s", got)
			}
		})
	}
}
