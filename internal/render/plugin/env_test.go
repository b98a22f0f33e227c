package plugin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/plugin"
)

func TestEnvironment(t *testing.T) {
	str := func(s string) *string { return &s }
	opts := &rutter.PluginOptions{
		Env: []rutter.PluginEnv{{Name: "REGION", Value: "eu"}, {Name: "NAME", Value: "x-$ARGOCD_APP_NAME-${ARGOCD_APP_NAMESPACE}-$NONE-$$"}, {Name: "PATH", Value: "/evil"}},
		Parameters: []rutter.PluginParameter{
			{Name: "image-tag", String: str("v1 $HOME")}, {Name: "values", Array: []string{"a.yaml", "b.yaml"}},
			{Name: "set", Map: map[string]string{"a.b": "1", "c": "2"}}, {Name: "image.tag", String: str("v2")},
		},
	}
	c := newCommit(map[string]string{"apps/shop/x": ""})
	render := func(t *testing.T, annotations ...string) (map[string]string, []string, plugin.Input) {
		t.Helper()
		d := define(t, "env", generate(`echo 'apiVersion: v1
kind: ConfigMap
metadata: {name: out}
data:'
env | sort | while IFS== read -r k v; do printf '  %s: |-\n    %s\n' "$k" "$v"; done`), annotations...)
		r := plugin.New(plugin.Options{Definitions: []plugin.Definition{d}, Sandbox: newBox(t)})
		in := input(t, c, "apps/shop", opts)
		objs, warnings, err := r.Render(t.Context(), d, in)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for k, v := range data(t, objs) {
			got[k], _ = v.(string)
		}
		for _, of := range []string{"PWD", "SHLVL", "_", "OLDPWD"} {
			delete(got, of) // the shell's own
		}
		if got["PATH"] == "" || strings.Contains(got["PATH"], "evil") {
			t.Errorf("PATH is %q", got["PATH"])
		}
		delete(got, "PATH")
		return got, warnings, in
	}
	t.Setenv("RUTTER_SECRET", "ours")
	want := map[string]string{
		"ARGOCD_APP_NAME": "team_shop", "ARGOCD_APP_NAMESPACE": "shop-eu", "ARGOCD_APP_PROJECT_NAME": "retail",
		"ARGOCD_APP_REVISION": c.revision, "ARGOCD_APP_REVISION_SHORT": c.revision[:7], "ARGOCD_APP_REVISION_SHORT_8": c.revision[:8],
		"ARGOCD_APP_SOURCE_PATH": "apps/shop", "ARGOCD_APP_SOURCE_REPO_URL": "https://git.example.com/fleet.git", "ARGOCD_APP_SOURCE_TARGET_REVISION": "main",
		"KUBE_VERSION": "1.37.2", "KUBE_API_VERSIONS": "apps/v1,apps/v1/Deployment,v1,v1/Pod",
		"ARGOCD_ENV_REGION": "eu", "ARGOCD_ENV_NAME": "x-team_shop-shop-eu--$", "ARGOCD_ENV_PATH": "/evil",
		"ARGOCD_APP_PARAMETERS": `[{"name":"image-tag","string":"v1 $HOME"},{"name":"values","array":["a.yaml","b.yaml"]},{"name":"set","map":{"a.b":"1","c":"2"}},{"name":"image.tag","string":"v2"}]`,
		"PARAM_IMAGE_TAG":       "v2", "PARAM_VALUES_0": "a.yaml", "PARAM_VALUES_1": "b.yaml", "PARAM_SET_A_B": "1", "PARAM_SET_C": "2",
		"HOME": "/rutter/home", "TMPDIR": "/tmp",
	}
	got, warnings, in := render(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "image-tag and image.tag have the same variable PARAM_IMAGE_TAG") {
		t.Errorf("warnings: %q", warnings)
	}
	for _, name := range []string{"ARGOCD_APP_REVISION", "ARGOCD_APP_NAMESPACE", "=capabilities"} {
		if _, ok := in.Env.Used()[name]; !ok {
			t.Errorf("that %s was used is not noted", name)
		}
	}
	got, _, in = render(t, "rutter.dev/inputs: path")
	for name := range want {
		if strings.HasPrefix(name, "ARGOCD_APP_REVISION") {
			delete(want, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, ok := in.Env.Used()["ARGOCD_APP_REVISION"]; ok {
		t.Error("the revision counts as used where it was not given")
	}
}

func TestEnvironmentErrors(t *testing.T) {
	d := define(t, "p", generate("true"))
	r := plugin.New(plugin.Options{Definitions: []plugin.Definition{d}, Sandbox: newBox(t)})
	for want, opts := range map[string]rutter.PluginOptions{
		"plugin.env[0].name":              {Env: []rutter.PluginEnv{{Name: "A=B", Value: "x"}}},
		"plugin.env[1].name":              {Env: []rutter.PluginEnv{{Name: "A"}, {}}},
		"plugin.parameters[0].name":       {Parameters: []rutter.PluginParameter{{}}},
		"ARGOCD_ENV_A holds a NUL":        {Env: []rutter.PluginEnv{{Name: "A", Value: "x\x00y"}}},
		"ARGOCD_ENV_A is longer than the": {Env: []rutter.PluginEnv{{Name: "A", Value: strings.Repeat("x", 128<<10)}}},
	} {
		_, _, err := r.Render(t.Context(), d, input(t, newCommit(map[string]string{"x": ""}), ".", &opts))
		if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	in := input(t, newCommit(map[string]string{"x": ""}), ".", nil)
	for i := range 6000 {
		in.APIVersions = append(in.APIVersions, fmt.Sprintf("group%d.example.com/v1", i), fmt.Sprintf("group%d.example.com/v1/SomeLongKind", i))
	}
	in.APIVersions = in.APIVersions[:5000]
	d = define(t, "p", generate(configMap("  n: \"${#KUBE_API_VERSIONS}\"\n  k: \"${KUBE_API_VERSIONS##*,}\"")))
	objs, warnings, err := r.Render(t.Context(), d, in)
	if err != nil || len(warnings) != 1 || strings.Contains(fmt.Sprint(data(t, objs)), "Kind") {
		t.Errorf("a long list of kinds: %v, %q", err, warnings)
	}
}
