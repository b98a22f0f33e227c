package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// monoAPIs is as long a list of what a cluster serves as a real one's.
var monoAPIs = func() []string {
	var out []string
	for i := range 400 {
		out = append(out, fmt.Sprintf("group%d.example.com/v1", i), fmt.Sprintf("group%d.example.com/v1/Kind%d", i, i))
	}
	return out
}()

func monoBase(n int) string { return fmt.Sprintf("bases/b%03d", n) }

func monoOverlay(i int) string { return "apps/" + appName(i) + "/kustomization.yaml" }

func monoValues(i int) string { return "values/" + appName(i) + ".yaml" }

func overlayOf(i, replicas int) string {
	return fmt.Sprintf("namePrefix: %s-\nresources: [../../%s]\nreplicas: [{name: web, count: %d}]\nlabels:\n- pairs: {app.kubernetes.io/instance: %s}\n  includeSelectors: true\n",
		appName(i), monoBase(i/perBase), replicas, appName(i))
}

// monoSources are the two sources of an application.
func monoSources(i int) []rutter.Source {
	return []rutter.Source{
		{Path: filepath.Dir(monoOverlay(i))},
		{Path: "charts/web", Helm: &rutter.HelmOptions{ValueFiles: []string{"/" + monoValues(i)}, Parameters: []rutter.HelmParameter{{Name: "team", Value: "web"}}}},
	}
}

// chart is the shared chart: what most charts have, helpers included.
var chart = map[string]string{
	"charts/web/Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.0.0\nappVersion: '1.2'\n",
	"charts/web/values.yaml": "team: none\nreplicas: 1\nimage: {repository: registry.example.com/worker, tag: 1.0.0}\nenv: {LOG_LEVEL: info}\nservice: {port: 80}\nresources: {requests: {cpu: 100m, memory: 64Mi}}\n",
	"charts/web/templates/_helpers.tpl": `{{- define "web.name" -}}{{ .Release.Name | trunc 63 | trimSuffix "-" }}-worker{{- end }}
{{- define "web.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
team: {{ .Values.team }}
{{- end }}
`,
	"charts/web/templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "web.name" . }}
  labels: {{- include "web.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: {{- include "web.labels" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "web.labels" . | nindent 8 }}
      annotations:
        checksum/config: {{ include (print $.Template.BasePath "/config.yaml") . | sha256sum }}
    spec:
      containers:
      - name: worker
        image: {{ printf "%s:%s" .Values.image.repository .Values.image.tag }}
        env:
        {{- range $k, $v := .Values.env }}
        - {name: {{ $k }}, value: {{ $v | quote }}}
        {{- end }}
        resources: {{- toYaml .Values.resources | nindent 10 }}
`,
	"charts/web/templates/service.yaml": `apiVersion: v1
kind: Service
metadata:
  name: {{ include "web.name" . }}
  labels: {{- include "web.labels" . | nindent 4 }}
spec:
  selector: {{- include "web.labels" . | nindent 4 }}
  ports: [{name: http, port: {{ .Values.service.port }}}]
`,
	"charts/web/templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "web.name" . }}
data:
  {{- range $k, $v := .Values.env }}
  {{ $k }}: {{ $v | quote }}
  {{- end }}
`,
}

// newMonorepo makes a repository of n applications and its first commit.
func newMonorepo(ctx context.Context, root string, n int) (*fleet, error) {
	files := map[string]string{"README.md": "a monorepo\n"}
	maps.Copy(files, chart)
	for i := range n {
		files[monoOverlay(i)] = overlayOf(i, 1)
		files[monoValues(i)] = fmt.Sprintf("image: {tag: 1.%d.0}\nenv: {APP: %s}\n", i%7, appName(i))
		b := monoBase(i / perBase)
		files[b+"/kustomization.yaml"] = "resources: [all.yaml]\n"
		files[b+"/all.yaml"] = baseOf(firstVersion)
	}
	return newRepository(ctx, root, files)
}

// tools are the programs that rendering is compared with.
type tools struct{ kustomize, helm string }

// findTools looks where `make bench` has built them.
func findTools() (tools, error) {
	t := tools{kustomize: filepath.Join("bin", "tools", "kustomize"), helm: filepath.Join("bin", "tools", "helm")}
	for _, p := range []string{t.kustomize, t.helm} {
		if _, err := os.Stat(p); err != nil {
			return t, fmt.Errorf("%w: run it by 'make bench PHASES=render', which builds the tools that it compares with", err)
		}
	}
	var err error
	if t.kustomize, err = filepath.Abs(t.kustomize); err == nil {
		t.helm, err = filepath.Abs(t.helm)
	}
	if err != nil {
		return t, fmt.Errorf("find the tools: %w", err)
	}
	return t, nil
}

// render runs both tools for application i.
func (t tools) render(ctx context.Context, dir string, i int) error {
	src := monoSources(i)[1]
	for _, c := range []*exec.Cmd{
		exec.CommandContext(ctx, t.kustomize, "build", filepath.Dir(monoOverlay(i))),
		exec.CommandContext(ctx, t.helm, "template", appName(i), src.Path, "-f", monoValues(i), "--set", "team=web", "-n", appName(i), "--kube-version", "v1.37.2"),
	} {
		var stderr bytes.Buffer
		c.Dir, c.Stderr = dir, &stderr
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w: %s", filepath.Base(c.Path), err, stderr.String())
		}
	}
	return nil
}

// parallel returns by how much running as many at a time as there are
// processors shortens the sample, measured: the comparison is with the best way.
func (t tools) parallel(ctx context.Context, dir string, sample int, alone time.Duration) float64 {
	work := make(chan int, sample)
	for i := range sample {
		work <- i
	}
	close(work)
	errs := make([]error, runtime.GOMAXPROCS(0))
	began := time.Now()
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for i := range work {
				errs[w] = errors.Join(errs[w], t.render(ctx, dir, i))
			}
		})
	}
	wg.Wait()
	if errors.Join(errs...) != nil {
		return 1
	}
	return max(1, alone.Seconds()/time.Since(began).Seconds())
}
