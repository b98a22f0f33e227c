package argo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/testenv"
)

var decisionKind = schema.GroupVersionKind{Group: "placement.test.rutter.dev", Version: "v1", Kind: "Decision"}

// withDecisions makes a kind of placement resources known to the shared cluster.
func withDecisions(t *testing.T, r *rig) {
	t.Helper()
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "decisions." + decisionKind.Group},
		"spec": map[string]any{
			"group": decisionKind.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": "decisions", "singular": "decision", "kind": decisionKind.Kind},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
	if err := r.client.Create(t.Context(), crd); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(decisionKind)
		return r.client.List(t.Context(), list, client.InNamespace(r.namespace))
	})
}

func (r *rig) decision(t *testing.T, name string, labels map[string]string, clusters ...any) *unstructured.Unstructured {
	t.Helper()
	d := &unstructured.Unstructured{Object: map[string]any{}}
	d.SetGroupVersionKind(decisionKind)
	d.SetName(name)
	d.SetLabels(labels)
	r.create(t, d)
	r.decide(t, d, clusters...)
	return d
}

// decide writes the status of a decision.
func (r *rig) decide(t *testing.T, d *unstructured.Unstructured, clusters ...any) {
	t.Helper()
	var list []any
	for _, c := range clusters {
		list = append(list, map[string]any{"clusterName": c})
	}
	d.Object["status"] = map[string]any{"decisions": list}
	if err := r.client.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func TestResources(t *testing.T) {
	r := newRig(t, SetOptions{})
	withDecisions(t, r)
	r.decision(t, "a", map[string]string{"tier": "gold"}, "east", "west")
	r.decision(t, "b", map[string]string{"tier": "gold"})
	r.decision(t, "c", map[string]string{"tier": "iron"})
	const v1 = "placement.test.rutter.dev/v1"
	gold := metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	for name, tc := range map[string]struct {
		query generate.ResourceQuery
		want  string
		code  rutter.Code
	}{
		"by name":         {generate.ResourceQuery{APIVersion: v1, Resource: "decisions", Name: "a"}, "a", ""},
		"by labels":       {generate.ResourceQuery{APIVersion: v1, Resource: "decisions", Selector: gold}, "a b", ""},
		"none":            {generate.ResourceQuery{APIVersion: v1, Resource: "decisions", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "tin"}}}, "", ""},
		"no such object":  {generate.ResourceQuery{APIVersion: v1, Resource: "decisions", Name: "z"}, "", rutter.CodeNotFound},
		"no such kind":    {generate.ResourceQuery{APIVersion: v1, Resource: "placements", Name: "a"}, "", rutter.CodeNotFound},
		"no such group":   {generate.ResourceQuery{APIVersion: "none.example.com/v1", Resource: "decisions", Name: "a"}, "", rutter.CodeNotFound},
		"no version":      {generate.ResourceQuery{APIVersion: "a/b/c", Resource: "decisions", Name: "a"}, "", rutter.CodeInvalid},
		"no such operand": {generate.ResourceQuery{APIVersion: v1, Resource: "decisions", Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Like"}}}}, "", rutter.CodeInvalid},
	} {
		found, err := r.of(t, r.namespace, "fleet").Resources(tc.query)
		var names []string
		for _, f := range found {
			names = append(names, (&unstructured.Unstructured{Object: f}).GetName())
		}
		if rutter.CodeOf(err) != tc.code || strings.Join(names, " ") != tc.want {
			t.Errorf("%s: %v, %v", name, names, err)
		}
	}
	found, err := r.of(t, r.namespace, "fleet").Resources(generate.ResourceQuery{APIVersion: v1, Resource: "decisions", Name: "a"})
	if err != nil || fmt.Sprint(found[0]["status"]) != "map[decisions:[map[clusterName:east] map[clusterName:west]]]" {
		t.Errorf("%v, %v", found, err)
	}
}

// TestPlacementsAreWatched: a set that asked for a kind is woken when one of its
// objects decides something else, and when nobody asks any more nobody watches.
func TestPlacementsAreWatched(t *testing.T) {
	r := newRig(t, SetOptions{})
	withDecisions(t, r)
	d := r.decision(t, "a", nil, "east")
	wakes := make(chan types.NamespacedName, 100)
	m, err := metadata.NewForConfig(testenv.Hub(t).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	p := &r.placements
	p.namespace, p.log, p.client, p.wake = r.namespace, r.opts.Logger, m, func(k types.NamespacedName) { wakes <- k }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Start(ctx) }()
	key := types.NamespacedName{Namespace: r.namespace, Name: "fleet"}
	ask := func() *facts {
		f := r.of(t, r.namespace, "fleet")
		if _, err := f.Resources(generate.ResourceQuery{APIVersion: "placement.test.rutter.dev/v1", Resource: "decisions", Name: "a"}); err != nil {
			t.Fatal(err)
		}
		return f
	}
	woken := func(why string) {
		t.Helper()
		select {
		case got := <-wakes:
			if got != key {
				t.Fatalf("%s: woke %s", why, got)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: nobody is woken", why)
		}
	}
	f := ask()
	woken("the watch begins")
	p.settle(key, f.kinds)
	r.decide(t, d, "east", "west")
	woken("another decision")
	f = ask() // the kind is watched already
	p.settle(key, f.kinds)
	r.decide(t, d)
	woken("no cluster any more")

	p.settle(key, nil)
	testenv.Eventually(t, 5*time.Second, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.kinds) > 0 {
			return errors.New("a kind that nobody asks for is watched")
		}
		return nil
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
