package deploy_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/internal/cli"
)

func build(t *testing.T, dir string) resmap.ResMap {
	t.Helper()
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	return m
}

// each decodes the objects of a kind strictly, so that a misspelt field fails here.
func each[T any](t *testing.T, m resmap.ResMap, kind string) []T {
	t.Helper()
	var all []T
	for _, r := range m.Resources() {
		if r.GetKind() != kind {
			continue
		}
		data, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		var o T
		if err := yaml.UnmarshalStrict(data, &o); err != nil {
			t.Fatalf("%s %s: %v", kind, r.GetName(), err)
		}
		all = append(all, o)
	}
	return all
}

// TestKustomizations builds every folder that has a kustomization.
func TestKustomizations(t *testing.T) {
	found := 0
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "kustomization.yaml" {
			found++
			if build(t, filepath.Dir(path)).Size() == 0 {
				t.Errorf("%s deploys nothing", path)
			}
		}
		return err
	})
	if err != nil || found < 5 {
		t.Errorf("built %d kustomizations: %v", found, err)
	}
}

// TestControlPlaneIsLeast: the controller's own identity reads Secrets in its
// namespace only, writes none, and may not do all of anything.
func TestControlPlaneIsLeast(t *testing.T) {
	for _, dir := range []string{"base", "overlays/example"} {
		m := build(t, dir)
		for _, r := range each[rbacv1.ClusterRole](t, m, "ClusterRole") {
			for _, rule := range r.Rules {
				if strings.Join(rule.APIGroups, ",") != "argoproj.io" {
					t.Errorf("%s: ClusterRole %s reaches %v in every namespace", dir, r.Name, rule)
				}
				noWildcard(t, dir, rule)
			}
		}
		for _, r := range each[rbacv1.Role](t, m, "Role") {
			for _, rule := range r.Rules {
				noWildcard(t, dir, rule)
				if strings.Contains(strings.Join(rule.Resources, ","), "secrets") && strings.Join(rule.Verbs, ",") != "get,list,watch" {
					t.Errorf("%s: Role %s may do %v to Secrets", dir, r.Name, rule.Verbs)
				}
			}
		}
		for _, b := range each[rbacv1.ClusterRoleBinding](t, m, "ClusterRoleBinding") {
			if b.RoleRef.Name != "rutter-controlplane" {
				t.Errorf("%s: ClusterRoleBinding %s gives %s", dir, b.Name, b.RoleRef.Name)
			}
		}
	}
}

func noWildcard(t *testing.T, dir string, rule rbacv1.PolicyRule) {
	t.Helper()
	if strings.Contains(rule.String(), "*") {
		t.Errorf("%s: a rule with a wildcard: %v", dir, rule)
	}
}

// TestNarrowMember: the overlay takes the broad binding away.
func TestNarrowMember(t *testing.T) {
	if n := len(each[rbacv1.ClusterRoleBinding](t, build(t, "member"), "ClusterRoleBinding")); n != 1 {
		t.Errorf("member has %d ClusterRoleBindings", n)
	}
	m := build(t, "overlays/narrow-member")
	if n := len(each[rbacv1.ClusterRoleBinding](t, m, "ClusterRoleBinding")); n != 0 {
		t.Errorf("the narrow member has %d ClusterRoleBindings", n)
	}
	if b := each[rbacv1.RoleBinding](t, m, "RoleBinding"); len(b) != 1 || b[0].RoleRef.Name != "rutter-namespace-manager" {
		t.Errorf("the narrow member is bound by %+v", b)
	}
}

// TestPodIsRestricted holds the Deployment to the Pod Security Standard
// "restricted", which its namespace enforces, and to a read-only root.
func TestPodIsRestricted(t *testing.T) {
	for _, dir := range []string{"base", "overlays/example"} {
		all := each[appsv1.Deployment](t, build(t, dir), "Deployment")
		if len(all) != 1 {
			t.Fatalf("%s has %d Deployments", dir, len(all))
		}
		pod := all[0].Spec.Template.Spec
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || s.SeccompProfile.Type != "RuntimeDefault" {
			t.Errorf("%s: the pod's securityContext is %+v", dir, s)
		}
		for _, c := range pod.Containers {
			s := c.SecurityContext
			if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
				s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
				t.Errorf("%s: container %s has the securityContext %+v", dir, c.Name, s)
			}
			if c.Resources.Requests.Memory().IsZero() || c.ReadinessProbe == nil || c.LivenessProbe == nil {
				t.Errorf("%s: container %s lacks requests or probes", dir, c.Name)
			}
		}
	}
}

// TestArguments gives the Deployment's arguments to the command line: a flag that
// was renamed would keep the pod from starting.
func TestArguments(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"base", "overlays/example"} {
		pod := each[appsv1.Deployment](t, build(t, dir), "Deployment")[0].Spec.Template.Spec
		var got cli.ControllerOptions
		deps := cli.Deps{Controller: func(_ context.Context, o cli.ControllerOptions) error { got = o; return nil }}
		var out, stderr bytes.Buffer
		args := append([]string{"--kubeconfig", kubeconfig}, pod.Containers[0].Args...)
		if code := cli.Main(t.Context(), args, strings.NewReader(""), &out, &stderr, "test", deps); code != cli.ExitOK {
			t.Errorf("%s: rutter %v: %d: %s", dir, args, code, stderr.String())
			continue
		}
		mounted := false
		for _, m := range pod.Containers[0].VolumeMounts {
			mounted = mounted || m.MountPath == got.DataDir
		}
		if !got.LeaderElect || got.HTTPAddr != ":8080" || pod.Containers[0].Ports[0].ContainerPort != 8080 || !mounted || got.Namespace != "argocd" {
			t.Errorf("%s: the controller would get %+v", dir, got)
		}
	}
}
