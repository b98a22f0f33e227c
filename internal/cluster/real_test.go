package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/testenv"
)

var definition = rutter.GVK{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// crd defines Widget in v1 (stored) and v2 in a group of its own.
func crd(group string, conversion map[string]any) *unstructured.Unstructured {
	open := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	spec := map[string]any{"group": group, "scope": "Namespaced", "names": map[string]any{"kind": "Widget", "plural": "widgets"}, "versions": []any{
		map[string]any{"name": "v1", "served": true, "storage": true, "schema": open},
		map[string]any{"name": "v2", "served": true, "storage": false, "schema": open},
	}}
	if conversion != nil {
		spec["conversion"] = conversion
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets." + group}, "spec": spec}}
}

func groupFor(ns string) string { return "x" + strings.ReplaceAll(ns, "-", "") + ".example.com" }

func define(t *testing.T, m *member, obj *unstructured.Unstructured) {
	t.Helper()
	if _, err := m.Apply(t.Context(), obj, rutter.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Delete(context.Background(), definition, "", obj.GetName(), rutter.DeleteOptions{}) })
}

// TestAdoptArgo: the fields that Argo CD applied on the server's side are taken
// over as well, whatever others own stays theirs, and the second apply is plain.
func TestAdoptArgo(t *testing.T) {
	env := testenv.Hub(t)
	ns, m := env.Namespace(t), connect(t, env.RESTConfig(), newSink())
	client, err := dynamic.NewForConfig(env.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	maps := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(ns)
	for manager, data := range map[string]map[string]any{"argocd-controller": {"keep": "1", "stale": "1"}, "somebody": {"theirs": "1"}} {
		if _, err := maps.Apply(t.Context(), "a", cm(ns, "a", data, false), metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	live, err := m.Apply(t.Context(), cm(ns, "a", map[string]any{"keep": "2"}, true), rutter.ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(live.Object, "data")
	if len(data) != 2 || data["keep"] != "2" || data["theirs"] != "1" {
		t.Errorf("data %v", data)
	}
	managers := map[string]bool{}
	for _, e := range live.GetManagedFields() {
		managers[e.Manager] = true
	}
	if len(managers) != 2 || !managers[rutter.FieldManager] || !managers["somebody"] {
		t.Errorf("managers %v", managers)
	}
	before := m.requests.apply.Load()
	if _, err := m.Apply(t.Context(), cm(ns, "a", map[string]any{"keep": "3"}, true), rutter.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := m.requests.apply.Load() - before; n != 1 || m.requests.patch.Load() != 1 {
		t.Errorf("%d applies and %d patches in all after the adoption", n, m.requests.patch.Load())
	}
}

// TestDefinitionAndObjectAtOnce: an object may be sent together with its
// definition, and waits for no longer than the server needs.
func TestDefinitionAndObjectAtOnce(t *testing.T) {
	env := testenv.Hub(t)
	ns, m := env.Namespace(t), connect(t, env.RESTConfig(), newSink())
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": groupFor(ns) + "/v2", "kind": "Widget", "metadata": map[string]any{"name": "w", "namespace": ns}}}
	if _, err := m.Mapping(t.Context(), rutter.GVKOf(obj)); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Fatalf("before: %v", err)
	}
	define(t, m, crd(groupFor(ns), nil))
	began := time.Now()
	if _, err := m.Apply(t.Context(), obj, rutter.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	began = time.Now()
	never := rutter.GVK{Group: groupFor(ns), Version: "v3", Kind: "Widget"}
	if _, err := m.Mapping(t.Context(), never); rutter.CodeOf(err) != rutter.CodeNotFound || time.Since(began) > 3*time.Second {
		t.Errorf("a version that nobody defines, after %s: %v", time.Since(began), err)
	}
	if err := m.Delete(t.Context(), definition, "", "widgets."+groupFor(ns), rutter.DeleteOptions{Propagation: "background"}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 15*time.Second, func() error {
		if _, err := m.Get(t.Context(), rutter.GVKOf(obj), ns, "w"); rutter.CodeOf(err) != rutter.CodeNotFound {
			return rutter.Errorf(rutter.CodeInternal, "the kind is still served: %w", err)
		}
		if _, err := m.Mapping(t.Context(), rutter.GVKOf(obj)); rutter.CodeOf(err) != rutter.CodeNotFound {
			return rutter.Errorf(rutter.CodeInternal, "the kind is still known: %w", err)
		}
		return nil
	})
}

// TestConversionIsDown (scenario B58): a kind whose conversion does not answer,
// or is refused, is tainted by name while all others go on.
func TestConversionIsDown(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing.Close()
	for name, addr := range map[string]string{"silent": silent.Addr().String(), "refusing": refusing.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			env, s := testenv.Hub(t), newSink()
			ns, m := env.Namespace(t), connect(t, env.RESTConfig(), s)
			group := groupFor(ns)
			define(t, m, crd(group, nil))
			v1, v2 := rutter.GVK{Group: group, Version: "v1", Kind: "Widget"}, rutter.GVK{Group: group, Version: "v2", Kind: "Widget"}
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Widget",
				"metadata": map[string]any{"name": "w", "namespace": ns, "labels": map[string]any{rutter.LabelUnit: "x"}}}}
			if _, err := m.Apply(t.Context(), obj, rutter.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			define(t, m, crd(group, map[string]any{"strategy": "Webhook", "webhook": map[string]any{"conversionReviewVersions": []any{"v1"},
				"clientConfig": map[string]any{"url": "https://" + addr + "/convert"}}}))
			time.Sleep(500 * time.Millisecond) // until the new conversion is in use
			m.Watch(v2)
			m.Watch(v1)
			m.Watch(configMap)
			testenv.Eventually(t, 60*time.Second, s.check(func() bool { return s.tainted[v2] != nil && s.listed[v1] > 0 && s.listed[configMap] > 0 }))
			if err := s.taintOf(v2); !strings.Contains(err.Error(), "storage is (re)initializing") && !strings.Contains(err.Error(), "conversion webhook") && !strings.Contains(err.Error(), "did not answer") {
				t.Errorf("the cause is not named: %v", err)
			}
			if s.ever(v1) || s.ever(configMap) || s.down != nil {
				t.Error("others are concerned")
			}
			if _, err := m.Apply(t.Context(), cm(ns, "goes-on", nil, true), rutter.ApplyOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSecretsStaySecret: what a server says of a Secret it cannot take does not
// repeat its values.
func TestSecretsStaySecret(t *testing.T) {
	env := testenv.Hub(t)
	ns, m := env.Namespace(t), connect(t, env.RESTConfig(), newSink())
	for name, fields := range map[string]map[string]any{
		"a number":        {"data": map[string]any{"p": int64(80808080)}},
		"not base64":      {"data": map[string]any{"p": "hunter2!"}},
		"a list":          {"stringData": map[string]any{"p": []any{"hunter2"}}},
		"a number beside": {"stringData": map[string]any{"p": int64(80808080)}},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": ns}}}
		maps.Copy(obj.Object, fields)
		_, err := m.Apply(t.Context(), obj, rutter.ApplyOptions{})
		if rutter.CodeOf(err) != rutter.CodeInvalid {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "80808080") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWordsOfTheServer: what is refused says which object, field or user.
func TestWordsOfTheServer(t *testing.T) {
	env := testenv.Hub(t)
	ns, m := env.Namespace(t), connect(t, env.RESTConfig(), newSink())
	if _, err := m.Apply(t.Context(), cm("no-such-namespace", "a", nil, true), rutter.ApplyOptions{}); rutter.CodeOf(err) != rutter.CodeNotFound || !strings.Contains(err.Error(), `namespaces "no-such-namespace" not found`) {
		t.Errorf("%s %v", rutter.CodeOf(err), err)
	}
	service := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "s", "namespace": ns},
		"spec": map[string]any{"ports": []any{map[string]any{"port": int64(99999)}}}}}
	if _, err := m.Apply(t.Context(), service, rutter.ApplyOptions{}); rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "spec.ports[0].port") {
		t.Errorf("%s %v", rutter.CodeOf(err), err)
	}
	rc := env.RESTConfig()
	rc.Impersonate.UserName = "nobody"
	weak := connect(t, rc, newSink())
	if _, err := weak.Apply(t.Context(), cm(ns, "a", nil, true), rutter.ApplyOptions{}); rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("%s %v", rutter.CodeOf(err), err)
	}
	rc = env.RESTConfig()
	rc.CertData, rc.KeyData, rc.CertFile, rc.KeyFile, rc.BearerToken = nil, nil, "", "", "wrong"
	if _, err := connect(t, rc, newSink()).Apply(t.Context(), cm(ns, "a", nil, true), rutter.ApplyOptions{}); rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("%s %v", rutter.CodeOf(err), err)
	}
}

// TestDescriptions: a cluster says of what type its kinds are, custom ones too.
func TestDescriptions(t *testing.T) {
	env := testenv.Hub(t)
	ns, m := env.Namespace(t), connect(t, env.RESTConfig(), newSink())
	group := groupFor(ns)
	define(t, m, crd(group, nil))
	testenv.Eventually(t, 30*time.Second, func() error {
		index, err := m.Descriptions(t.Context())
		if err != nil {
			return err
		}
		url, ok := index["apis/"+group+"/v1"]
		if !ok {
			return errors.New("the group is not described yet")
		}
		document, err := m.Description(t.Context(), url)
		if err == nil && !strings.Contains(string(document), `"kind":"Widget"`) {
			err = fmt.Errorf("no Widget in %s", url)
		}
		return err
	})
	if _, err := m.Description(t.Context(), "https://elsewhere.example/x"); rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Errorf("a document elsewhere: %v", err)
	}
}
