// Package plugin_test runs the config management plugins that are shipped in
// deploy/plugins, with the real programs, in the real sandbox.
package plugin_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/plugin"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
	"github.com/rutterhq/rutter/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	os.Exit(m.Run())
}

// helmfileVersion is the one that the shipped definition is tested with.
const helmfileVersion = "v1.8.0"

// tools returns the folder with the real helmfile and helm. Compiling helmfile
// takes several minutes, so that is only done when it is asked for.
func tools(t *testing.T) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0) //nolint:dogsled // only the file
	root := filepath.Join(filepath.Dir(here), "..", "..")
	bin := filepath.Join(root, "bin", "tools")
	missing := func(name string) bool { _, err := os.Stat(filepath.Join(bin, name)); return err != nil }
	if missing("helmfile") || missing("helm") {
		if os.Getenv("RUTTER_TEST_HELMFILE") == "" {
			t.Skip("bin/tools/helmfile and bin/tools/helm are not there, and compiling them takes minutes: RUTTER_TEST_HELMFILE=1 go test ./test/plugin does it once")
		}
		build(t, root, bin)
	}
	return bin
}

// build compiles both. helmfile's own go.mod replaces modules, so go install
// refuses it: it is compiled from a copy of its source.
func build(t *testing.T, root, bin string) {
	t.Helper()
	run := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out))
	}
	run(root, "go", "build", "-o", filepath.Join(bin, "helm"), "helm.sh/helm/v4/cmd/helm")
	tmp := t.TempDir()
	run(tmp, "go", "mod", "init", "throwaway")
	run(tmp, "go", "mod", "download", "github.com/helmfile/helmfile@"+helmfileVersion)
	cache := run(tmp, "go", "env", "GOMODCACHE")
	src := filepath.Join(tmp, "src")
	if err := os.CopyFS(src, os.DirFS(filepath.Join(cache, "github.com", "helmfile", "helmfile@"+helmfileVersion))); err != nil {
		t.Fatal(err)
	}
	run(src, "go", "build", "-o", filepath.Join(bin, "helmfile"), ".")
}

// files reads a folder of testdata as a repository that holds it at fleet/app.
func files(t *testing.T, name string) map[string]string {
	t.Helper()
	out := map[string]string{"README.md": "not a part of it"}
	dir := os.DirFS(filepath.Join("testdata", name))
	err := fs.WalkDir(dir, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, p)
		out["fleet/app/"+p] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// helmfile renders a folder with the shipped definition.
func helmfile(t *testing.T, repo map[string]string, opts rutter.PluginOptions) ([]rutter.Object, error) {
	t.Helper()
	box, err := sandbox.New(sandbox.Options{Tools: []string{tools(t)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	if err := box.Check(t.Context()); err != nil {
		t.Skipf("no sandbox on this machine: %v", err)
	}
	defs, errs := plugin.Load(filepath.Join("..", "..", "deploy", "plugins"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	req := rutter.RenderRequest{
		Source:   rutter.Source{RepoURL: "https://git.example.com/fleet.git", Path: "fleet/app"},
		Snapshot: rendertest.Snapshot(repo), Instance: "api", AppName: "api", Namespace: "team-a", KubeVersion: "v1.37.2",
		APIVersions: []string{"apps/v1", "apps/v1/Deployment", "example.com/v1", "example.com/v1/Thing", "v1"},
	}
	in := plugin.Input{
		Repo: record.New(t.Context(), req.Snapshot, record.Options{}), Path: "fleet/app", Options: &opts, Env: buildenv.New(req),
		KubeVersion: req.KubeVersion, APIVersions: req.APIVersions,
	}
	r := plugin.New(plugin.Options{Definitions: defs, Sandbox: box})
	d, ok, err := r.Match(t.Context(), in)
	if err != nil || !ok || d.Name != "helmfile" {
		t.Fatalf("the plugin does not find itself: %q, %t, %v", d.Name, ok, err)
	}
	objs, _, err := r.Render(t.Context(), d, in)
	return objs, err
}

func names(objs []rutter.Object) []string {
	out := []string{}
	for _, o := range objs {
		out = append(out, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	slices.Sort(out)
	return out
}

func set(kv ...string) []rutter.PluginEnv {
	var out []rutter.PluginEnv
	for i := 0; i < len(kv); i += 2 {
		out = append(out, rutter.PluginEnv{Name: kv[i], Value: kv[i+1]})
	}
	return out
}

func text(name, value string) rutter.PluginParameter {
	return rutter.PluginParameter{Name: name, String: &value}
}

// TestHelmfileSeed renders the helmfile of the article, in the form that it
// has there: environments and releases in one document, templates in names of
// files, the cluster from the environment.
func TestHelmfileSeed(t *testing.T) {
	repo := files(t, "seed")
	production := rutter.PluginOptions{Env: set("CLUSTER_NAME", "us-east-prod"), Parameters: []rutter.PluginParameter{text("environment", "production")}}
	objs, err := helmfile(t, repo, production)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"CustomResourceDefinition /things.example.com", "Deployment production/api-server"}, names(objs)); diff != "" {
		t.Fatal(diff)
	}
	i := slices.IndexFunc(objs, func(o rutter.Object) bool { return o.GetKind() == "Deployment" })
	got := objs[i].Object
	want := map[string]any{
		"replicas": int64(8), "selector": map[string]any{"matchLabels": map[string]any{"app": "api-server"}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "api-server"}},
			"spec": map[string]any{
				"nodeSelector": map[string]any{"topology.kubernetes.io/region": "us-east-1"},
				"tolerations":  []any{map[string]any{"key": "dedicated", "operator": "Equal", "value": "api", "effect": "NoSchedule"}},
				"containers": []any{map[string]any{
					"name": "api", "image": "ghcr.io/example/api-server:1.0.0",
					"env": []any{
						map[string]any{"name": "REGION", "value": "us-east-1"}, map[string]any{"name": "KUBE", "value": "v1.37.2"},
						map[string]any{"name": "THINGS", "value": "true"},
					},
					"resources": map[string]any{"requests": map[string]any{"cpu": "250m", "memory": "128Mi"}},
				}},
			},
		},
	}
	if diff := cmp.Diff(want, got["spec"]); diff != "" {
		t.Error(diff)
	}
	if stage, _, _ := unstructured.NestedString(got, "metadata", "labels", "stage"); stage != "production" {
		t.Errorf("the stage is %q", stage)
	}
	again, err := helmfile(t, repo, rutter.PluginOptions{Env: set("CLUSTER_NAME", "us-east-prod", "HELMFILE_ENVIRONMENT", "production")})
	if diff := cmp.Diff(objs, again); err != nil || diff != "" {
		t.Errorf("by the variable it renders differently: %v %s", err, diff)
	}
	for name, opts := range map[string]rutter.PluginOptions{
		"required env var `CLUSTER_NAME` is not set": {Parameters: []rutter.PluginParameter{text("environment", "production")}},
		"environment(qa)": {Env: set("CLUSTER_NAME", "us-east-prod"), Parameters: []rutter.PluginParameter{text("environment", "qa")}},
		"eu-west.yaml":    {Env: set("CLUSTER_NAME", "eu-west"), Parameters: []rutter.PluginParameter{text("environment", "production")}},
	} {
		_, err := helmfile(t, repo, opts)
		if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "plugin helmfile: generate (sh): exit code") || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, got: %v", name, err)
		}
	}
}

func TestHelmfile(t *testing.T) {
	for name, tc := range map[string]struct {
		dir  string
		opts rutter.PluginOptions
		want []string
		err  string
	}{
		"a template, the application's namespace": {dir: "gotmpl", want: []string{"ConfigMap team-a/back-nobody", "ConfigMap team-a/front-nobody"}},
		"values and selectors": {
			dir: "gotmpl", opts: rutter.PluginOptions{Parameters: []rutter.PluginParameter{{Name: "values", Array: []string{"team.yaml"}}, {Name: "selectors", Array: []string{"tier=front", "tier=back"}}}},
			want: []string{"ConfigMap team-a/back-blue", "ConfigMap team-a/front-blue"},
		},
		"many files":  {dir: "many", want: []string{"ConfigMap one/first", "ConfigMap team-a/second"}},
		"a namespace": {dir: "many", opts: rutter.PluginOptions{Parameters: []rutter.PluginParameter{text("namespace", "all")}}, want: []string{"ConfigMap all/first", "ConfigMap all/second"}},
		"no CRDs": {
			dir: "seed", opts: rutter.PluginOptions{Name: "helmfile", Env: set("CLUSTER_NAME", "us-east-prod"), Parameters: []rutter.PluginParameter{text("environment", "staging"), text("include-crds", "false")}},
			want: []string{"Deployment production/api-server"},
		},
		"a chart elsewhere": {dir: "remote", err: "plugin helmfile: generate (sh): exit code"},
	} {
		t.Run(name, func(t *testing.T) {
			objs, err := helmfile(t, files(t, tc.dir), tc.opts)
			if tc.err != "" {
				if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, %v", names(objs), err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, names(objs)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
