package preview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: "

const binding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: b}\n"

func TestRisks(t *testing.T) {
	workload := func(kind, spec string) string {
		return "apiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: w, namespace: ns}\nspec: " + spec
	}
	core := func(kind, rest string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: w, namespace: ns}\n" + rest
	}
	for _, tc := range []struct {
		reason, before, after string
		want                  []string
	}{
		{"a Namespace goes", "apiVersion: v1\nkind: Namespace\nmetadata: {name: m}", "", []string{"delete-namespace"}},
		{"a CRD that is not declared any more stays", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: m}", "", nil},
		{"a claim goes", core("PersistentVolumeClaim", ""), "", []string{"delete-pvc"}},
		{"a volume goes", "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: m}", "", []string{"delete-pv"}},
		{"a StatefulSet goes", workload("StatefulSet", "{}"), "", []string{"delete-statefulset"}},
		{"a ConfigMap goes", core("ConfigMap", ""), "", nil},
		{"scaled to 0", workload("Deployment", "{replicas: 2}"), workload("Deployment", "{replicas: 0}"), []string{"replicas-zero"}},
		{"no number before", workload("Deployment", "{}"), workload("Deployment", "{replicas: 0}"), []string{"replicas-zero"}},
		{"still 0", workload("Deployment", "{replicas: 0, a: 1}"), workload("Deployment", "{replicas: 0, a: 2}"), nil},
		{"scaled up", workload("Deployment", "{replicas: 0}"), workload("Deployment", "{replicas: 1}"), nil},
		{"a selector", workload("Deployment", "{selector: {matchLabels: {a: b}}}"), workload("Deployment", "{selector: {matchLabels: {a: c}}}"), []string{"immutable-field .spec.selector"}},
		{"a template is free", workload("StatefulSet", "{template: {a: 1}}"), workload("StatefulSet", "{template: {a: 2}}"), nil},
		{"claims of a StatefulSet", workload("StatefulSet", "{volumeClaimTemplates: [{metadata: {name: a}}]}"), workload("StatefulSet", "{volumeClaimTemplates: [{metadata: {name: b}}]}"), []string{"immutable-field .spec.volumeClaimTemplates"}},
		{"its service name", workload("StatefulSet", "{serviceName: a}"), workload("StatefulSet", "{serviceName: b}"), []string{"immutable-field .spec.serviceName"}},
		{"a Job's template", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {a: 1}}", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {a: 2}}", []string{"immutable-field .spec.template"}},
		{"a hook is made anew", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {hook: 1}}", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {hook: 2}}", nil},
		{"a Service's address", core("Service", "spec: {clusterIP: None}"), core("Service", "spec: {clusterIP: 10.0.0.1}"), []string{"immutable-field .spec.clusterIP"}},
		{"an address that is not declared any more is the server's", core("Service", "spec: {clusterIP: 10.0.0.1}"), core("Service", "spec: {}"), nil},
		{"a Service's type", core("Service", "spec: {type: LoadBalancer}"), core("Service", "spec: {}"), []string{"service-type"}},
		{"a type that is the default", core("Service", "spec: {}"), core("Service", "spec: {type: ClusterIP}"), nil},
		{"a claim's size is free", core("PersistentVolumeClaim", "spec: {resources: {requests: {storage: 1Gi}}}"), core("PersistentVolumeClaim", "spec: {resources: {requests: {storage: 2Gi}}}"), nil},
		{"its modes are not", core("PersistentVolumeClaim", "spec: {accessModes: [a]}"), core("PersistentVolumeClaim", "spec: {accessModes: [b]}"), []string{"immutable-field .spec.accessModes"}},
		{"an immutable ConfigMap", core("ConfigMap", "immutable: true\ndata: {a: b}"), core("ConfigMap", "immutable: true\ndata: {a: c}"), []string{"immutable-field .data"}},
		{"an ordinary ConfigMap", core("ConfigMap", "data: {a: b}"), core("ConfigMap", "data: {a: c}"), nil},
		{"a role gets more", role + "[{apiGroups: [''], resources: [pods], verbs: [get]}]", role + "[{apiGroups: [''], resources: [pods, secrets], verbs: [get]}]", []string{"cluster-role-widened"}},
		{"a role gets less", role + "[{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]", role + "[{apiGroups: [''], resources: [pods], verbs: [get]}]", nil},
		{"names are a limit", role + "[{apiGroups: [''], resources: [secrets], resourceNames: [a], verbs: [get]}]", role + "[{apiGroups: [''], resources: [secrets], verbs: [get]}]", []string{"cluster-role-widened"}},
		{"addresses", role + "[{nonResourceURLs: [/healthz], verbs: [get]}]", role + "[{nonResourceURLs: ['/*'], verbs: [get]}]", []string{"cluster-role-widened"}},
		{"an address within a pattern", role + "[{nonResourceURLs: ['/*'], verbs: [get]}]", role + "[{nonResourceURLs: [/healthz], verbs: [get]}]", nil},
		{"a new role of everything", "", role + "[{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]", []string{"cluster-role-widened"}},
		{"a new narrow role", "", role + "[{apiGroups: [''], resources: [pods], verbs: [get]}]", nil},
		{"a new administrator", "", binding + "roleRef: {kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: User, name: eve}]", []string{"cluster-admin"}},
		{
			"another administrator", binding + "roleRef: {kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: User, name: eve}]",
			binding + "roleRef: {kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: User, name: eve}, {kind: ServiceAccount, name: x, namespace: y}]",
			[]string{"cluster-admin"},
		},
		{
			"an administrator less", binding + "roleRef: {kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: User, name: eve}, {kind: User, name: bob}]",
			binding + "roleRef: {kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: User, name: eve}]", nil,
		},
		{
			"another role", binding + "roleRef: {kind: ClusterRole, name: view}\nsubjects: [{kind: User, name: eve}]",
			binding + "roleRef: {kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: User, name: eve}]", []string{"immutable-field .roleRef", "cluster-admin"},
		},
	} {
		one := func(manifest string) Side {
			var all []string
			if manifest != "" {
				all = append(all, manifest)
			}
			u := unit(t, "app", append(all, configMap("other", "a"))...)
			u.Objects[0].Hook = strings.Contains(manifest, "hook:")
			return Side{Units: []Unit{u}}
		}
		var got []string
		for _, r := range Compare(one(tc.before), one(tc.after)).Risks {
			rule := r.Rule
			if rule == "immutable-field" {
				_, rest, _ := strings.Cut(r.Message, ": ")
				rule += " " + strings.Fields(rest)[0]
			}
			got = append(got, rule)
			if r.Application != "app" || r.Cluster != "c1" {
				t.Errorf("%s: %+v does not say whose it is", tc.reason, r)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}
