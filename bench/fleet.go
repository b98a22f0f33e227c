package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// fleet is a repository of overlays of one base.
type fleet struct {
	dir  string // the working copy
	bare string
}

// The versions of the image in the base, before and after the push that changes all.
const (
	firstVersion  = "1.0.0"
	secondVersion = "1.0.1"
)

func baseOf(version string) string { return strings.ReplaceAll(base, "VERSION", version) }

func appName(i int) string { return fmt.Sprintf("app-%04d", i) }

// overlay is one application's own part.
func overlay(app, more string) string {
	return fmt.Sprintf("namePrefix: %s-\nresources: [../../base]\n%s", app, more)
}

func overlayFile(i int) string { return "apps/" + appName(i) + "/kustomization.yaml" }

const base = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: web
          image: registry.example.com/web:VERSION
          env:
            - {name: LOG_LEVEL, value: info}
          resources:
            requests: {cpu: 100m, memory: 64Mi}
---
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  selector: {app: web}
  ports:
    - {name: http, port: 80}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
data:
  level: info
`

// newFleet makes n overlays and the first commit.
func newFleet(ctx context.Context, root string, n int) (*fleet, error) {
	files := map[string]string{"base/all.yaml": baseOf(firstVersion), "base/kustomization.yaml": "resources: [all.yaml]\n", "README.md": "a fleet\n"}
	for i := range n {
		files[overlayFile(i)] = overlay(appName(i), "")
	}
	return newRepository(ctx, root, files)
}

// newRepository makes a repository with one commit of these files.
func newRepository(ctx context.Context, root string, files map[string]string) (*fleet, error) {
	f := &fleet{dir: filepath.Join(root, "fleet"), bare: filepath.Join(root, "fleet.git")}
	for name, content := range files {
		if err := f.write(name, content); err != nil {
			return nil, err
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main", "."}, {"add", "-A"}, {"commit", "-q", "-m", "first"}, {"clone", "-q", "--bare", ".", f.bare}, {"remote", "add", "origin", f.bare}} {
		if _, err := f.git(ctx, args...); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *fleet) url() string { return "file://" + f.bare }

func (f *fleet) write(name, content string) error {
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// push commits what was written and returns the commit.
func (f *fleet) push(ctx context.Context, message string) (string, error) {
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", message}, {"push", "-q", "origin", "main"}} {
		if _, err := f.git(ctx, args...); err != nil {
			return "", err
		}
	}
	return f.git(ctx, "rev-parse", "HEAD")
}

func (f *fleet) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=bench", "GIT_AUTHOR_EMAIL=b@localhost", "GIT_COMMITTER_NAME=bench", "GIT_COMMITTER_EMAIL=b@localhost", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
