package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// foreignPerNamespace is how many foreign objects share a namespace; the first
// thousand lie in that of the managed ones.
const foreignPerNamespace = 1000

// foreigners are objects of nobody that Rutter knows: ConfigMaps and Secrets in turn.
type foreigners struct {
	client  client.Client
	n       int
	changes atomic.Int64
}

func (f *foreigners) namespace(i int) string {
	if i < foreignPerNamespace {
		return destination
	}
	return fmt.Sprintf("foreign-%03d", i/foreignPerNamespace)
}

func (f *foreigners) object(i int) client.Object {
	meta := metav1.ObjectMeta{Namespace: f.namespace(i), Name: fmt.Sprintf("foreign-%06d", i), Labels: map[string]string{"app.kubernetes.io/instance": "somebody"}}
	content := []byte(payload(meta.Name))
	if i%2 == 0 {
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"content": string(content)}}
	}
	return &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"content": content[:len(content)*3/4]}}
}

// create makes all of them.
func (f *foreigners) create(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(loopWorkers)
	for i := range f.n {
		if i > 0 && i%foreignPerNamespace == 0 {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace(i)}}
			if err := f.client.Create(ctx, ns); err != nil {
				return fmt.Errorf("create namespace %s: %w", ns.Name, err)
			}
		}
		g.Go(func() error { return f.client.Create(ctx, f.object(i), client.FieldOwner("somebody")) })
		if ctx.Err() != nil {
			break
		}
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("create foreign objects: %w", err)
	}
	return nil
}

// churn changes as many of them a second until ctx ends, which is no error.
func (f *foreigners) churn(ctx context.Context, perSecond int) error {
	g, work := errgroup.WithContext(ctx)
	whole := context.WithoutCancel(ctx) // a change that has begun is made
	g.SetLimit(8)
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for {
		select {
		case <-work.Done():
			if err := g.Wait(); err != nil && ctx.Err() == nil {
				return fmt.Errorf("change foreign objects: %w", err)
			}
			return nil
		case <-tick.C:
		}
		n := f.changes.Add(1)
		g.Go(func() error { return f.change(whole, int(n*7919)%f.n, n) })
	}
}

func (f *foreigners) change(ctx context.Context, i int, n int64) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"changed": fmt.Sprint(n)}}})
	if err != nil {
		return fmt.Errorf("encode a change: %w", err)
	}
	obj := f.object(i)
	obj.SetLabels(nil)
	return f.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch))
}
