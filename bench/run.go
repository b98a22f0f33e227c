package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/local"
)

// bench is one run.
type bench struct {
	options
	out *printer

	dir    string
	names  []string
	limit  limit
	fleet  *fleet
	server *local.Cluster
	child  *child
	client client.WithWatch
	seen   *follower
}

func (b *bench) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "rutter-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	if b.keep {
		defer fmt.Fprintln(os.Stderr, "kept:", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	b.dir = dir
	for i := range b.apps {
		b.names = append(b.names, appName(i))
	}
	if b.fleet, err = newFleet(ctx, dir, b.apps); err != nil {
		return fmt.Errorf("make the repository: %w", err)
	}
	if err := b.bareLoop(ctx); err != nil {
		return fmt.Errorf("%s: %w", phaseLimit, err)
	}
	if b.last(phaseLimit) {
		return nil
	}
	defer b.stop(ctx)
	if err := b.start(ctx); err != nil {
		return err
	}
	return b.phasesOfRutter(ctx)
}

// start starts a fresh API server and the controller.
func (b *bench) start(ctx context.Context) error {
	var err error
	if b.server, err = local.Start(ctx, local.Options{Name: "bench", Shape: local.Hub, Dir: filepath.Join(b.dir, "server")}); err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	rc, err := b.server.RESTConfig()
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	if err := daemon.Install(ctx, rc, namespace); err != nil {
		return fmt.Errorf("install the CRDs: %w", err)
	}
	if b.client, err = daemon.NewClient(rc); err != nil {
		return fmt.Errorf("build a client: %w", err)
	}
	b.seen = follow(ctx, b.client)
	b.child, err = startController(ctx, b.server.Kubeconfig, filepath.Join(b.dir, "data"))
	return err
}

func (b *bench) stop(ctx context.Context) {
	if b.child != nil {
		b.child.stop()
	}
	if b.server != nil {
		_ = b.server.Stop(context.WithoutCancel(ctx)) // it dies with this process in any case
	}
}

func (b *bench) phasesOfRutter(ctx context.Context) error {
	if err := b.first(ctx); err != nil {
		return fmt.Errorf("%s: %w", phaseFirst, err)
	}
	for _, c := range []change{
		{phase: phaseChangeOne, file: overlayFile(0), content: overlay(b.names[0], "replicas: [{name: web, count: 2}]\n"), concerns: b.names[:1]},
		{phase: phaseChangeAll, file: "base/all.yaml", content: baseOf(secondVersion), concerns: b.names},
		{phase: phaseNoChange, file: "README.md", content: "changed\n"},
	} {
		if err := b.change(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.phase, err)
		}
		if b.last(c.phase) {
			return nil
		}
	}
	return nil
}

// first creates the set and waits for its Applications and their first sync.
func (b *bench) first(ctx context.Context) error {
	set, err := b.fleet.set()
	if err != nil {
		return err
	}
	commit, err := b.fleet.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if err := b.rest(ctx); err != nil {
		return err
	}
	began, err := b.begin(ctx, phaseFirst)
	if err != nil {
		return err
	}
	if err := b.client.Create(ctx, set); err != nil {
		return fmt.Errorf("create the set: %w", err)
	}
	if err := b.seen.await(ctx, b.child, b.names, func(seen) bool { return true }); err != nil {
		return err
	}
	exist, err := b.count(ctx)
	if err != nil {
		return err
	}
	if err := b.show(b.row(phaseSet, began, exist)); err != nil {
		return err
	}
	if err := b.seen.await(ctx, b.child, b.names, func(s seen) bool { return s.syncedAt(commit) }); err != nil {
		return err
	}
	return b.finish(ctx, phaseFirst, began, func(row) error { return b.verify(ctx, firstVersion, 1) })
}

// change is a push of one file.
type change struct {
	phase, file, content string
	concerns             []string // Applications that are synced anew
}

// change pushes and waits until the Applications concerned are Synced at the
// commit, or, when none is, until the controller has looked at all of them.
func (b *bench) change(ctx context.Context, c change) error {
	if err := b.fleet.write(c.file, c.content); err != nil {
		return err
	}
	commit, err := b.fleet.push(ctx, c.phase)
	if err != nil {
		return err
	}
	began, err := b.begin(ctx, c.phase)
	if err != nil {
		return err
	}
	if err := b.child.pushed(ctx, b.fleet.url()); err != nil {
		return err
	}
	if len(c.concerns) == 0 {
		err = b.lookedAt(ctx, commit, began)
	} else {
		err = b.seen.await(ctx, b.child, c.concerns, func(s seen) bool { return s.syncedAt(commit) })
	}
	if err != nil {
		return err
	}
	return b.finish(ctx, c.phase, began, func(r row) error {
		if c.phase == phaseNoChange && r.Applied+r.After.Applied > 0 {
			return fmt.Errorf("%d objects were applied for a push that changes none", r.Applied+r.After.Applied)
		}
		version := secondVersion
		if c.phase == phaseChangeOne {
			version = firstVersion
		}
		return b.verify(ctx, version, 2)
	})
}

// lookedAt waits until every unit is known to be Synced at the commit. The
// counter is asked first: it costs the controller nothing.
func (b *bench) lookedAt(ctx context.Context, commit string, began counters) error {
	for {
		if err := b.child.pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("wait until all are looked at: %w", err)
		}
		now, err := b.count(ctx)
		if err != nil {
			return err
		}
		if now.units-began.units < int64(b.apps) {
			continue
		}
		if n, err := b.unitsAt(ctx, commit); err != nil || n == b.apps {
			return err
		}
	}
}

// unitsAt counts the units that are Synced at a commit.
func (b *bench) unitsAt(ctx context.Context, commit string) (int, error) {
	data, err := b.child.get(ctx, "/api/v1/units")
	if err != nil {
		return 0, err
	}
	var all struct {
		Units []struct {
			Sync      string   `json:"sync"`
			Revisions []string `json:"revisions"`
		} `json:"units"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return 0, fmt.Errorf("decode the units: %w", err)
	}
	n := 0
	for _, u := range all.Units {
		if u.Sync == "Synced" && slices.Equal(u.Revisions, []string{commit}) {
			n++
		}
	}
	return n, nil
}

// verify looks at the live Deployments: a phase counts only if its content arrived.
func (b *bench) verify(ctx context.Context, version string, replicasOfFirst int32) error {
	var live appsv1.DeploymentList
	if err := b.client.List(ctx, &live, client.InNamespace(destination)); err != nil {
		return fmt.Errorf("list the Deployments: %w", err)
	}
	if len(live.Items) != b.apps {
		return fmt.Errorf("there are %d Deployments, not %d", len(live.Items), b.apps)
	}
	for _, d := range live.Items {
		want := int32(1)
		if d.Name == b.names[0]+"-web" {
			want = replicasOfFirst
		}
		if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/web:"+version || *d.Spec.Replicas != want {
			return fmt.Errorf("deployment %s has %d replicas of %s, not %d of version %s", d.Name, *d.Spec.Replicas, image, want, version)
		}
	}
	return nil
}

// begin takes the counters at the beginning of a phase, and begins its profile.
func (b *bench) begin(ctx context.Context, phase string) (counters, error) {
	if b.profile != "" {
		file, err := b.profileFile(phase)
		if err != nil {
			return counters{}, err
		}
		if err := b.child.profile(file); err != nil {
			return counters{}, err
		}
	}
	return b.count(ctx)
}

// finish ends a phase: its figures, then those of what it leaves behind (statuses
// that only record a revision are written at leisure), then the check.
func (b *bench) finish(ctx context.Context, phase string, began counters, check func(row) error) error {
	now, err := b.count(ctx)
	if err != nil {
		return err
	}
	r := b.row(phase, began, now)
	if err := b.rest(ctx); err != nil {
		return err
	}
	if b.profile != "" {
		if err := b.child.profile(""); err != nil {
			return err
		}
	}
	settled, err := b.count(ctx)
	if err != nil {
		return err
	}
	r.after(settled.since(now))
	if err := b.show(r); err != nil {
		return err
	}
	return check(r)
}

// rest waits until the controller sends nothing for a second.
func (b *bench) rest(ctx context.Context) error {
	sent, quiet := int64(-1), 0
	for quiet < 4 {
		now, err := b.count(ctx)
		if err != nil {
			return err
		}
		if quiet++; now.sent != sent {
			sent, quiet = now.sent, 0
		}
		if err := b.child.pause(ctx, 250*time.Millisecond); err != nil {
			return fmt.Errorf("wait until the controller rests: %w", err)
		}
	}
	return nil
}
