package argo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

func TestDecode(t *testing.T) {
	objs, err := argo.Decode([]byte(`%YAML 1.1
# a comment
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: a}
spec:
  syncPolicy: {automated: {prune: yes}}
---
# nothing
--- # a comment after the marker
apiVersion: v1
kind: Secret
metadata: {name: b}
stringData:
  text: |
    ---x
    ---
...
{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
  {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "d"}, "items": {"free": 1}}
]}
`), "f.yaml")
	if err != nil || len(objs) != 4 {
		t.Fatalf("%d objects, %v", len(objs), err)
	}
	if a := objs[0].(*v1alpha1.Application); a.Name != "a" || !a.Spec.SyncPolicy.Automated.Prune || a.Kind != "Application" {
		t.Errorf("%+v", a)
	}
	if s := objs[1].(*corev1.Secret); s.StringData["text"] != "---x\n---\n" {
		t.Errorf("%q", s.StringData["text"])
	}
	if c := objs[2].(*corev1.ConfigMap); c.Name != "c" {
		t.Errorf("%+v", c)
	}
	if w := objs[3].(*unstructured.Unstructured); w.GetKind() != "Widget" {
		t.Errorf("%+v", w)
	}
}

func TestDecodeErrors(t *testing.T) {
	const head = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: a\n" // 4 lines
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"unknown field", head + "spec:\n  source:\n    repoUrl: https://x\n", []string{`f.yaml:7: strict decoding error: unknown field "spec.source.repoUrl": write it as spec.source.repoURL`}},
		{"second document", head + "---\n" + head + "specs: {}\n", []string{`f.yaml:10: strict decoding error: unknown field "specs"`}},
		{"in a list", head + "spec:\n  sources:\n    - path: a\n    - {path: b,\n       paht: c}\n", []string{`f.yaml:9: strict decoding error: unknown field "spec.sources[1].paht"`}},
		{"all of them", head + "spec:\n  x: 1\n  z: 2\n", []string{`f.yaml:6: strict decoding error: unknown field "spec.x"`, `f.yaml:7: strict decoding error: unknown field "spec.z"`}},
		{"repeated key", head + "spec:\n  project: a\n  project: b\n", []string{`f.yaml:7: key "project" already set in map (field spec.project, first on line 6): write it once`}},
		{"repeated key in free content", head + "spec:\n  source:\n    helm:\n      valuesObject:\n        a: 1\n        b: [{c: 1, c: 2}]\n", []string{`f.yaml:10: key "c" already set in map (field spec.source.helm.valuesObject.b[0].c, first on line 10): write it once`}},
		{"wrong type", head + "spec:\n  revisionHistoryLimit: many\n", []string{"f.yaml:6: field spec.revisionHistoryLimit must be a number, and it is string"}},
		{"wrong type deep", head + "spec:\n  source:\n    path: [a]\n", []string{"f.yaml:7: field spec.source.path must be a string, and it is array"}},
		{"syntax", head + "spec:\n  a: b: c\n", []string{"f.yaml:6: not valid YAML: mapping values are not allowed in this context"}},
		{"no kind", "\n\napiVersion: v1\nmetadata: {name: a}\n", []string{"f.yaml:3: Object 'Kind' is missing"}},
		{"no version", "kind: Secret\n", []string{"f.yaml:1: Object 'apiVersion' is missing"}},
		{"no object", "just text\n", []string{"f.yaml:1: not a Kubernetes object: apiVersion and kind must be strings"}},
		{"bad version", "apiVersion: a/b/c\nkind: X\n", []string{`f.yaml:1: apiVersion "a/b/c" is not a group and a version`}},
		{"no name", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  namespace: a\n", []string{"f.yaml:3: resource name may not be empty (field metadata.name)"}},
		{"not base64", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata:\n  server: aHR0cHM=\n  my.password: hunter2!\n", []string{"f.yaml:6: field data.my.password is not base64: write plain text under stringData"}},
		{"of what is beside it", strings.Replace(head, "kind: Application\n", "kind: ApplicationSet\n", 1) + "spec:\n  generators:\n  - git: {repoURL: x}\n    template: {}\n", []string{`f.yaml:8: strict decoding error: unknown field "spec.generators[0].template": write it as spec.generators[0].git.template`}},
		{"in a List", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: argoproj.io/v1alpha1\n  kind: AppProject\n  metadata: {name: a}\n  spec:\n    sourceRepo: []\n", []string{`f.yaml:8: strict decoding error: unknown field "spec.sourceRepo": write it as spec.sourceRepos`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			objs, err := argo.Decode([]byte(tc.text), "f.yaml")
			if err == nil {
				t.Fatalf("accepted: %v", objs)
			}
			if diff := cmp.Diff(tc.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Error(diff)
			}
			var coded *rutter.Error
			if !errors.As(err, &coded) || coded.Code != rutter.CodeInvalid || coded.File != "f.yaml" || coded.Line == 0 {
				t.Errorf("%+v", coded)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Error("a value of a Secret is shown")
			}
		})
	}
}

func TestDecodeKeepsTheGood(t *testing.T) {
	objs, err := argo.Decode([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ntypo: 1\n---\n}{\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"), "f")
	if len(objs) != 2 || err == nil || len(strings.Split(err.Error(), "\n")) != 2 {
		t.Errorf("%d objects, %v: one bad document holds back itself only", len(objs), err)
	}
}

// FuzzDecode: no input makes it panic; every error names the file, and what is
// accepted has a kind.
func FuzzDecode(f *testing.F) {
	f.Add("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec: {x: 1}\n")
	f.Add("a: &a [*a]\n---\n- b\n...\n%X\n")
	f.Add("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [1, {a: 1, a: 2}]}]\n")
	f.Add("? {a: b}\n: <<: {c: d}\n")
	f.Fuzz(func(t *testing.T, text string) {
		objs, err := argo.Decode([]byte(text), "f.yaml")
		for _, o := range objs {
			if o.GetObjectKind().GroupVersionKind().Kind == "" {
				t.Errorf("%+v has no kind", o)
			}
		}
		if err != nil && !strings.HasPrefix(err.Error(), "f.yaml") {
			t.Errorf("%v does not name the file", err)
		}
	})
}
