package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/testenv"
)

// TestKeepFormer: what another tool has applied stays where no migration is asked for,
// and one more manager's goes over where it is named.
func TestKeepFormer(t *testing.T) {
	env := testenv.Hub(t)
	ns, m := env.Namespace(t), connect(t, env.RESTConfig(), newSink())
	client, err := dynamic.NewForConfig(env.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	maps := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(ns)
	for _, tc := range []struct {
		name, manager string
		manner        rutter.Manner
		stale         bool
	}{
		{"migrates", "argocd-controller", rutter.Manner{}, false},
		{"keeps", "argocd-controller", rutter.Manner{KeepFormer: true}, true},
		{"somebody", "my-tool", rutter.Manner{}, true},
		{"named", "my-tool", rutter.Manner{Former: "my-tool"}, false},
	} {
		old := cm(ns, tc.name, map[string]any{"keep": "1", "stale": "1"}, false)
		if _, err := maps.Apply(t.Context(), tc.name, old, metav1.ApplyOptions{FieldManager: tc.manager, Force: true}); err != nil {
			t.Fatal(err)
		}
		live, err := m.Apply(t.Context(), cm(ns, tc.name, map[string]any{"keep": "2"}, true), rutter.ApplyOptions{Manner: tc.manner})
		if err != nil {
			t.Fatal(err)
		}
		data, _, _ := unstructured.NestedStringMap(live.Object, "data")
		if _, stale := data["stale"]; stale != tc.stale || data["keep"] != "2" {
			t.Errorf("%s: %v", tc.name, data)
		}
	}
}

// TestReplaceOnce puts an object in the place of another one, or of none, and asks
// about it without doing it.
func TestReplaceOnce(t *testing.T) {
	env := testenv.Hub(t)
	ns, m := env.Namespace(t), connect(t, env.RESTConfig(), newSink())
	replace := rutter.ApplyOptions{Manner: rutter.Manner{Replace: true}}
	first, err := m.Apply(t.Context(), cm(ns, "a", map[string]any{"k": "1", "gone": "x"}, true), replace)
	if err != nil {
		t.Fatal(err)
	}
	dry := replace
	dry.DryRun = true
	told, err := m.Apply(t.Context(), cm(ns, "a", map[string]any{"k": "2"}, true), dry)
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(told.Object, "data")
	live, err := m.Get(t.Context(), rutter.GVKOf(first), ns, "a")
	if err != nil || len(data) != 1 || live.GetResourceVersion() != first.GetResourceVersion() {
		t.Errorf("the dry run says %v and has written: %v", data, err)
	}
	second, err := m.Apply(t.Context(), cm(ns, "a", map[string]any{"k": "2"}, true), replace)
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ = unstructured.NestedStringMap(second.Object, "data")
	if len(data) != 1 || data["k"] != "2" || second.GetUID() != first.GetUID() {
		t.Errorf("data %v", data)
	}
}
