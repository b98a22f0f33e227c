package policy_test

import (
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

func TestServiceAccount(t *testing.T) {
	p := &v1alpha1.AppProject{Spec: v1alpha1.AppProjectSpec{DestinationServiceAccounts: []v1alpha1.ApplicationDestinationServiceAccount{
		{Server: "https://prod.*", Namespace: "pay*", DefaultServiceAccount: "pay-deployer"},
		{Server: "https://prod.*", Namespace: "*", DefaultServiceAccount: "ops:deployer"},
		{Server: "https://dev", Namespace: "*", DefaultServiceAccount: "dev"},
		{Server: "https://odd", Namespace: "*", DefaultServiceAccount: ":"},
	}}}
	for _, tc := range []struct{ server, namespace, want string }{
		{"https://prod.example.com", "payments", "system:serviceaccount:payments:pay-deployer"},
		{"https://prod.example.com", "web", "system:serviceaccount:ops:deployer"},
		{"https://dev", "web", "system:serviceaccount:web:dev"},
		{"https://dev", "", "system:serviceaccount:argocd:dev"},
		{"https://other", "web", ""},
		{"https://odd", "web", ""},
	} {
		got, ok := inForce(p).ServiceAccount(rutter.ClusterInfo{Server: tc.server}, tc.namespace, "argocd")
		if got != tc.want || ok != (tc.want != "") {
			t.Errorf("%s %s: %q, want %q", tc.server, tc.namespace, got, tc.want)
		}
	}
}
