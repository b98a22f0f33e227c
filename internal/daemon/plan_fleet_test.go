package daemon_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/preview"
	"github.com/rutterhq/rutter/internal/render"
)

// TestMain is also the child that evaluates programs of a repository.
func TestMain(m *testing.M) {
	render.MaybeChild()
	os.Exit(m.Run())
}

const fleetURL = "https://git.example.com/org/fleet.git"

// planFleet is a small fleet: two sets (one of charts on clusters, one of
// kustomize folders), an Application of Applications, and a project.
func planFleet() map[string]string {
	files := map[string]string{
		"README.md": "a fleet\n",
		"clusters/projects.yaml": `apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: team, namespace: argocd}
spec:
  sourceRepos: ['https://git.example.com/org/*', 'git@git.example.com:org/*']
  destinations: [{server: '*', namespace: 'team-*'}, {server: 'https://kubernetes.default.svc', namespace: argocd}]
  clusterResourceWhitelist: [{group: '', kind: Namespace}]
`,
		"clusters/edge.yaml": `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: edge, namespace: argocd}
spec:
  goTemplate: true
  generators: [{clusters: {selector: {matchLabels: {tier: edge}}}}]
  template:
    metadata: {name: 'edge-{{.name}}'}
    spec:
      project: team
      source: {repoURL: 'https://git.example.com/org/fleet', targetRevision: main, path: charts/web, helm: {valuesObject: {cluster: '{{.name}}'}}}
      destination: {server: '{{.server}}', namespace: team-web}
      syncPolicy: {automated: {prune: true}}
`,
		"clusters/apps.yaml": `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: apps, namespace: argocd}
spec:
  goTemplate: true
  generators: [{git: {repoURL: 'https://git.example.com/org/fleet', revision: HEAD, directories: [{path: 'apps/*'}]}}]
  template:
    metadata: {name: '{{.path.basename}}'}
    spec:
      project: team
      source: {repoURL: 'git@git.example.com:org/fleet.git', targetRevision: main, path: '{{.path.path}}'}
      destination: {name: prod-1, namespace: team-apps}
      syncPolicy: {automated: {prune: true}}
`,
		"clusters/root.yaml": `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: root, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}
spec:
  project: team
  source: {repoURL: 'https://git.example.com/org/fleet', path: platform}
  destination: {server: 'https://kubernetes.default.svc', namespace: argocd}
  syncPolicy: {automated: {prune: true}}
`,
		"platform/kustomization.yaml": "resources: [monitoring.yaml, ingress.yaml]\ncommonAnnotations: {team: platform}\n",
		"platform/monitoring.yaml":    childApp("monitoring"),
		"platform/ingress.yaml":       childApp("ingress"),
		"system/monitoring/all.yaml":  "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-monitoring}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: hunter2}\n",
		"system/ingress/all.yaml":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ingress}\ndata: {mode: a}\n",
		"charts/web/Chart.yaml":       "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"charts/web/values.yaml":      "replicas: 2\nimage: registry.example.com/web:1.0.0\n",
		"charts/web/templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "{{ .Values.image }}", env: [{name: CLUSTER, value: "{{ .Values.cluster }}"}]}]
`,
		"bases/app/kustomization.yaml": "resources: [all.yaml]\n",
		"bases/app/all.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replicas: 1
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      containers: [{name: app, image: "registry.example.com/app:1.0.0"}]
---
apiVersion: v1
kind: Service
metadata: {name: app}
spec: {selector: {app: app}, ports: [{port: 80}]}
`,
	}
	for i := range 8 {
		maps.Copy(files, overlayFiles(i))
	}
	return files
}

func overlayFiles(i int) map[string]string {
	return map[string]string{fmt.Sprintf("apps/shop-%d/kustomization.yaml", i): fmt.Sprintf("namePrefix: shop-%d-\nresources: [../../bases/app]\n", i)}
}

func childApp(name string) string {
	return strings.ReplaceAll(`apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: NAME, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}
spec:
  project: team
  source: {repoURL: 'https://git.example.com/org/fleet', path: system/NAME}
  destination: {name: prod-1, namespace: team-NAME}
  syncPolicy: {automated: {prune: true}}
`, "NAME", name)
}

func planInventory() *preview.Inventory {
	return &preview.Inventory{Clusters: []preview.ClusterFacts{
		{Name: "edge-1", Server: "https://edge-1:6443", Labels: map[string]string{"tier": "edge"}, Version: "v1.36.0"},
		{Name: "edge-2", Server: "https://edge-2:6443", Labels: map[string]string{"tier": "edge"}, Version: "v1.37.0"},
		{Name: "prod-1", Server: "https://prod-1:6443", Labels: map[string]string{"tier": "prod"}, Version: "v1.37.0"},
	}}
}

// planClone is a clone with commits.
type planClone struct {
	t   *testing.T
	dir string
	// cache is kept between the plans of one clone.
	cache string
}

func newPlanClone(t *testing.T, files map[string]string) *planClone {
	t.Helper()
	c := &planClone{t: t, dir: t.TempDir(), cache: t.TempDir()}
	c.git("init", "-q", "-b", "main", ".")
	c.git("remote", "add", "origin", fleetURL)
	c.commit(files)
	c.git("checkout", "-q", "-b", "change")
	return c
}

// commit writes files (an empty content removes one) and commits.
func (c *planClone) commit(files map[string]string) {
	c.t.Helper()
	c.write(files)
	c.git("add", "-A")
	c.git("commit", "-q", "--allow-empty", "-m", "change")
}

func (c *planClone) write(files map[string]string) {
	c.t.Helper()
	for name, content := range files {
		file := filepath.Join(c.dir, name)
		if content == "" {
			if err := os.Remove(file); err != nil {
				c.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			c.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *planClone) git(args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "git", args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@localhost", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@localhost",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("git %s: %v: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}

func (c *planClone) config() daemon.PlanConfig {
	return daemon.PlanConfig{Repo: c.dir, Base: "main", Head: "HEAD", URLs: []string{fleetURL}, Namespace: "argocd", Inventory: planInventory(),
		KubeVersion: "v1.37.0", Offline: true, CacheDir: c.cache}
}

func (c *planClone) plan(edit func(*daemon.PlanConfig)) preview.Plan {
	c.t.Helper()
	cfg := c.config()
	if edit != nil {
		edit(&cfg)
	}
	p, err := daemon.Plan(c.t.Context(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// replace changes a text that must be there.
func replace(in, old, now string) string {
	if !strings.Contains(in, old) {
		panic("the fixture has no " + old)
	}
	return strings.ReplaceAll(in, old, now)
}

// empty is a commit without any file.
func (c *planClone) empty() string {
	c.t.Helper()
	tree := c.git("hash-object", "-t", "tree", "-w", "/dev/null")
	return c.git("commit-tree", "-m", "empty", tree)
}
