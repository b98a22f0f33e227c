package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/local"
)

// bench is one run.
type bench struct {
	apps    int
	json    bool
	profile string
	want    map[string]bool

	limit    time.Duration
	dir      string
	fleet    *fleet
	server   *local.Cluster
	child    *exec.Cmd
	api      string // HTTP side of the controller
	client   client.WithWatch
	previous map[string]float64
	printed  bool
}

func (b *bench) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "rutter-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	if b.fleet, err = newFleet(ctx, dir, b.apps); err != nil {
		return err
	}
	if err := b.bareLoop(ctx); err != nil {
		return fmt.Errorf("the limit: %w", err)
	}
	if err := b.start(ctx); err != nil {
		return err
	}
	defer b.stop()
	if err := b.first(ctx); err != nil {
		return err
	}
	for _, c := range []struct{ phase, file, content string }{
		{"change-one", "apps/app-0000/kustomization.yaml", "namePrefix: app-0000-\nresources: [../../base]\nreplicas: [{name: web, count: 2}]\n"},
		{"change-all", "base/all.yaml", strings.ReplaceAll(base, "web:1.0.0", "web:1.0.1")},
		{"no-change", "README.md", "changed\n"},
	} {
		if err := b.change(ctx, c.phase, c.file, c.content); err != nil {
			return fmt.Errorf("%s: %w", c.phase, err)
		}
	}
	return nil
}

// start starts a fresh API server and the controller.
func (b *bench) start(ctx context.Context) error {
	var err error
	if b.server, err = local.Start(ctx, local.Options{Name: "bench", Shape: local.Hub}); err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	rc, err := b.server.RESTConfig()
	if err != nil {
		return err
	}
	if err := daemon.Install(ctx, rc, "argocd"); err != nil {
		return err
	}
	if b.client, err = newClient(rc); err != nil {
		return err
	}
	b.child = exec.CommandContext(ctx, os.Args[0], "controller", b.server.Kubeconfig, filepath.Join(b.dir, "data"))
	b.child.Stderr = os.Stderr
	b.child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := b.child.StdoutPipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	if err := b.child.Start(); err != nil {
		return fmt.Errorf("start the controller: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the controller ended while starting: %w", err)
	}
	b.api = "http://" + strings.TrimSpace(line)
	return b.until(ctx, func() bool {
		resp, err := http.Get(b.api + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func newClient(rc *rest.Config) (client.WithWatch, error) { return daemon.NewClient(rc) }

func (b *bench) stop() {
	if b.child != nil {
		_ = b.child.Process.Signal(syscall.SIGTERM)
		_ = b.child.Wait()
	}
	if b.server != nil {
		_ = b.server.Stop(context.Background())
	}
}

// first creates the set and waits for its Applications and their first sync.
func (b *bench) first(ctx context.Context) error {
	if b.profile != "" {
		go b.saveProfile(ctx)
	}
	var set v1alpha1.ApplicationSet
	if err := yaml.Unmarshal([]byte(fmt.Sprintf(`
metadata: {name: bench, namespace: argocd}
spec:
  generators:
    - git: {repoURL: %[1]q, revision: main, directories: [{path: "apps/*"}]}
  template:
    metadata: {name: "{{path.basename}}"}
    spec:
      project: default
      source: {repoURL: %[1]q, targetRevision: main, path: "{{path}}"}
      destination: {server: "https://kubernetes.default.svc", namespace: default}
      syncPolicy: {automated: {prune: true, selfHeal: true}}
`, b.fleet.url())), &set); err != nil {
		return fmt.Errorf("read the set: %w", err)
	}
	w, err := b.client.Watch(ctx, &v1alpha1.ApplicationList{}, client.InNamespace("argocd"))
	if err != nil {
		return fmt.Errorf("watch Applications: %w", err)
	}
	defer w.Stop()
	began := b.mark()
	if err := b.client.Create(ctx, &set); err != nil {
		return fmt.Errorf("create the set: %w", err)
	}
	seen, synced := map[string]bool{}, map[string]bool{}
	reported := false
	for len(synced) < b.apps {
		select {
		case ev, ok := <-w.ResultChan():
			app, isApp := ev.Object.(*v1alpha1.Application)
			if !ok || !isApp {
				return fmt.Errorf("the watch of Applications ended: %v", ev.Object)
			}
			seen[app.Name] = true
			if app.Status.Sync.Status == "Synced" && app.Status.OperationState != nil && app.Status.OperationState.Phase == "Succeeded" {
				synced[app.Name] = true
			}
			if len(seen) == b.apps && !reported {
				reported = true
				b.report(ctx, "set-to-applications", time.Since(began), began)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	b.report(ctx, "first-sync", time.Since(began), began)
	return nil
}

// change pushes one file and waits until every unit has been compared with the
// new commit and is Synced.
func (b *bench) change(ctx context.Context, phase, file, content string) error {
	if err := b.settle(ctx); err != nil {
		return err
	}
	if err := b.fleet.write(file, content); err != nil {
		return err
	}
	commit, err := b.fleet.push(ctx, phase)
	if err != nil {
		return err
	}
	began := b.mark()
	body := fmt.Sprintf(`{"ref":"refs/heads/main","repository":{"clone_url":%q,"default_branch":"main"}}`, b.fleet.url())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.api+"/api/webhook", strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("build the webhook: %w", err)
	}
	req.Header.Set("X-GitHub-Event", "push")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("send the webhook: %w", err)
	}
	resp.Body.Close()
	err = b.until(ctx, func() bool {
		u, err := b.units(ctx)
		return err == nil && u.at(commit, phase == "change-one") >= u.needed(phase == "change-one", b.apps)
	})
	if err != nil {
		return err
	}
	b.report(ctx, phase, time.Since(began), began)
	return nil
}

// settle waits until the controller writes no more: what a phase leaves behind
// (statuses that only record a revision) is not the next one's.
func (b *bench) settle(ctx context.Context) error {
	var last float64
	for range 120 {
		_, cpu := usage(b.child.Process.Pid)
		if cpu-last < 0.02 && last > 0 {
			return nil
		}
		last = cpu
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

type units []struct {
	ID        string   `json:"id"`
	Sync      string   `json:"sync"`
	Revisions []string `json:"revisions"`
}

// at counts units that are Synced at a commit; with one, only that of app-0000.
func (u units) at(commit string, one bool) int {
	n := 0
	for _, x := range u {
		if x.Sync == "Synced" && len(x.Revisions) == 1 && x.Revisions[0] == commit && (!one || strings.HasSuffix(x.ID, "/app-0000")) {
			n++
		}
	}
	return n
}

func (u units) needed(one bool, apps int) int {
	if one {
		return 1
	}
	return apps
}

func (b *bench) units(ctx context.Context) (units, error) {
	data, err := b.get(ctx, "/api/v1/units")
	if err != nil {
		return nil, err
	}
	var out struct {
		Units units `json:"units"`
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("decode the units: %w", err)
	}
	return out.Units, nil
}

func (b *bench) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.api+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("build the request: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the controller: %w", err)
	}
	defer resp.Body.Close()
	var buf bytes.Buffer
	_, err = io.Copy(&buf, resp.Body)
	return buf.Bytes(), err
}

func (b *bench) saveProfile(ctx context.Context) {
	if data, err := b.get(ctx, "/debug/pprof/profile?seconds=10"); err == nil {
		_ = os.WriteFile(b.profile, data, 0o600)
	}
}

func (b *bench) until(ctx context.Context, ok func() bool) error {
	for !ok() {
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopped: %w", ctx.Err())
	}
}
