package cluster

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/testenv"
)

// TestLookupAsTenant: what a chart looks up is read with the tenant's rights on
// a real API server: its own namespace, and nothing else.
func TestLookupAsTenant(t *testing.T) {
	env := testenv.Hub(t)
	mine, other := env.Namespace(t), env.Namespace(t)
	m := connect(t, env.RESTConfig(), newSink())
	k, err := kubernetes.NewForConfig(env.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "tenant", Namespace: mine}}}
	if _, err := k.RbacV1().Roles(mine).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.RbacV1().RoleBindings(mine).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, ns := range []string{mine, other} {
		if _, err := m.Apply(t.Context(), cm(ns, "a", map[string]any{"k": ns}, false), rutter.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	look := m.LookupAs("system:serviceaccount:" + mine + ":tenant")
	obj, err := look(t.Context(), "v1", "ConfigMap", mine, "a")
	if err != nil || obj["data"].(map[string]any)["k"] != mine {
		t.Fatalf("%v %v", obj, err)
	}
	list, err := look(t.Context(), "v1", "ConfigMap", mine, "")
	if items, _ := list["items"].([]any); err != nil || len(items) == 0 {
		t.Fatalf("%v %v", list, err)
	}
	if obj, err := look(t.Context(), "v1", "ConfigMap", mine, "absent"); obj != nil || err != nil {
		t.Fatalf("absent: %v %v", obj, err)
	}
	if obj, err := look(t.Context(), "no.such/v1", "Thing", mine, "a"); obj != nil || err != nil {
		t.Fatalf("a kind that is not served: %v %v", obj, err)
	}
	for _, tc := range []struct{ kind, namespace, name string }{{"ConfigMap", other, "a"}, {"ConfigMap", "", ""}, {"Secret", mine, ""}, {"Namespace", "", mine}} {
		if obj, err := look(t.Context(), "v1", tc.kind, tc.namespace, tc.name); rutter.CodeOf(err) != rutter.CodeForbidden {
			t.Errorf("%v: %v %v, want it forbidden", tc, obj, err)
		}
	}
}
