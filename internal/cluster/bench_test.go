package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/testenv"
)

const benchObjects, benchWorkers = 1000, 32

// BenchmarkApply applies 1,000 ConfigMaps and Deployments through a member and
// through a bare loop of client-go's dynamic client, in turns on the same
// server, and reports the median ratio of their times (1.1 is the most that is
// wanted). Take ten rounds or more: go test -run XXX -bench Apply -benchtime 10x.
func BenchmarkApply(b *testing.B) {
	env := testenv.Hub(b)
	rc := env.RESTConfig()
	rc.QPS = -1
	bare, err := dynamic.NewForConfig(rc)
	if err != nil {
		b.Fatal(err)
	}
	r := New(Options{Logger: slog.New(slog.DiscardHandler), Sink: newSink()})
	b.Cleanup(r.Close)
	if err := r.SetLocal(env.RESTConfig()); err != nil {
		b.Fatal(err)
	}
	m := r.at(LocalServer).member
	ways := map[string]func(context.Context, *unstructured.Unstructured) error{
		"rutter": func(ctx context.Context, u *unstructured.Unstructured) error {
			_, err := m.Apply(ctx, u, rutter.ApplyOptions{})
			return err
		},
		"bare": func(ctx context.Context, u *unstructured.Unstructured) error {
			gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
			if u.GetKind() == "Deployment" {
				gvr = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
			}
			_, err := bare.Resource(gvr).Namespace(u.GetNamespace()).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: rutter.FieldManager, Force: true})
			return err
		},
	}
	spent := map[string]time.Duration{}
	ratios := make([]float64, 0, b.N)
	for i := range b.N {
		order := []string{"bare", "rutter"}
		if i%2 == 1 {
			order = []string{"rutter", "bare"}
		}
		took := map[string]time.Duration{}
		for _, way := range order {
			ns := env.Namespace(b)
			began := time.Now()
			applyAll(b, ns, ways[way])
			took[way] = time.Since(began)
			spent[way] += took[way]
		}
		ratios = append(ratios, took["rutter"].Seconds()/took["bare"].Seconds())
	}
	b.ReportMetric(float64(benchObjects*b.N)/spent["rutter"].Seconds(), "applies/s")
	b.ReportMetric(float64(benchObjects*b.N)/spent["bare"].Seconds(), "bare-applies/s")
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "median-ratio")
}

func applyAll(b *testing.B, ns string, apply func(context.Context, *unstructured.Unstructured) error) {
	b.Helper()
	g, ctx := errgroup.WithContext(b.Context())
	var next atomic.Int64
	for range benchWorkers {
		g.Go(func() error {
			for i := next.Add(1); i <= benchObjects; i = next.Add(1) {
				if err := apply(ctx, benchObject(ns, int(i))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
}

func benchObject(ns string, i int) *unstructured.Unstructured {
	name := fmt.Sprintf("o-%d", i)
	if i%2 == 0 {
		return cm(ns, name, map[string]any{"a": "1", "b": "some text"}, true)
	}
	labels := map[string]any{"app": name}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name, "namespace": ns, "labels": map[string]any{rutter.LabelUnit: "x"}},
		"spec": map[string]any{"replicas": int64(1), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{
				map[string]any{"name": "c", "image": "registry.example.com/app:1", "ports": []any{map[string]any{"containerPort": int64(8080)}}}}}}}}}
}
