package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// fleet is a repository of overlays of one base.
type fleet struct {
	dir  string // the working copy
	bare string
}

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
          image: registry.example.com/web:1.0.0
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
	f := &fleet{dir: filepath.Join(root, "fleet"), bare: filepath.Join(root, "fleet.git")}
	files := map[string]string{"base/all.yaml": base, "base/kustomization.yaml": "resources: [all.yaml]\n", "README.md": "a fleet\n"}
	for i := range n {
		files[fmt.Sprintf("apps/app-%04d/kustomization.yaml", i)] = fmt.Sprintf("namePrefix: app-%04d-\nresources: [../../base]\n", i)
	}
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

// usage reads a process's resident memory in MB and its processor time in seconds.
func usage(pid int) (rssMB, cpu float64) {
	if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)); err == nil {
		if fields := strings.Fields(string(data)); len(fields) > 1 {
			pages, _ := strconv.ParseFloat(fields[1], 64)
			rssMB = pages * float64(os.Getpagesize()) / (1 << 20)
		}
	}
	if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, rest, _ := strings.Cut(string(data), ") ")
		if fields := strings.Fields(rest); len(fields) > 12 {
			user, _ := strconv.ParseFloat(fields[11], 64)
			system, _ := strconv.ParseFloat(fields[12], 64)
			cpu = (user + system) / 100 // clock ticks are hundredths of a second on Linux
		}
	}
	return rssMB, cpu
}
