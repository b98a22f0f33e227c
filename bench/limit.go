package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/local"
)

// loopWorkers send at one time in the bare loop.
const loopWorkers = 32

var resources = map[string]schema.GroupVersionResource{
	"Deployment": {Group: "apps", Version: "v1", Resource: "deployments"},
	"Service":    {Version: "v1", Resource: "services"},
	"ConfigMap":  {Version: "v1", Resource: "configmaps"},
}

var applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}

// bareLoop is what the machine can do at best: the same objects applied side by
// side, and for each Application one create and two status writes.
func (b *bench) bareLoop(ctx context.Context) error {
	server, err := local.Start(ctx, local.Options{Name: "limit", Shape: local.Hub})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop(context.WithoutCancel(ctx)) }()
	rc, err := server.RESTConfig()
	if err != nil {
		return err
	}
	if err := daemon.Install(ctx, rc, "argocd"); err != nil {
		return err
	}
	c, err := dynamic.NewForConfig(rc)
	if err != nil {
		return fmt.Errorf("build a client: %w", err)
	}
	objects, err := documents()
	if err != nil {
		return err
	}
	began := time.Now()
	var g errgroup.Group
	g.SetLimit(loopWorkers)
	for i := range b.apps {
		g.Go(func() error { return sendOne(ctx, c, objects, fmt.Sprintf("app-%04d", i), b.fleet.url()) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	b.limit = time.Since(began)
	if b.want["limit"] {
		b.print(row{Phase: "limit", MS: b.limit.Milliseconds(), Ratio: 1, Requests: map[string]int64{"apply": int64(3 * b.apps), "create": int64(b.apps), "patch": int64(2 * b.apps)}})
	}
	return nil
}

func documents() ([]map[string]any, error) {
	var out []map[string]any
	for _, doc := range split(base) {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			return nil, fmt.Errorf("read the objects: %w", err)
		}
		out = append(out, o)
	}
	return out, nil
}

func sendOne(ctx context.Context, c dynamic.Interface, objects []map[string]any, name, url string) error {
	app := map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": map[string]any{"name": name, "namespace": "argocd"},
		"spec": map[string]any{"project": "default", "source": map[string]any{"repoURL": url, "path": "apps/" + name}, "destination": map[string]any{"server": "https://kubernetes.default.svc", "namespace": "default"}}}
	data, err := json.Marshal(app)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	apps := c.Resource(applications).Namespace("argocd")
	if _, err := apps.Patch(ctx, name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "bench"}); err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	for _, o := range objects {
		full := map[string]any{"apiVersion": o["apiVersion"], "kind": o["kind"]}
		for k, v := range o {
			full[k] = v
		}
		full["metadata"] = map[string]any{"name": name + "-web", "namespace": "default", "labels": map[string]any{"rutter.dev/unit": "0123456789abcdef0123"},
			"annotations": map[string]any{"argocd.argoproj.io/tracking-id": name + ":apps/Deployment:default/" + name + "-web"}}
		data, err := json.Marshal(full)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		force := true
		kind, _ := o["kind"].(string)
		if _, err := c.Resource(resources[kind]).Namespace("default").Patch(ctx, name+"-web", types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "rutter", Force: &force}); err != nil {
			return fmt.Errorf("apply %s: %w", name, err)
		}
	}
	for _, s := range []string{"OutOfSync", "Synced"} {
		patch := fmt.Sprintf(`{"status":{"sync":{"status":%q,"revision":"0123456789012345678901234567890123456789"},"health":{"status":"Progressing"}}}`, s)
		if _, err := apps.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
			return fmt.Errorf("write the status of %s: %w", name, err)
		}
	}
	return nil
}
