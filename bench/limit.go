package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/inventory"
	"github.com/rutterhq/rutter/internal/local"
)

// loopWorkers send at one time in the bare loop; between 4 and 64 it makes no difference.
const loopWorkers = 32

// limit is what the machine can do at best, with everything prepared beforehand.
type limit struct {
	applies time.Duration // the objects alone: what the published ratios of others relate to
	total   time.Duration // with one create and two status writes for each Application
	change  time.Duration // one changed object and two status writes for each Application
}

var applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}

// bareLoop measures the limit on an API server of its own.
func (b *bench) bareLoop(ctx context.Context) error {
	server, err := local.Start(ctx, local.Options{Name: "bench-limit", Shape: local.Hub})
	if err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	defer func() { _ = server.Stop(context.WithoutCancel(ctx)) }() // it dies with this process in any case
	rc, err := server.RESTConfig()
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	if err := daemon.Install(ctx, rc, namespace); err != nil {
		return fmt.Errorf("install the CRDs: %w", err)
	}
	l, err := b.newLoop(rc)
	if err != nil {
		return err
	}
	if err := b.warm(ctx, l); err != nil {
		return err
	}
	return b.measureLimit(ctx, l, server.PID)
}

// measureLimit times the three loops; the third is not in the figures of the limit.
func (b *bench) measureLimit(ctx context.Context, l *loop, server int) error {
	var began, now counters
	if err := began.read(os.Getpid(), server); err != nil {
		return err
	}
	objects, err := l.each(ctx, l.applyAll)
	if err != nil {
		return err
	}
	apps, err := l.each(ctx, l.declare)
	if err != nil {
		return err
	}
	if err := now.read(os.Getpid(), server); err != nil {
		return err
	}
	if b.limit.change, err = l.each(ctx, l.change); err != nil {
		return err
	}
	b.limit.applies, b.limit.total = objects, objects+apps
	began.own, now.own = 0, 0 // counted as the sender's
	r := b.row(phaseLimit, began, now)
	r.MS, r.Ratio, r.AppliesRatio = b.limit.total.Milliseconds(), 1, ratio(b.limit.total, b.limit.applies)
	r.AppliesMS, r.ChangeMS = b.limit.applies.Milliseconds(), b.limit.change.Milliseconds()
	n := int64(b.apps)
	r.Requests = map[string]int64{"apply": 3 * n, "create": n, "patch": 2 * n}
	return b.show(r)
}

// loop sends prepared requests.
type loop struct {
	client dynamic.Interface
	work   []work
}

// work is what one Application costs: bodies, ready to be sent.
type work struct {
	name     string
	objects  []body
	changed  body
	declared *unstructured.Unstructured
	statuses [2][]byte
}

type body struct {
	resource schema.GroupVersionResource
	name     string
	data     []byte
}

func (b *bench) newLoop(rc *rest.Config) (*loop, error) {
	l := &loop{work: make([]work, b.apps)}
	var err error
	if l.client, err = dynamic.NewForConfig(rc); err != nil {
		return nil, fmt.Errorf("build a client: %w", err)
	}
	for i := range l.work {
		if l.work[i], err = b.prepare(appName(i)); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// prepare builds the same objects as the overlay of an Application and Rutter's marks.
func (b *bench) prepare(app string) (work, error) {
	w := work{name: app, declared: b.fleet.application(app)}
	for i := range 2 {
		var err error
		if w.statuses[i], err = b.fleet.status(app, i == 1); err != nil {
			return w, err
		}
	}
	objects, err := documents(baseOf(firstVersion))
	if err != nil {
		return w, err
	}
	for _, o := range objects {
		one, err := encode(app, o)
		if err != nil {
			return w, err
		}
		w.objects = append(w.objects, one)
	}
	objects, err = documents(baseOf(secondVersion))
	if err != nil {
		return w, err
	}
	w.changed, err = encode(app, objects[0])
	return w, err
}

func encode(app string, o *unstructured.Unstructured) (body, error) {
	gvk := o.GroupVersionKind()
	ref := rutter.Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: destination, Name: app + "-" + o.GetName()}
	o.SetName(ref.Name)
	o.SetNamespace(ref.Namespace)
	o.SetLabels(map[string]string{rutter.LabelUnit: unitID(app).Hash()})
	o.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": inventory.TrackingID(app, ref, destination)})
	data, err := json.Marshal(o)
	if err != nil {
		return body{}, fmt.Errorf("encode %s: %w", ref, err)
	}
	resource := map[string]string{"Deployment": "deployments", "Service": "services", "ConfigMap": "configmaps"}[gvk.Kind]
	return body{resource: gvk.GroupVersion().WithResource(resource), name: ref.Name, data: data}, nil
}

// warm makes the server build what it builds at the first request of a kind, as
// the controller's start does in the other run.
func (b *bench) warm(ctx context.Context, l *loop) error {
	w, err := b.prepare("warm")
	if err != nil {
		return err
	}
	for _, do := range []func(context.Context, *work) error{l.applyAll, l.declare, l.change} {
		if err := do(ctx, &w); err != nil {
			return fmt.Errorf("warm the API server up: %w", err)
		}
	}
	return nil
}

// each does something for all Applications, side by side, and says how long it took.
func (l *loop) each(ctx context.Context, do func(context.Context, *work) error) (time.Duration, error) {
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(loopWorkers)
	for i := range l.work {
		g.Go(func() error { return do(ctx, &l.work[i]) })
	}
	if err := g.Wait(); err != nil {
		return 0, fmt.Errorf("the bare loop: %w", err)
	}
	return time.Since(began), nil
}

func (l *loop) applyAll(ctx context.Context, w *work) error {
	for _, o := range w.objects {
		if err := l.apply(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) apply(ctx context.Context, o body) error {
	_, err := l.client.Resource(o.resource).Namespace(destination).Patch(ctx, o.name, types.ApplyPatchType, o.data,
		metav1.PatchOptions{FieldManager: rutter.FieldManager, Force: new(true)})
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", o.resource.Resource, o.name, err)
	}
	return nil
}

func (l *loop) declare(ctx context.Context, w *work) error {
	if _, err := l.client.Resource(applications).Namespace(namespace).Create(ctx, w.declared, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create Application %s: %w", w.name, err)
	}
	return l.writeStatuses(ctx, w)
}

func (l *loop) change(ctx context.Context, w *work) error {
	if err := l.apply(ctx, w.changed); err != nil {
		return err
	}
	return l.writeStatuses(ctx, w)
}

func (l *loop) writeStatuses(ctx context.Context, w *work) error {
	for _, status := range w.statuses {
		if _, err := l.client.Resource(applications).Namespace(namespace).Patch(ctx, w.name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
			return fmt.Errorf("write the status of Application %s: %w", w.name, err)
		}
	}
	return nil
}

func documents(s string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq(s, "---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			return nil, fmt.Errorf("read the objects of the base: %w", err)
		}
		out = append(out, o)
	}
	return out, nil
}
