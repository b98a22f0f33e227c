package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTools renders with each tool that is neither kustomize nor Helm: Jsonnet,
// CUE and a plugin in its sandbox, found by what lies in the path or named.
func TestTools(t *testing.T) {
	t.Parallel()
	w := start(t)
	r := w.repo(t, "tools", tree{
		"jsonnet/c.jsonnet":    "local lib = import 'lib.libsonnet';\nfunction(env) [lib.map('jsonnet', env + std.extVar('more'))]\n",
		"vendor/lib.libsonnet": "{ map(name, value): { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: name }, data: { value: value } } }\n",
		"cue/c.cue":            "package app\nenv: string @tag(env)\nmap: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"cue\", data: value: env}\n",
		"greet/greet.txt":      "hello",
	})
	for _, tc := range []struct{ kind, source, object, value, tool string }{
		{"jsonnet", "path: jsonnet\n    directory: {jsonnet: {libs: [vendor], tlas: [{name: env, value: dev}], extVars: [{name: more, value: '-$ARGOCD_APP_NAME'}]}}", "jsonnet", "dev-${NAME}", "Directory"},
		{"cue", "path: cue\n    plugin: {name: cue, parameters: [{name: env, string: prod}]}", "cue", "prod", "Cue"},
		{"plugin", "path: greet\n    plugin: {name: greet-v1, env: [{name: NAME, value: you}]}", "greet", "hello you ${NS}", "Plugin"},
		{"discovered", "path: greet", "greet", "hello  ${NS}", "Plugin"},
	} {
		name := unique(tc.kind)
		ns := w.alpha.namespace(t, tc.kind)
		v := vars{"REPO": r.url, "NS": ns, "NAME": name}
		w.create(t, strings.Replace(application(name, "x", ""), "path: x", tc.source, 1), v)
		app := w.awaitSynced(t, name, "")
		if app.Status.SourceType != tc.tool {
			t.Errorf("%s: rendered by %s, wanted %s", tc.kind, app.Status.SourceType, tc.tool)
		}
		await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, tc.object, holds(v.expand(tc.value)))
	}
}

// TestSOPS deploys a Secret that kustomize makes of a sealed file: not before its key is there,
// and its values never lie on the controller's disk in the clear.
func TestSOPS(t *testing.T) {
	t.Parallel()
	w := start(t)
	sealed := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join("..", "..", "internal", "decrypt", "testdata", "tool", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	name := unique("sealed")
	ns := w.alpha.namespace(t, "sealed")
	r := w.repo(t, "sealed", tree{"app/kustomization.yaml": "secretGenerator: [{name: login, envs: [app.env]}]\n", "app/app.env": sealed("app.env")})
	w.create(t, application(name, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitCondition(t, name, "ComparisonError", "app/app.env", "age1")

	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: controlNamespace, Name: name, Labels: map[string]string{"argocd.argoproj.io/secret-type": "sops-keys"}},
		StringData: map[string]string{"test.agekey": sealed("keys.agekey")}}
	if err := w.hub.client.Create(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.hub.client.Delete(t.Context(), key) })
	w.awaitSynced(t, name, "")
	var list corev1.SecretList
	if err := w.alpha.client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var secret *corev1.Secret
	for i := range list.Items {
		if _, ours := list.Items[i].Labels["rutter.dev/unit"]; ours && list.Items[i].Namespace == ns {
			secret = &list.Items[i]
		}
	}
	if secret == nil {
		t.Fatal("the Secret was not applied")
	}
	for k, v := range secret.Data {
		if strings.Contains(string(v), "ENC[") {
			t.Errorf("key %s was applied sealed", k)
		}
		if len(v) > 6 {
			notOnDisk(t, filepath.Join(w.dir, "data"), string(v))
		}
	}
}

// notOnDisk fails the test when a file below dir holds text.
func notOnDisk(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // files come and go while the controller works
		}
		data, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(data), text) {
			t.Errorf("%s holds a decrypted value", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
