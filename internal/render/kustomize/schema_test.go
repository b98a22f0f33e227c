package kustomize_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// withSchema is a repository whose kustomization renders alone.
func withSchema() map[string]string {
	return map[string]string{
		"overlay/kustomization.yaml": "resources: [a.yaml]\nopenapi: {path: schema.json}\n",
		"overlay/a.yaml":             configMap("a"),
		"overlay/schema.json":        `{"definitions":{}}`,
	}
}

// TestSlowSourceHoldsUpNobody: a render that waits for a remote base, or for a
// chart, stands in the way of no other, not even of one that renders alone.
func TestSlowSourceHoldsUpNobody(t *testing.T) {
	release, waiting := make(chan struct{}), make(chan struct{}, 2)
	wait := func() { waiting <- struct{}{}; <-release }
	w := elsewhere()
	slow := record.Options{Fetch: func(ctx context.Context, repo rutter.Repo) (rutter.Snapshot, error) {
		wait()
		return w.fetch(ctx, repo)
	}}
	inflate := func(ctx context.Context, c kustomize.Chart) ([]rutter.Object, error) { wait(); return inflated(ctx, c) }
	r := kustomize.New()
	done := make(chan error, 2)
	for _, text := range []string{"resources: ['https://github.com/org/repo//base?ref=" + commit + "']", "helmCharts: [{name: app}]"} {
		files := rendertest.With(repository(), kustomization(text))
		files["overlay/charts/app/Chart.yaml"] = "name: app\n"
		go func() {
			_, _, err := render(t, r, files, kustomize.Input{Path: "overlay", Build: rutter.KustomizeBuild{EnableHelm: true}, Inflate: inflate}, slow)
			done <- err
		}()
		<-waiting
	}
	for name, files := range map[string]map[string]string{"another": repository(), "alone": withSchema()} {
		if _, err := build(t, r, files, "overlay", rutter.KustomizeOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	close(release)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// hanging is a repository in which one file is never read to its end.
type hanging struct {
	rutter.Snapshot

	reached, release chan struct{}
}

// ReadFile implements rutter.Snapshot.
func (h hanging) ReadFile(name string) ([]byte, error) {
	if name == "base/all.yaml" {
		close(h.reached)
		<-h.release
	}
	return h.Snapshot.ReadFile(name)
}

// TestHungRenderHoldsUpNobody: one that never ends lets all others go on, except
// those that have to be alone, which end with their time.
func TestHungRenderHoldsUpNobody(t *testing.T) {
	h := hanging{rendertest.Snapshot(repository()), make(chan struct{}), make(chan struct{})}
	r := kustomize.New()
	hung := make(chan error, 1)
	go func() {
		_, _, err := r.Render(t.Context(), kustomize.Input{Repo: record.New(t.Context(), h, record.Options{}), Path: "overlay"})
		hung <- err
	}()
	<-h.reached
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	alone := make(chan error, 1)
	go func() {
		_, _, err := r.Render(ctx, kustomize.Input{Repo: record.New(t.Context(), rendertest.Snapshot(withSchema()), record.Options{}), Path: "overlay"})
		alone <- err
	}()
	for range 5 {
		if _, err := build(t, r, repository(), "overlay", rutter.KustomizeOptions{}); err != nil {
			t.Error(err)
		}
	}
	if err := <-alone; rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "renders alone") {
		t.Errorf("the one that has to be alone: %v", err)
	}
	close(h.release)
	if err := <-hung; err != nil {
		t.Error(err)
	}
	if _, err := build(t, r, withSchema(), "overlay", rutter.KustomizeOptions{}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
