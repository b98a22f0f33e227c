package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lines are findings as rule:line.
func lines(findings []Finding) []string {
	out := []string{}
	for _, f := range findings {
		out = append(out, fmt.Sprintf("%s:%s:%d", f.Rule, f.File, f.Line))
	}
	return out
}

func one(name, content string) []File { return []File{{Path: name, Content: []byte(content)}} }

const app = `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd, %s}
spec:
  project: team
  source: {repoURL: https://example.com/r.git, targetRevision: v1, path: web%s}
  destination: {name: eu-1, namespace: web}
%s`

// wavy are files with eleven waves, and others.
func wavy(name string, others ...File) []File {
	for i := range 11 {
		others = append(others, File{fmt.Sprintf(name, i), fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {annotations: {argocd.argoproj.io/sync-wave: '%d'}}\n", i)})
	}
	return others
}

// TestGood are files that look like mistakes and are none. What is a mistake is
// in test/lint/testdata.
func TestGood(t *testing.T) {
	for name, c := range map[string]struct{ file, content, reason string }{
		"a port is no tag":          {"a.yaml", "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: 'reg:5000/a:v1'}, {image: 'a@sha256:00'}]}\n", "reg:5000 is a host"},
		"a templated image":         {"a.yaml", "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: '${IMAGE}'}, {image: ''}]}\n", "filled in later"},
		"an empty tag in values":    {"values.yaml", "image: {repository: a, tag: ''}\nother: {tag: latest}\n", "the chart's version; and no image"},
		"latest elsewhere":          {"config.yaml", "image: {repository: a, tag: latest}\n", "no values file"},
		"a CRD":                     {"a.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {containers: [{image: a}]}\n", "a schema"},
		"a Helm template":           {"a.yaml", "apiVersion: v1\nkind: {{ .Values.kind }}\n", "no YAML"},
		"keys in different maps":    {"a.yaml", "a: {x: 1}\nb: {x: 1}\nc: [{x: 1}, {x: 1}]\n", "not the same mapping"},
		"merge keys":                {"a.yaml", "a: &a {x: 1}\nb: {<<: *a, x: 2}\n", "an override"},
		"a sealed Secret":           {"a.yaml", "apiVersion: v1\nkind: Secret\ndata: {a: 'ENC[AES256_GCM,data:x]'}\nsops: {mac: x}\n", "sealed"},
		"an empty Secret":           {"a.yaml", "apiVersion: v1\nkind: Secret\ndata: {}\nstringData: {a: ''}\n", "no values"},
		"a Secret with variables":   {"a.yaml", "apiVersion: v1\nkind: Secret\nstringData: {a: '${A}', b: '<path:kv/a#b>', c: 'ref+vault://a'}\n", "filled in later"},
		"a repository without keys": {"a.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {labels: {argocd.argoproj.io/secret-type: repository}}\nstringData: {url: a, type: git}\n", "nothing secret"},
		"a cluster without keys":    {"a.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {labels: {argocd.argoproj.io/secret-type: cluster}}\nstringData: {name: a, server: b, config: '{\"tlsClientConfig\": {\"caData\": \"x\"}}'}\n", "nothing secret"},
		"another kind of Secret":    {"a.yaml", "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nspec: {encryptedData: {a: b}}\n", "sealed"},
		"known annotations":         {"a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  annotations: {argocd.argoproj.io/sync-wave: '-5', argocd.argoproj.io/hook: 'PreSync, PostSync', link.argocd.argoproj.io/docs: a, argocd.argoproj.io/sync-options: 'Prune=confirm, Replace=true'}\n", ""},
		"nonprod is not prod":       {"a.yaml", fmt.Sprintf(app, "labels: {env: non-prod}", ", directory: {recurse: true}", "  syncPolicy: {syncOptions: [CreateNamespace=true, PrunePropagationPolicy=orphan]}\n"), ""},
		"status and operation":      {"a.yaml", fmt.Sprintf(app, "managedFields: [{x: 1}]", "", "status: {anything: 1}\noperation: {anything: 1}\n"), "written by controllers"},
		"a List":                    {"a.yaml", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, data: {a: b}}]\n", ""},
		"null and comments":         {"a.yaml", "# nothing\n---\n---\nnull\n", ""},
		"a list of things":          {"a.yaml", "- a\n- b\n", "no object"},
		"prune with a policy": {"a.yaml", `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: a}
spec:
  syncPolicy: {applicationsSync: create-update}
  generators: [{clusters: {}}, {git: {repoURL: a, directories: [{path: "*"}], template: {metadata: {}, spec: {project: x}}}}]
  template:
    metadata: {name: a}
    spec: {project: t, destination: {}, source: {repoURL: a, targetRevision: v1}, syncPolicy: {automated: {prune: true, selfHeal: true}}}
`, "nothing is deleted"},
		"prune with narrow generators": {"a.yaml", `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: a}
spec:
  generators: [{clusters: {selector: {matchLabels: {a: b}}}}, {git: {repoURL: a, directories: [{path: clusters/eu-*}, {path: "*", exclude: true}]}}]
  template:
    metadata: {name: a}
    spec: {project: t, destination: {}, source: {repoURL: a, targetRevision: v1}, syncPolicy: {automated: {prune: true, selfHeal: true}}}
`, "only what is named"},
	} {
		if got := Check(one(c.file, c.content), Options{}); len(got) > 0 {
			t.Errorf("%s (%s): %+v", name, c.reason, got)
		}
	}
}

// TestBad are mistakes beyond those that test/lint shows.
func TestBad(t *testing.T) {
	for name, c := range map[string]struct {
		files []File
		want  []string
	}{
		"exact lines in later documents": {one("a.yaml", "a: 1\n---\n# c\nb: 1\nb: 2\n"), []string{"repeated-key:a.yaml:5"}},
		"a deep repeated key":            {one("a.yaml", "a:\n  - b:\n      c: 1\n      d: 2\n      c: 3\n"), []string{"repeated-key:a.yaml:5"}},
		"inline values of an Application": {
			one("a.yaml", fmt.Sprintf(app, "labels: {}", ", helm: {valuesObject: {image: {tag: latest}}, parameters: [{name: image.tag, value: main}]}", "")),
			[]string{"mutable-image-tag:a.yaml:6", "mutable-image-tag:a.yaml:6"},
		},
		"values in a block of text": {
			one("a.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n  project: t\n  destination: {}\n  source:\n    repoURL: a\n    targetRevision: v1\n    helm:\n      values: |\n        a: b\n        image:\n          repository: x\n          tag: latest\n"),
			[]string{"mutable-image-tag:a.yaml:15"},
		},
		"values of a HelmRelease": {
			one("a.yaml", "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec:\n  values:\n    list:\n      - image: a:latest\n"), []string{"mutable-image-tag:a.yaml:6"},
		},
		"a chart's templates are left out, its values are read": {
			[]File{{"c/Chart.yaml", []byte("name: c\n")}, {"c/templates/a.yaml", []byte("a: 1\na: 2\n")}, {"c/values.yaml", []byte("image: {repository: a, tag: main}\n")}, {"templates/a.yaml", []byte("a: 1\na: 2\n")}},
			[]string{"mutable-image-tag:c/values.yaml:1", "repeated-key:templates/a.yaml:2"},
		},
		"a tag that a kustomization replaces": {
			[]File{{"base/a.yaml", []byte("apiVersion: v1\nkind: Pod\nspec: {containers: [{image: web}, {image: api}]}\n")}, {"prod/kustomization.yaml", []byte("images: [{name: web, newTag: v1}]\n")}},
			[]string{"mutable-image-tag:base/a.yaml:3"},
		},
		"a combination within a combination": {
			one("a.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: a}\nspec:\n  generators:\n    - matrix:\n        generators:\n          - merge:\n              mergekeys: [a]\n              generators:\n                - clusters: {selektor: {}}\n  template: {metadata: {}, spec: {project: t}}\n"),
			[]string{"unknown-field:a.yaml:9", "unknown-field:a.yaml:11"},
		},
		"another version": {one("a.yaml", "apiVersion: argoproj.io/v1beta1\nkind: AppProject\nmetadata: {name: a}\n"), []string{"unknown-field:a.yaml:1"}},
		"wrong shapes": {
			one("a.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: a, labels: {a: 1}}\nspec:\n  sourceRepos: https://a\n  destinations: [a]\n  description: 5\n"),
			[]string{"unknown-field:a.yaml:3", "unknown-field:a.yaml:5", "unknown-field:a.yaml:6", "unknown-field:a.yaml:7"},
		},
		"a secret-type": {one("a.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {labels: {argocd.argoproj.io/secret-type: repo-cred}}\n"), []string{"annotation-value:a.yaml:3"}},
		"gaps":          {one("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {annotations: {argocd.argoproj.io/sync-wave: '1'}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {annotations: {argocd.argoproj.io/sync-wave: '100'}}\n"), []string{"many-waves:a.yaml:7"}},
		"waves over the folders of a kustomization": {
			wavy("app/%[1]d/a.yaml", File{"app/kustomization.yaml", []byte("resources: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n")}),
			[]string{"many-waves:app/10/a.yaml:3"},
		},
		"waves over the folders of an Application": {
			wavy("apps/%[1]d/a.yaml", one("root.yaml", fmt.Sprintf(strings.Replace(app, "path: web", "path: apps", 1), "labels: {}", ", directory: {recurse: true}", ""))...),
			[]string{"many-waves:apps/10/a.yaml:3"},
		},
		"waves of folders that have nothing to do with each other": {wavy("app/%[1]d/a.yaml"), []string{}},
		"a hundred Applications": {
			one("a.yaml", strings.Repeat(fmt.Sprintf(app, "labels: {}", "", "")+"---\n", 101)), []string{"big-app-of-apps:a.yaml:801"},
		},
		"a chart's range in production": {
			one("a.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n  project: t\n  destination: {namespace: prod}\n  sources:\n    - {repoURL: a, chart: c, targetRevision: 1.x}\n    - {repoURL: a, chart: c, targetRevision: 1.2.3}\n    - {repoURL: a, path: p}\n"),
			[]string{"mutable-revision:a.yaml:8", "mutable-revision:a.yaml:10"},
		},
		"tabs": {one("a.yaml", "a: 1\nb:\n\tc: 1\n"), []string{"invalid-yaml:a.yaml:3"}},
	} {
		if diff := cmp.Diff(c.want, lines(Check(c.files, Options{}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestIgnore(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n%s    - image: web%s\n"
	for name, c := range map[string]struct {
		files []File
		want  []string
	}{
		"on the line":              {one("a.yaml", fmt.Sprintf(pod, "", " # rutter:ignore mutable-image-tag a test")), []string{}},
		"above the line":           {one("a.yaml", fmt.Sprintf(pod, "    # rutter:ignore mutable-image-tag,no-waves a test\n    # more\n", "")), []string{}},
		"another rule":             {one("a.yaml", fmt.Sprintf(pod, "    # rutter:ignore no-waves a test\n", "")), []string{"mutable-image-tag:a.yaml:6"}},
		"too far above":            {one("a.yaml", "# rutter:ignore mutable-image-tag a test\n"+fmt.Sprintf(pod, "", "")), []string{"mutable-image-tag:a.yaml:6"}},
		"no reason":                {one("a.yaml", fmt.Sprintf(pod, "    # rutter:ignore mutable-image-tag\n", "")), []string{"ignore-comment:a.yaml:5"}},
		"no such rule":             {one("a.yaml", fmt.Sprintf(pod, "    # rutter:ignore mutable-tag a test\n", "")), []string{"ignore-comment:a.yaml:5", "mutable-image-tag:a.yaml:6"}},
		"by the settings":          {append(one("x/a.yaml", fmt.Sprintf(pod, "", "")), File{"x/.rutter-lint.yaml", []byte("disable: [{rule: mutable-image-tag, paths: ['*.yaml'], reason: a}]\n")}), []string{}},
		"settings of a neighbour":  {append(one("x/a.yaml", fmt.Sprintf(pod, "", "")), File{"y/.rutter-lint.yaml", []byte("disable: [{rule: mutable-image-tag}]\n")}), []string{"mutable-image-tag:x/a.yaml:5"}},
		"excluded files":           {append(one("x/y/a.yaml", fmt.Sprintf(pod, "", "")), File{".rutter-lint.yaml", []byte("exclude: ['x/**']\n")}), []string{}},
		"settings with an error":   {append(one("a.yaml", "a: 1\n"), File{".rutter-lint.yaml", []byte("disable:\n  - rule: no-such\n")}), []string{"config:.rutter-lint.yaml:1"}},
		"settings misspelt":        {append(one("a.yaml", "a: 1\n"), File{".rutter-lint.yaml", []byte("exclude: []\ndisabled: []\n")}), []string{"config:.rutter-lint.yaml:2"}},
		"settings with a bad glob": {append(one("a.yaml", "a: 1\n"), File{".rutter-lint.yaml", []byte("exclude: ['[']\n")}), []string{"config:.rutter-lint.yaml:1"}},
	} {
		if diff := cmp.Diff(c.want, lines(Check(c.files, Options{}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOptions(t *testing.T) {
	files := one("a.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec: {x: 1, x: 2, destination: {}}\n")
	for _, c := range []struct {
		opts Options
		want []string
	}{
		{Options{}, []string{"default-project:a.yaml:4", "repeated-key:a.yaml:4", "unknown-field:a.yaml:4", "unknown-field:a.yaml:4"}},
		{Options{Severity: Error}, []string{"repeated-key:a.yaml:4", "unknown-field:a.yaml:4", "unknown-field:a.yaml:4"}},
		{Options{Rules: []string{"repeated-key"}}, []string{"repeated-key:a.yaml:4"}},
	} {
		got := lines(Check(files, c.opts))
		if diff := cmp.Diff(strings.Join(c.want, " "), strings.Join(sorted(got), " ")); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.opts, diff)
		}
	}
}

// TestNoPlaintext: a finding about a Secret never quotes it.
func TestNoPlaintext(t *testing.T) {
	for _, f := range Check(one("a.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: hunter2-canary}\n"), Options{}) {
		if strings.Contains(fmt.Sprintf("%+v", f), "canary") {
			t.Errorf("%+v", f)
		}
	}
}

// FuzzCheck: no file makes it panic or run without end.
func FuzzCheck(f *testing.F) {
	f.Add("a.yaml", []byte(fmt.Sprintf(app, "labels: {a: 1}", ", helm: {values: 'a: b'}", "  syncPolicy: {automated: {}}\n")))
	f.Add("values.yaml", []byte("a: &a [*a]\nimage: &b {tag: latest, x: *b}\n"))
	f.Add("kustomization.yaml", []byte("images: [{name: a, newTag: latest}]\nsecretGenerator: [{literals: [a=b]}]\n"))
	f.Add(ConfigName, []byte("disable: [{rule: a}]\n"))
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		for _, f := range Check(one(name, string(content)), Options{}) {
			if f.Line < 1 || f.Rule == "" || f.Remedy == "" || !f.Severity.Valid() {
				t.Errorf("%+v", f)
			}
		}
	})
}
