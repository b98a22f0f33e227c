package kustomize_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

const deployment = `# a comment
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "nginx:1.0"}
      - {name: side, image: "registry.example.com:5000/side@sha256:aaaa"}
`

func repository() map[string]string {
	return map[string]string{
		"base/kustomization.yaml":    "resources:\n- all.yaml\nconfigMapGenerator:\n- name: settings\n  literals: [a=b]\n",
		"base/all.yaml":              deployment + "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n",
		"overlay/kustomization.yaml": "resources:\n- ../base\ncommonAnnotations: {team: red}\nimages:\n- {name: nginx, newTag: \"1.1\"}\n",
		"extra/kustomization.yaml":   "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: extra-\n",
		"overlay/patch.yaml":         "- {op: add, path: /metadata/annotations/patched, value: \"yes\"}\n",
		"secret.txt":                 "outside of the kustomization\n",
	}
}

func build(t *testing.T, r *kustomize.Renderer, files map[string]string, dir string, opts rutter.KustomizeOptions) ([]rutter.Object, error) {
	t.Helper()
	objs, _, err := render(t, r, files, kustomize.Input{Path: dir, Options: opts}, record.Options{})
	return objs, err
}

// render runs one render of files; what in lacks is filled in.
func render(t *testing.T, r *kustomize.Renderer, files map[string]string, in kustomize.Input, opts record.Options) ([]rutter.Object, []string, error) {
	t.Helper()
	snap := rendertest.Snapshot(files)
	in.Env = buildenv.New(rutter.RenderRequest{Snapshot: snap, Instance: "web"})
	in.Repo = record.New(t.Context(), snap, opts)
	return r.Render(t.Context(), in)
}

func find(t *testing.T, objs []rutter.Object, kind string) rutter.Object {
	t.Helper()
	for _, o := range objs {
		if o.GetKind() == kind {
			return o
		}
	}
	t.Fatalf("no %s", kind)
	return rutter.Object{}
}

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestOptions(t *testing.T) {
	tests := map[string]struct {
		opts rutter.KustomizeOptions
		has  []string
		not  []string
		err  string
	}{
		"none":                {has: []string{"nginx:1.1", "team: red"}, not: []string{"config.kubernetes.io"}},
		"prefix and suffix":   {opts: rutter.KustomizeOptions{NamePrefix: "a-", NameSuffix: "-z"}, has: []string{"name: a-web-z"}},
		"namespace":           {opts: rutter.KustomizeOptions{Namespace: "ns"}, has: []string{"namespace: ns"}},
		"image tag":           {opts: rutter.KustomizeOptions{Images: []string{"nginx:2.0"}}, has: []string{"nginx:2.0"}},
		"image renamed":       {opts: rutter.KustomizeOptions{Images: []string{"nginx=mirror.example.com:443/nginx:2.0"}}, has: []string{"mirror.example.com:443/nginx:2.0"}},
		"image digest":        {opts: rutter.KustomizeOptions{Images: []string{"registry.example.com:5000/side@sha256:bbbb"}}, has: []string{"registry.example.com:5000/side@sha256:bbbb"}},
		"image keeps tag":     {opts: rutter.KustomizeOptions{Images: []string{"nginx=other:*"}}, has: []string{"other:1.1"}},
		"image with env":      {opts: rutter.KustomizeOptions{Images: []string{"nginx:$ARGOCD_APP_NAME"}}, has: []string{"nginx:web"}},
		"image malformed":     {opts: rutter.KustomizeOptions{Images: []string{"nginx"}}, err: `images[0]: "nginx"`},
		"replicas":            {opts: rutter.KustomizeOptions{Replicas: []rutter.KustomizeReplica{{Name: "web", Count: 3}}}, has: []string{"replicas: 3"}},
		"labels":              {opts: rutter.KustomizeOptions{CommonLabels: map[string]string{"l": "$ARGOCD_APP_NAME"}}, has: []string{"l: web", "selector:\n    matchLabels:\n      app: web\n      l: web"}},
		"labels, no selector": {opts: rutter.KustomizeOptions{CommonLabels: map[string]string{"l": "v"}, LabelWithoutSelector: true}, has: []string{"l: v", "matchLabels:\n      app: web\n  template", "labels:\n        app: web\n    spec"}},
		"labels in templates": {opts: rutter.KustomizeOptions{CommonLabels: map[string]string{"l": "v"}, LabelWithoutSelector: true, LabelIncludeTemplates: true}, has: []string{"matchLabels:\n      app: web\n  template", "labels:\n        app: web\n        l: v"}},
		"templates alone":     {opts: rutter.KustomizeOptions{LabelIncludeTemplates: true}, err: "labelIncludeTemplates needs labelWithoutSelector"},
		"annotations":         {opts: rutter.KustomizeOptions{CommonAnnotations: map[string]string{"a": "$ARGOCD_APP_NAME"}}, has: []string{"a: $ARGOCD_APP_NAME"}},
		"annotations and env": {opts: rutter.KustomizeOptions{CommonAnnotations: map[string]string{"a": "$ARGOCD_APP_NAME"}, CommonAnnotationsEnvsubst: true}, has: []string{"a: web"}},
		"annotation conflict": {opts: rutter.KustomizeOptions{CommonAnnotations: map[string]string{"team": "blue"}}, err: `"team" is already set in the kustomization: set forceCommonAnnotations`},
		"annotation forced":   {opts: rutter.KustomizeOptions{CommonAnnotations: map[string]string{"team": "blue"}, ForceCommonAnnotations: true}, has: []string{"team: blue"}},
		"patch inline": {opts: rutter.KustomizeOptions{Patches: []rutter.KustomizePatch{{Patch: "- {op: replace, path: /metadata/name, value: renamed}", Target: &rutter.KustomizeTarget{Kind: "Deployment"}}}},
			has: []string{"name: renamed"}},
		"patch file":         {opts: rutter.KustomizeOptions{Patches: []rutter.KustomizePatch{{Path: "patch.yaml", Target: &rutter.KustomizeTarget{Kind: "Deployment"}}}}, has: []string{"patched: \"yes\""}},
		"patch with options": {opts: rutter.KustomizeOptions{Patches: []rutter.KustomizePatch{{Patch: "x", Options: map[string]bool{"nope": true}}}}, err: "options.nope is unknown"},
		"component":          {opts: rutter.KustomizeOptions{Components: []string{"../extra"}}, has: []string{"name: extra-web"}},
		"missing component":  {opts: rutter.KustomizeOptions{Components: []string{"../nope"}}, err: "nope"},
		"missing component ignored": {opts: rutter.KustomizeOptions{Components: []string{"../nope", "../extra"}, IgnoreMissingComponents: true},
			has: []string{"name: extra-web"}},
	}
	r := kustomize.New()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objs, err := build(t, r, repository(), "overlay", tt.opts)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || rutter.CodeOf(err) != rutter.CodeInvalid {
					t.Fatalf("want an error that says %q, got %v", tt.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := text(t, find(t, objs, "Deployment").Object)
			for _, s := range tt.has {
				if !strings.Contains(got, s) {
					t.Errorf("no %q in:\n%s", s, got)
				}
			}
			for _, s := range tt.not {
				if strings.Contains(got, s) {
					t.Errorf("%q in:\n%s", s, got)
				}
			}
		})
	}
}

func TestLabelConflict(t *testing.T) {
	files := rendertest.With(repository(), map[string]string{"overlay/kustomization.yaml": "resources: [../base]\ncommonLabels: {l: v}\n"})
	opts := rutter.KustomizeOptions{CommonLabels: map[string]string{"l": "w"}}
	if _, err := build(t, kustomize.New(), files, "overlay", opts); err == nil || !strings.Contains(err.Error(), "forceCommonLabels") {
		t.Errorf("no conflict: %v", err)
	}
	opts.ForceCommonLabels = true
	objs, err := build(t, kustomize.New(), files, "overlay", opts)
	if err != nil || find(t, objs, "Deployment").GetLabels()["l"] != "w" {
		t.Errorf("not forced: %v", err)
	}
}

func TestOrigins(t *testing.T) {
	files := rendertest.With(repository(), map[string]string{
		"twice/kustomization.yaml":     "resources: [one, two]\n",
		"twice/one/kustomization.yaml": "resources: [cm.yaml]\nnamePrefix: one-\n",
		"twice/two/kustomization.yaml": "resources: [cm.yaml]\nnamePrefix: two-\n",
		"twice/one/cm.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
		"twice/two/cm.yaml":            "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
	})
	r := kustomize.New()
	for dir, want := range map[string][]string{
		"overlay": {"ConfigMap settings base/kustomization.yaml:4", "Service web base/all.yaml:15", "Deployment web base/all.yaml:2"},
		"twice":   {"ConfigMap one-c twice/one/cm.yaml:1", "ConfigMap two-c twice/two/cm.yaml:2"},
	} {
		objs, err := build(t, r, files, dir, rutter.KustomizeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range objs {
			name, _, _ := strings.Cut(o.GetName(), "-g") // the hash of a generated name
			if o.GetKind() == "ConfigMap" && strings.HasPrefix(name, "settings") {
				name = "settings"
			}
			got = append(got, fmt.Sprintf("%s %s %s:%d", o.GetKind(), name, o.Origin.File, o.Origin.Line))
			if o.GetAnnotations()["config.kubernetes.io/origin"] != "" {
				t.Errorf("%s keeps the library's note", o.GetName())
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", dir, diff)
		}
	}
}

func TestUsersOwnOriginAnnotationsStay(t *testing.T) {
	files := rendertest.With(repository(), map[string]string{"overlay/kustomization.yaml": "resources: [../base]\nbuildMetadata: [originAnnotations]\n"})
	objs, err := build(t, kustomize.New(), files, "overlay", rutter.KustomizeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if o := find(t, objs, "Service"); o.GetAnnotations()["config.kubernetes.io/origin"] == "" || o.Origin.File != "base/all.yaml" {
		t.Errorf("annotations %v, origin %v", o.GetAnnotations(), o.Origin)
	}
}

// TestConfinement holds threat C5: nothing outside the repository, no network, no programs.
func TestConfinement(t *testing.T) {
	tests := map[string]struct {
		change map[string]string
		code   rutter.Code
		says   string
	}{
		"remote base":             {kustomization("resources: [\"https://github.com/org/repo//base?ref=v1\"]"), rutter.CodeUnsupported, "https://github.com/org/repo//base?ref=v1"},
		"remote base, short":      {kustomization("resources: [github.com/org/repo]"), rutter.CodeUnsupported, "github.com/org/repo"},
		"remote base, scp":        {kustomization("resources: ['git@example.com:org/repo']"), rutter.CodeUnsupported, "git@example.com:org/repo"},
		"remote base, file":       {kustomization("bases: ['file:///etc']"), rutter.CodeForbidden, "file:///etc"},
		"remote file":             {kustomization("resources: [HTTP://127.0.0.1:1/x.yaml]"), rutter.CodeUnsupported, "127.0.0.1:1"},
		"remote component":        {kustomization("components: ['ssh://x/y/z']"), rutter.CodeUnsupported, "components"},
		"remote patch":            {kustomization("resources: [../base]\npatches: [{path: 'http://127.0.0.1:1/p', target: {kind: Service}}]"), rutter.CodeUnsupported, "127.0.0.1:1"},
		"remote strategic patch":  {kustomization("resources: [../base]\npatchesStrategicMerge: ['http://127.0.0.1:1/p']"), rutter.CodeUnsupported, "127.0.0.1:1"},
		"remote generator file":   {kustomization("configMapGenerator: [{name: x, files: ['k=http://127.0.0.1:1/p']}]"), rutter.CodeUnsupported, "127.0.0.1:1"},
		"remote env file":         {kustomization("secretGenerator: [{name: x, envs: ['http://127.0.0.1:1/p']}]"), rutter.CodeUnsupported, "127.0.0.1:1"},
		"remote schema":           {kustomization("resources: [../base]\nopenapi: {path: 'http://127.0.0.1:1/p'}"), rutter.CodeUnsupported, "127.0.0.1:1"},
		"remote in a nested base": {map[string]string{"base/kustomization.yaml": "resources: ['https://example.com/x']\n"}, rutter.CodeUnsupported, "base/kustomization.yaml"},
		"remote in a transformer": {map[string]string{"overlay/kustomization.yaml": "resources: [../base]\ntransformers: [t.yaml]\n",
			"overlay/t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: http://127.0.0.1:1/p\ntarget: {kind: Service}\n"}, rutter.CodeUnsupported, "overlay/t.yaml"},
		"remote in an inline transformer": {kustomization("resources: [../base]\ntransformers:\n- |-\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: x}\n  path: http://127.0.0.1:1/p\n  target: {kind: Service}\n"), rutter.CodeUnsupported, "127.0.0.1:1"},
		"a transformer that another changes": {map[string]string{"overlay/kustomization.yaml": "resources: [../base]\ntransformers: [t]\n",
			"overlay/t/kustomization.yaml": "resources: [a.yaml]\npatches: [{patch: \"- {op: add, path: /path, value: 'http://127.0.0.1:1/p'}\", target: {kind: PatchTransformer}}]\n",
			"overlay/t/a.yaml":             "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\ntarget: {kind: Service}\n"}, rutter.CodeUnsupported, "127.0.0.1:1"},
		"a transformer that names itself": {map[string]string{"overlay/kustomization.yaml": "resources: [../base]\ntransformers: [t]\n",
			"overlay/t/kustomization.yaml": "transformers: [../t]\nresources: [a.yaml]\n", "overlay/t/a.yaml": "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: x}\n"}, rutter.CodeInvalid, "name themselves"},
		"chart inflation": {kustomization("helmCharts: [{name: x, repo: 'https://example.com'}]"), rutter.CodeUnsupported, "helmCharts"},
		"a program as generator": {map[string]string{"overlay/kustomization.yaml": "generators: [g.yaml]\n",
			"overlay/g.yaml": "apiVersion: v1\nkind: X\nmetadata:\n  name: x\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: /bin/true}\n"}, rutter.CodeUnsupported, "X is no builtin of kustomize"},
		"file above the kustomization": {kustomization("configMapGenerator: [{name: x, files: [../secret.txt]}]"), rutter.CodeInvalid, "not in or below"},
		"base above the repository":    {kustomization("resources: [../../../../etc]"), rutter.CodeInvalid, "etc"},
		"unknown field":                {kustomization("resource: [../base]"), rutter.CodeInvalid, "overlay/kustomization.yaml"},
		"empty":                        {kustomization("apiVersion: kustomize.config.k8s.io/v1beta1"), rutter.CodeInvalid, "empty"},
		"two files":                    {map[string]string{"overlay/kustomization.yml": "resources: [../base]\n"}, rutter.CodeInvalid, "keep one"},
		"no such file":                 {kustomization("resources: [nope.yaml]"), rutter.CodeInvalid, "nope.yaml"},
		"an object without a name":     {map[string]string{"base/all.yaml": "apiVersion: v1\nkind: Service\n"}, rutter.CodeInvalid, "name"},
	}
	r := kustomize.New()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := build(t, r, rendertest.With(repository(), tt.change), "overlay", rutter.KustomizeOptions{})
			if rutter.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("want %s that says %q, got %s: %v", tt.code, tt.says, rutter.CodeOf(err), err)
			}
			if strings.Contains(err.Error(), "/repository") || strings.Contains(err.Error(), "\n") {
				t.Errorf("unreadable: %q", err)
			}
		})
	}
}

func kustomization(text string) map[string]string {
	return map[string]string{"overlay/kustomization.yaml": text + "\n"}
}

// TestSchemasStayApart renders kustomizations with and without a schema of
// their own at the same time; the library keeps it in a global.
func TestSchemasStayApart(t *testing.T) {
	const thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\nspec:\n  parts:\n  - {id: a, v: 1}\n  - {id: b, v: 1}\n"
	const schema = `{"definitions":{"v1.Thing":{"properties":{"spec":{"properties":{"parts":{"type":"array","items":{"type":"object"},"x-kubernetes-patch-strategy":"merge","x-kubernetes-patch-merge-key":"id"}},"type":"object"}},"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Thing","version":"v1"}]}}}`
	patch := "patches:\n- patch: |-\n    apiVersion: example.com/v1\n    kind: Thing\n    metadata: {name: t}\n    spec: {parts: [{id: a, v: 2}]}\n"
	files := map[string]string{
		"with/thing.yaml": thing, "without/thing.yaml": thing, "with/schema.json": schema,
		"with/kustomization.yaml":    "resources: [thing.yaml]\nopenapi: {path: schema.json}\n" + patch,
		"without/kustomization.yaml": "resources: [thing.yaml]\n" + patch,
	}
	r := kustomize.New()
	var wg sync.WaitGroup
	for dir, want := range map[string]int{"with": 2, "without": 1} {
		for range 6 {
			wg.Go(func() {
				objs, err := build(t, r, files, dir, rutter.KustomizeOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				spec, _ := objs[0].Object["spec"].(map[string]any)
				if parts, _ := spec["parts"].([]any); len(parts) != want {
					t.Errorf("%s: %d parts, want %d", dir, len(parts), want)
				}
			})
		}
	}
	wg.Wait()
}
