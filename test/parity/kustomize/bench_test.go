package kustomizeparity

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/osdir"
	"github.com/rutterhq/rutter/internal/render/record"
)

// base is an application of six objects, with the generated ConfigMap.
const base = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      containers:
      - name: web
        image: nginx:1.0
        ports: [{containerPort: 80}]
        envFrom: [{configMapRef: {name: settings}}]
        resources: {limits: {memory: 100Mi}, requests: {cpu: 50m}}
        readinessProbe: {httpGet: {path: /, port: 80}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {rules: [{host: example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 3}
`

// monorepo writes n overlays on one base.
func monorepo(b *testing.B, n int) string {
	b.Helper()
	files := map[string]string{
		"base/kustomization.yaml": "resources: [all.yaml]\nconfigMapGenerator: [{name: settings, literals: [a=b]}]\nlabels: [{pairs: {shop: main}}]\n",
		"base/all.yaml":           base,
	}
	for i := range n {
		files[fmt.Sprintf("apps/a%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../../base]\nnamespace: team-%d\nimages: [{name: nginx, newTag: \"1.%d\"}]\n"+
			"patches: [{patch: \"- {op: add, path: /spec/replicas, value: %d}\", target: {kind: Deployment}}]\n", i, i, i)
	}
	root := b.TempDir()
	for name, text := range files {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return root
}

// cpu is the processor time that this process, or its children, have used.
func cpu(b *testing.B, who int) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}

// BenchmarkFirstPass compares the first rendering of many overlays on one base
// with running the program once for each. Processor time is shown too, because
// other work on the machine does not change it.
func BenchmarkFirstPass(b *testing.B) {
	const n = 500
	root := monorepo(b, n)
	b.Run("rutter", func(b *testing.B) {
		snap, err := osdir.Open(root)
		if err != nil {
			b.Fatal(err)
		}
		defer snap.Close()
		r := kustomize.New()
		before, i := cpu(b, syscall.RUSAGE_SELF), 0
		for b.Loop() {
			_, _, err := r.Render(b.Context(), kustomize.Input{Repo: record.New(b.Context(), snap, record.Options{}), Path: fmt.Sprintf("apps/a%d", i%n),
				Env: buildenv.New(rutter.RenderRequest{Snapshot: snap})})
			if err != nil {
				b.Fatal(err)
			}
			i++
		}
		b.ReportMetric((cpu(b, syscall.RUSAGE_SELF)-before)/float64(i), "cpu-ms/op")
	})
	b.Run("process", func(b *testing.B) {
		k := tool{bin: kustomizeBinary(b)}
		before, i := cpu(b, syscall.RUSAGE_CHILDREN), 0
		for b.Loop() {
			if _, err := k.run(root, "build", fmt.Sprintf("apps/a%d", i%n)); err != nil {
				b.Fatal(err)
			}
			i++
		}
		b.ReportMetric((cpu(b, syscall.RUSAGE_CHILDREN)-before)/float64(i), "cpu-ms/op")
	})
}
