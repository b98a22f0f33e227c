package helm_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// sharedChart is a chart of the usual size: helpers, a deployment with all its
// knobs, a sub-chart, a schema.
func sharedChart() map[string]string {
	files := map[string]string{
		"chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: db, version: 1.x, condition: db.enabled}]\n",
		"chart/templates/_helpers.tpl": `{{- define "web.name" -}}{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}{{- end }}
{{- define "web.fullname" -}}{{ printf "%s-%s" .Release.Name (include "web.name" .) | trunc 63 | trimSuffix "-" }}{{- end }}
{{- define "web.labels" -}}
app.kubernetes.io/name: {{ include "web.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}`,
		"chart/values.schema.json":   `{"type":"object","properties":{"replicas":{"type":"integer"},"image":{"type":"object"}}}`,
		"chart/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "chart/charts/db/values.yaml": "size: 1Gi\n",
		"chart/charts/db/templates/pvc.yaml": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: {{ .Release.Name }}-db}\nspec: {resources: {requests: {storage: {{ .Values.size }}}}}\n",
	}
	values := "replicas: 1\nimage: {repository: nginx, tag: '1.27'}\nresources: {limits: {cpu: 100m, memory: 128Mi}}\ndb: {enabled: true}\nenv:\n"
	for i := range 40 {
		values += fmt.Sprintf("- {name: VAR_%d, value: 'some value %d'}\n", i, i)
	}
	files["chart/values.yaml"] = values
	for i := range 12 {
		files[fmt.Sprintf("chart/templates/deployment-%d.yaml", i)] = strings.ReplaceAll(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "web.fullname" . }}-N
  labels: {{- include "web.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ include "web.name" . }}}}
  template:
    metadata: {labels: {app: {{ include "web.name" . }}}}
    spec:
      containers:
      - name: main
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
        env:
        {{- range .Values.env }}
        - name: {{ .name }}
          value: {{ tpl .value $ | quote }}
        {{- end }}
        resources: {{- toYaml .Values.resources | nindent 10 }}
        {{- with .Values.nodeSelector }}
        nodeSelector: {{- toYaml . | nindent 10 }}
        {{- end }}
`, "N", fmt.Sprint(i))
	}
	return files
}

// BenchmarkSharedChart renders one chart for many applications, each with its
// own name and image.
func BenchmarkSharedChart(b *testing.B) {
	snap := rendertest.Snapshot(sharedChart())
	one := func(b *testing.B, r *helm.Renderer, i int) {
		b.Helper()
		in := helm.Input{Repo: record.New(b.Context(), snap, record.Options{}), Path: "chart", AppName: fmt.Sprintf("app-%d", i), Namespace: "default", KubeVersion: "v1.37.2",
			Env:     buildenv.New(rutter.RenderRequest{Snapshot: snap}),
			Options: rutter.HelmOptions{Parameters: []rutter.HelmParameter{{Name: "image.tag", Value: fmt.Sprint(i)}}}}
		objs, _, err := r.Render(b.Context(), in)
		if err != nil || len(objs) != 13 {
			b.Fatalf("%d objects, %v", len(objs), err)
		}
	}
	b.Run("each parses it", func(b *testing.B) {
		defer reportCPU(b)()
		for i := range b.N {
			one(b, helm.New(helm.Limits{}), i)
		}
	})
	b.Run("parsed once", func(b *testing.B) {
		r := helm.New(helm.Limits{})
		defer reportCPU(b)()
		for i := range b.N {
			one(b, r, i)
		}
	})
}

// reportCPU reports what an iteration costs on a machine that others use, too.
func reportCPU(b *testing.B) func() {
	b.Helper()
	start := cpu(b)
	return func() { b.ReportMetric(float64((cpu(b)-start).Microseconds())/float64(b.N), "cpu-µs/op") }
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
