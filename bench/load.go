package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// payload is the content of a ConfigMap or a Secret of 4 KB, another for each seed.
func payload(seed string) string {
	random := rand.NewChaCha8(sha256.Sum256([]byte(seed)))
	raw := make([]byte, 3<<10)
	_, _ = io.ReadFull(random, raw) // never ends
	return base64.StdEncoding.EncodeToString(raw)
}

// mixed are n objects of four kinds in turn: what an application holds, with the
// ConfigMaps and the Secrets of 4 KB.
func mixed(app string, n int) string {
	var b strings.Builder
	for i := range n {
		name := fmt.Sprintf("%s-%04d", app, i)
		fmt.Fprintf(&b, mixedKinds[i%len(mixedKinds)], name, payload(name))
	}
	return b.String()
}

var mixedKinds = []string{
	"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %[1]s}\ndata: {level: info, content: %[2]s}\n",
	"---\napiVersion: v1\nkind: Secret\nmetadata: {name: %[1]s}\nstringData: {level: info}\ndata: {content: %[2]s}\n",
	"---\napiVersion: v1\nkind: Service\nmetadata: {name: %[1]s}\nspec: {selector: {app: %[1]s}, ports: [{name: http, port: 80}]}\n",
	`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - name: web
        image: registry.example.com/web:1.0.0
        env: [{name: LOG_LEVEL, value: info}]
        resources: {requests: {cpu: 100m, memory: 64Mi}}
`,
}

// newLoad makes a repository of applications by their number of objects.
func newLoad(ctx context.Context, root string, apps map[string]int) (*fleet, error) {
	files := map[string]string{"README.md": "a load\n"}
	for app, n := range apps {
		files["apps/"+app+"/all.yaml"] = mixed(app, n)
	}
	return newRepository(ctx, root, files)
}

// inFolder runs in a folder of its own, and stops everything at the end.
func (b *bench) inFolder(ctx context.Context, run func(context.Context) error) error {
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
	defer b.stop(ctx)
	return run(ctx)
}

// restart ends the controller, if there is one, and starts a fresh one, which
// knows nothing but what it finds.
func (b *bench) restart(ctx context.Context) error {
	if b.child != nil {
		b.child.stop()
	}
	var err error
	b.child, err = startController(ctx, b.server.Kubeconfig, filepath.Join(b.dir, "data"))
	return err
}

// declareAll creates Applications of the load, with or without self-heal, and
// waits until all are Synced and the controller rests.
func (b *bench) declareAll(ctx context.Context, names []string, heals func(name string) bool) error {
	commit, err := b.fleet.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	for _, name := range names {
		app := b.fleet.application(name)
		if err := unstructured.SetNestedField(app.Object, heals(name), "spec", "syncPolicy", "automated", "selfHeal"); err != nil {
			return fmt.Errorf("declare Application %s: %w", name, err)
		}
		if err := b.client.Create(ctx, app, client.FieldOwner("bench")); err != nil {
			return fmt.Errorf("create Application %s: %w", name, err)
		}
	}
	if err := b.seen.await(ctx, b.child, names, func(s seen) bool { return s.syncedAt(commit) }); err != nil {
		return err
	}
	return b.rest(ctx)
}
