package compare_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

// Every form of a rule, in every comparison: each leaves out its own field and
// no other.
func TestRulesLeaveOut(t *testing.T) {
	t.Parallel()
	const (
		desired = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, namespace: ns}, spec: {replicas: 3, paused: true,
			template: {spec: {initContainers: [{name: own, image: a}], containers: [{name: web, image: a, args: [x, y]}]}}}}`
		ours = `{manager: rutter, operation: Apply, fieldsV1: {"f:spec": {"f:replicas": {}, "f:paused": {}, "f:template": {"f:spec": {
			"f:initContainers": {"k:{\"name\":\"own\"}": {".": {}, "f:name": {}, "f:image": {}}},
			"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}, "f:args": {}}}}}}}}`
		hand = `{manager: tuner, operation: Update, fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:image": {}}}}}}}}`
		hpa  = `{manager: kube-controller-manager, operation: Update, subresource: scale, fieldsV1: {"f:spec": {"f:replicas": {}}}}`
	)
	live := func(managers, spec, initContainers, web string) *unstructured.Unstructured {
		return parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, namespace: ns, managedFields: [`+managers+`]}, spec: {`+spec+
			`template: {spec: {initContainers: [`+initContainers+`], containers: [{name: web, `+web+`}]}}}}`)
	}
	const (
		spec = "replicas: 3, paused: true, "
		own  = "{name: own, image: a}"
		web  = "image: a, args: [x, y]"
	)
	jq := func(text string) rutter.IgnoreRule {
		return rutter.IgnoreRule{Group: "apps", Kind: "*", JQ: []string{text}}
	}
	managers := rutter.IgnoreRule{Group: "*", Kind: "*", Managers: []string{"tuner"}}
	for _, tt := range []struct {
		reason string
		rule   rutter.IgnoreRule
		live   *unstructured.Unstructured
		want   string
	}{
		{"no rule", rutter.IgnoreRule{}, live(ours, "replicas: 9, paused: true, ", own, web), "[.spec.replicas]"},
		{"jq", jq(".spec.replicas"), live(ours, "replicas: 9, paused: false, ", own, web), "[.spec.paused]"},
		{"jq that chooses an element wherever it stands on either side", jq(`.spec.template.spec.containers[] | select(.name == "web") | .args[0]`),
			live(ours, spec, own, "image: a, args: [z, y]"), "[]"},
		{"jq that fails on one side names nothing there", jq(`.spec.template.spec.volumes[] | .name`), live(ours, "replicas: 9, paused: true, ", own, web), "[.spec.replicas]"},
		{"jq takes elements out of a list that is replaced as a whole", jq(`.spec.template.spec.containers[].args[] | select(. == "injected")`),
			live(ours, spec, own, "image: a, args: [injected, x, y]"), "[]"},
		{"and sees the rest of it", jq(`.spec.template.spec.containers[].args[] | select(. == "injected")`),
			live(ours, spec, own, "image: a, args: [injected, x, q]"), `[.spec.template.spec.containers[name="web"].args[1]]`},
		{"a manager is trusted with what it owns", managers, live(ours+", "+hand, spec, own, "image: b, args: [x, y]"), "[]"},
		{"and with nothing else", managers, live(ours+", "+hand, "replicas: 9, paused: true, ", own, "image: b, args: [x, y]"), "[.spec.replicas]"},
		{"an autoscaler owns the replicas without any rule", rutter.IgnoreRule{}, live(ours+", "+hpa, "replicas: 9, paused: false, ", own, web), "[.spec.paused]"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			opts := compare.Options{Rules: read(t, tt.rule)}
			want := parse(t, desired)
			if got := fmt.Sprint(paths(compare.Local(want, tt.live, opts))); got != tt.want {
				t.Errorf("Local: %s, want %s", got, tt.want)
			}
			predicted := parse(t, desired)
			foreign(t, predicted, rutter.FieldManager, "Apply", "", `{"f:spec":{"f:replicas":{},"f:paused":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{},"f:args":{}}}}}}}`)
			if got := fmt.Sprint(paths(compare.Predicted(predicted, tt.live, opts))); got != tt.want {
				t.Errorf("Predicted: %s, want %s", got, tt.want)
			}
			sent := compare.Respect(want, tt.live, opts.Rules)
			if r := compare.Local(sent, tt.live, compare.Options{}); r.Equal != (tt.want == "[]") && tt.rule.Managers == nil {
				t.Errorf("Respect sends %v, want %s", r.Diffs, tt.want)
			}
			before := live(ours, spec, own, web)
			a, _ := compare.OwnedHash(before, rutter.FieldManager, opts.Rules)
			b, _ := compare.OwnedHash(tt.live, rutter.FieldManager, opts.Rules)
			if same := a == b; tt.want != "[]" && same {
				t.Error("OwnedHash is the same")
			}
		})
	}
}

// A role that the control plane fills in is nobody's drift, whatever Git
// declares as its rules.
func TestAggregatedRole(t *testing.T) {
	t.Parallel()
	desired := parse(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: []}`)
	live := parse(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`)
	if r := compare.Local(desired, live, ours); !r.Equal {
		t.Errorf("%+v", r.Diffs)
	}
	if sent := compare.Respect(desired, live, nil); sent.Object["rules"] != nil {
		t.Errorf("rules are sent: %v", sent.Object)
	}
	if !compare.Ceded(live) {
		t.Error("not ceded")
	}
}

func TestScalerRules(t *testing.T) {
	t.Parallel()
	got := compare.ScalerRules([]*unstructured.Unstructured{
		parse(t, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: ns}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`),
		parse(t, `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: again, namespace: ns}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`),
		parse(t, `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: k, namespace: ns}, spec: {scaleTargetRef: {name: worker}}}`),
		parse(t, `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: k2, namespace: ns}, spec: {scaleTargetRef: {apiVersion: example.com/v1, kind: Pool, name: p}}}`),
		parse(t, `{apiVersion: v1, kind: ReplicationController, metadata: {name: no}, spec: {scaleTargetRef: {name: x, kind: Y}}}`),
		parse(t, `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: half, namespace: ns}, spec: {}}`),
	})
	want := []rutter.IgnoreRule{
		{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web", JSONPointers: []string{"/spec/replicas"}},
		{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "worker", JSONPointers: []string{"/spec/replicas"}},
		{Group: "example.com", Kind: "Pool", Namespace: "ns", Name: "p", JSONPointers: []string{"/spec/replicas"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// What a webhook would make of a field that nobody declares counts only where it
// is asked for.
func TestIncludeWebhooks(t *testing.T) {
	t.Parallel()
	live := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: "1", injected: old}}`)
	foreign(t, live, rutter.FieldManager, "Apply", "", `{"f:data":{"f:a":{}}}`)
	told := live.DeepCopy()
	set(t, told, "new", "data", "injected")
	if r := compare.Predicted(told, live, ours); !r.Equal {
		t.Errorf("counted: %+v", r.Diffs)
	}
	if got := paths(compare.Predicted(told, live, compare.Options{Webhooks: true})); fmt.Sprint(got) != "[.data.injected]" {
		t.Errorf("not counted: %v", got)
	}
}

func TestScope(t *testing.T) {
	t.Parallel()
	scope, err := compare.NewScope(rutter.CompareSettings{
		Exclude: []rutter.ResourceFilter{{Groups: []string{"cilium.io"}, Kinds: []string{"*Identity"}}, {Groups: []string{"*"}, Kinds: []string{"Secret"}, Clusters: []string{"https://prod*"}}},
		Include: []rutter.ResourceFilter{{Groups: []string{"", "apps"}, Clusters: []string{"https://small"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		group, kind, server string
		want                bool
	}{
		{"cilium.io", "CiliumIdentity", "https://x", true},
		{"cilium.io", "CiliumNetworkPolicy", "https://x", false},
		{"", "Secret", "https://prod-1", true},
		{"", "Secret", "https://dev", false},
		{"apps", "Deployment", "https://small", false},
		{"batch", "Job", "https://small", true},
		{"batch", "Job", "https://other", false},
		{"", "Event", "https://other", true},
		{"events.k8s.io", "Event", "https://other", true},
		{"coordination.k8s.io", "Lease", "https://other", true},
	} {
		if got := scope.Excludes(rutter.GVK{Group: tt.group, Version: "v1", Kind: tt.kind}, tt.server); got != tt.want {
			t.Errorf("%s/%s at %s: excluded %v", tt.group, tt.kind, tt.server, got)
		}
	}
	var none *compare.Scope
	if none.Excludes(rutter.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}, "x") || !none.Excludes(rutter.GVK{Version: "v1", Kind: "Event"}, "x") {
		t.Error("no settings")
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	object := func(kind, namespace, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		u.SetNamespace(namespace)
		u.SetName(name)
		return u
	}
	show := func(u *unstructured.Unstructured) string {
		if u == nil {
			return "-"
		}
		return u.GetKind() + "/" + u.GetNamespace() + "/" + u.GetName()
	}
	var got []string
	for _, p := range compare.Match(
		[]*unstructured.Unstructured{object("A", "", "x"), object("A", "n", "y"), object("A", "", "z"), object("B", "n", "x")},
		[]*unstructured.Unstructured{object("A", "m", "y"), object("A", "n", "z"), object("A", "m", "z"), object("A", "n", "y"), object("A", "k", "x")},
	) {
		got = append(got, show(p.Desired)+" "+show(p.Live))
	}
	want := []string{"A//x A/k/x", "A/n/y" + " A/n/y", "A//z -", "B/n/x -", "- A/m/y", "- A/n/z", "- A/m/z"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("a declared object without a namespace stands for the only one of its name: %s", d)
	}
}
