package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/local"
)

// phaseShapes times whole syncs of three shapes, from the push to Synced, against
// the bare loop that sends the same objects in the same order.
const phaseShapes = "shapes"

// shape is a sort of sync.
type shape struct {
	name                 string
	apps, objects, waves int
}

var shapes = []shape{
	{name: "1 application of 1,000 objects", apps: 1, objects: 1000, waves: 1},
	{name: "200 applications of 5 objects", apps: 200, objects: 5, waves: 1},
	{name: "10 waves of 20 objects", apps: 1, objects: 200, waves: 10},
}

// shapesBench is one run.
type shapesBench struct {
	bench

	w io.Writer
}

// shapeRow is what is printed of one shape.
type shapeRow struct {
	Phase  string  `json:"phase"`
	Shape  string  `json:"shape"`
	Took   float64 `json:"seconds"`
	Loop   float64 `json:"loopSeconds"`
	Ratio  float64 `json:"ratio"`
	Beyond float64 `json:"secondsBeyond"`
}

func (b *shapesBench) run(ctx context.Context) error {
	for _, s := range shapes {
		one := &shapesBench{bench: bench{options: b.options}, w: b.w}
		if err := one.inFolder(ctx, func(ctx context.Context) error { return one.measure(ctx, s) }); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// measure times one shape: the loop first, on a server of its own.
func (b *shapesBench) measure(ctx context.Context, s shape) error {
	files := map[string]string{}
	for i := range s.apps {
		b.names = append(b.names, appName(i))
		files["apps/"+appName(i)+"/seed.yaml"] = strings.ReplaceAll(configMapIn("seed", 0), "APP", appName(i))
	}
	var err error
	if b.fleet, err = newRepository(ctx, b.dir, files); err != nil {
		return fmt.Errorf("make the repository: %w", err)
	}
	loop, err := b.loop(ctx, s)
	if err != nil {
		return fmt.Errorf("the bare loop: %w", err)
	}
	if err := b.start(ctx); err != nil {
		return err
	}
	took, err := b.pushed(ctx, s)
	if err != nil {
		return err
	}
	r := shapeRow{Phase: phaseShapes, Shape: s.name, Took: took.Seconds(), Loop: loop.Seconds(), Ratio: took.Seconds() / loop.Seconds(), Beyond: (took - loop).Seconds()}
	if b.json {
		return json.NewEncoder(b.w).Encode(r)
	}
	_, err = fmt.Fprintf(b.w, "%-32s %7.3f s  bare loop %7.3f s  %.2f times, %+.3f s\n", s.name, r.Took, r.Loop, r.Ratio, r.Beyond)
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// pushed declares the Applications with one object each, and then pushes the shape.
func (b *shapesBench) pushed(ctx context.Context, s shape) (time.Duration, error) {
	commit, err := b.fleet.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return 0, err
	}
	for _, name := range b.names {
		if err := b.client.Create(ctx, b.fleet.application(name)); err != nil {
			return 0, fmt.Errorf("create Application %s: %w", name, err)
		}
	}
	if err := b.seen.await(ctx, b.child, b.names, func(x seen) bool { return x.syncedAt(commit) }); err != nil {
		return 0, err
	}
	for i := range s.apps {
		if err := b.fleet.write("apps/"+appName(i)+"/all.yaml", s.manifests(appName(i))); err != nil {
			return 0, err
		}
	}
	if commit, err = b.fleet.push(ctx, s.name); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := b.child.pushed(ctx, b.fleet.url()); err != nil {
		return 0, err
	}
	if err := b.seen.await(ctx, b.child, b.names, func(x seen) bool { return x.syncedAt(commit) }); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// manifests are the objects of one application.
func (s shape) manifests(app string) string {
	docs := make([]string, s.objects)
	for i := range docs {
		docs[i] = configMapIn(fmt.Sprintf("c%04d", i), i*s.waves/s.objects)
	}
	return strings.ReplaceAll(strings.Join(docs, "---\n"), "APP", app)
}

func configMapIn(name string, wave int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: APP-%s\n  annotations: {argocd.argoproj.io/sync-wave: \"%d\"}\ndata: {level: info, size: medium}\n", name, wave)
}

// loop sends the same objects with nothing else to do, wave after wave, and writes
// two statuses for each Application.
func (b *shapesBench) loop(ctx context.Context, s shape) (time.Duration, error) {
	server, err := local.Start(ctx, local.Options{Name: "bench-limit", Shape: local.Hub, Dir: filepath.Join(b.dir, "limit")})
	if err != nil {
		return 0, fmt.Errorf("start the API server: %w", err)
	}
	defer func() { _ = server.Stop(context.WithoutCancel(ctx)) }() // it dies with this process in any case
	rc, err := server.RESTConfig()
	if err != nil {
		return 0, fmt.Errorf("reach the API server: %w", err)
	}
	if err := daemon.Install(ctx, rc, namespace); err != nil {
		return 0, fmt.Errorf("install the CRDs: %w", err)
	}
	rc.QPS = -1
	client, err := dynamic.NewForConfig(rc)
	if err != nil {
		return 0, fmt.Errorf("build a client: %w", err)
	}
	apps, waves, err := b.prepareLoop(ctx, client, s)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for _, wave := range waves {
		l := &loop{client: client, work: wave}
		if _, err := l.each(ctx, l.applyAll); err != nil {
			return 0, err
		}
	}
	if _, err := (&loop{client: client, work: apps}).each(ctx, (&loop{client: client}).writeStatuses); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// prepareLoop makes the Applications, and encodes every object as a piece of work of
// its own, by wave.
func (b *shapesBench) prepareLoop(ctx context.Context, client dynamic.Interface, s shape) (apps []work, waves [][]work, err error) {
	waves = make([][]work, s.waves)
	objects, err := documents(strings.ReplaceAll(s.manifests("x"), "x-", ""))
	if err != nil {
		return nil, nil, err
	}
	for _, name := range b.names {
		w := work{name: name, declared: b.fleet.application(name)}
		for i := range w.statuses {
			if w.statuses[i], err = b.fleet.status(name, i == 1); err != nil {
				return nil, nil, err
			}
		}
		if err := (&loop{client: client}).declare(ctx, &w); err != nil { // also warms the server up
			return nil, nil, err
		}
		apps = append(apps, w)
		for i, o := range objects {
			one, err := encode(name, o.DeepCopy())
			if err != nil {
				return nil, nil, err
			}
			n := i * s.waves / s.objects
			waves[n] = append(waves[n], work{objects: []body{one}})
		}
	}
	warm, err := documents(strings.ReplaceAll(configMapIn("warm", 0), "APP-", ""))
	if err != nil {
		return nil, nil, err
	}
	one, err := encode("warm", warm[0])
	if err != nil {
		return nil, nil, err
	}
	return apps, waves, (&loop{client: client}).apply(ctx, one)
}
