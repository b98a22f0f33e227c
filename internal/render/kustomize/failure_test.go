package kustomize_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// TestFailures: errors of the library name the file, are the same each time and
// show nothing that may be secret.
func TestFailures(t *testing.T) {
	const secret = "hunter2"
	tests := map[string]struct {
		files map[string]string
		opts  rutter.KustomizeOptions
		says  string
	}{
		"no such file":          {files: kustomization("resources:\n- ../base\n- nope.yaml"), says: "overlay/kustomization.yaml:3: resources: there is no file or folder overlay/nope.yaml: add it, or take nope.yaml off the list"},
		"none in a base":        {files: map[string]string{"base/kustomization.yaml": "resources:\n- gone/x.yaml\n"}, says: "base/kustomization.yaml:2: resources: there is no file or folder base/gone/x.yaml"},
		"no such folder":        {files: kustomization("resources: [../nope]"), says: "overlay/kustomization.yaml:1: resources: there is no file or folder nope"},
		"no YAML":               {files: map[string]string{"base/all.yaml": "a: 1\nb: [" + secret + "\n"}, says: "base/all.yaml:2: is not valid YAML: did not find expected"},
		"no name":               {files: map[string]string{"base/all.yaml": "apiVersion: v1\nkind: Secret\n"}, says: "base/all.yaml: missing metadata.name"},
		"twice":                 {files: kustomization("resources: [../base, twice.yaml]"), says: "overlay/twice.yaml: may not add resource with an already registered id: Service.v1"},
		"a cycle":               {files: map[string]string{"base/kustomization.yaml": "resources: [../overlay]\n"}, says: "cycle detected"},
		"above":                 {files: kustomization("resources: [../base/all.yaml]"), says: "overlay/kustomization.yaml:1: resources: ../base/all.yaml: security; file 'base/all.yaml' is not in or below 'overlay'"},
		"a generator's literal": {files: kustomization("secretGenerator: [{name: s, literals: [user=me, " + secret + "]}]"), says: "a literal has not the form key=value"},
		"a generator's file":    {files: kustomization("secretGenerator: [{name: s, files: [nope], literals: [p=" + secret + "]}]"), says: "nope"},
		"two generators":        {files: kustomization("secretGenerator: [{name: s, literals: [p=" + secret + "]}, {name: s, literals: [q=" + secret + "]}]"), says: "merging from a generator"},
		"a generator's env":     {files: map[string]string{"overlay/kustomization.yaml": "secretGenerator: [{name: s, envs: [x.env]}]\n", "overlay/x.env": "P=" + secret + "\xff\n"}, says: "invalid UTF-8"},
		"an inline patch":       {files: kustomization("resources: [../base]\npatches: [{patch: 'a: [" + secret + "'}]"), says: "unable to parse SM or JSON patch from an inline patch"},
		"a patch without match": {files: kustomization("resources: [../base]\npatches: [{patch: '{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {p: " + secret + "}}'}]"), says: "no resource matches strategic merge patch"},
		"an option's patch":     {opts: rutter.KustomizeOptions{Patches: []rutter.KustomizePatch{{Patch: "{p: " + secret + "}"}}}, says: "kustomize build overlay"},
		"a patch of a wrong form": {files: kustomization("resources: [../base]\npatches: [{patch: '{apiVersion: v1, kind: Service, metadata: {name: web}, spec: " + secret + "}'}, " +
			"{patch: '{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {a: 1}}'}, {patch: '[{op: test, path: /spec/a, value: " + secret + "}]', target: {kind: Service}}]"), says: "kustomize build overlay"},
		"a validator": {files: kustomization("resources: [../base]\nsecretGenerator: [{name: s, literals: [p=" + secret + "]}]\nvalidators:\n- |\n  apiVersion: builtin\n  kind: LabelTransformer\n  metadata: {name: l}\n  labels: {a: b}\n  fieldSpecs: [{path: metadata/labels, create: true}]\n"),
			says: "validator shouldn't modify the resource map"},
		"an unknown field":        {files: kustomization("namePrefix: x\nresource: [../base]"), says: "overlay/kustomization.yaml:2: is no valid kustomization: the field resource is unknown"},
		"no YAML itself":          {files: kustomization("resources: [../base]\npatches: [\n"), says: "overlay/kustomization.yaml:2: is not valid YAML"},
		"a key that is no text":   {files: map[string]string{"base/all.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {true: " + secret + "}\n"}, says: "base/all.yaml:1: Secret s: stringData: a value of type"},
		"a key that is repeated":  {files: map[string]string{"base/all.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: " + secret + ", a: " + secret + "}\n"}, says: `base/all.yaml:4: the key "a" appears twice`},
		"a value of a wrong type": {files: kustomization("resources: [../base]\nreplicas: [{name: web, count: " + secret + "}]"), says: "overlay/kustomization.yaml: is no valid kustomization"},
	}
	r := kustomize.New()
	address := regexp.MustCompile(`0x[0-9a-f]{4,}|repo[0-9a-f]{18}`)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			files := rendertest.With(repository(), tt.files)
			files["overlay/twice.yaml"] = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
			_, err := build(t, r, files, "overlay", tt.opts)
			if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("want an error that says %q, got %v", tt.says, err)
			}
			if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") || address.MatchString(err.Error()) {
				t.Errorf("shows too much: %v", err)
			}
			if _, again := build(t, r, files, "overlay", tt.opts); again.Error() != err.Error() {
				t.Errorf("another text the next time: %v", again)
			}
		})
	}
}
