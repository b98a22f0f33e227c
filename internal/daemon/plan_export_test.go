package daemon_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/preview"
	"github.com/rutterhq/rutter/internal/testenv"
)

// TestExportClusters asks a real API server, and one that is not there.
func TestExportClusters(t *testing.T) {
	t.Parallel()
	env := testenv.Hub(t)
	namespace, rc := env.Namespace(t), env.RESTConfig()
	alive, err := cli.ClusterSecret(namespace, "alive", rc)
	if err != nil {
		t.Fatal(err)
	}
	alive.Labels["tier"] = "edge"
	dead := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "dead", Namespace: namespace, Labels: map[string]string{"argocd.argoproj.io/secret-type": "cluster"}},
		StringData: map[string]string{"name": "dead", "server": "https://127.0.0.1:1", "config": `{"bearerToken": "hunter2"}`},
	}
	for _, s := range []*corev1.Secret{alive, dead} {
		if _, err := env.Client(t).CoreV1().Secrets(namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	inv, err := daemon.ExportClusters(t.Context(), daemon.ExportConfig{REST: rc, Namespace: namespace, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(inv)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter2", "bearerToken", "certData", "keyData", "BEGIN"} {
		if strings.Contains(string(data), secret) {
			t.Errorf("the inventory holds %s", secret)
		}
	}
	byName := map[string]preview.ClusterFacts{}
	for _, c := range inv.Clusters {
		byName[c.Name] = c
	}
	a := byName["alive"]
	if a.Server != strings.TrimRight(rc.Host, "/") || !strings.HasPrefix(a.Version, "v1.") || a.Labels["tier"] != "edge" || len(a.Labels) != 1 || a.Unreachable != "" {
		t.Errorf("alive: %+v", a)
	}
	if !strings.Contains(strings.Join(a.APIVersions, " "), "rbac.authorization.k8s.io/v1/ClusterRole") {
		t.Errorf("alive serves %v", a.APIVersions)
	}
	// The table of Kubernetes' own kinds is complete: the server knows of no others but of CRDs.
	for _, kind := range a.ClusterScoped {
		if group, _, _ := strings.Cut(kind, "/"); group == "" || strings.HasSuffix(group, ".k8s.io") || !strings.Contains(group, ".") {
			t.Errorf("%s has no namespace, and preview.Namespaced does not know", kind)
		}
	}
	if d := byName["dead"]; d.Unreachable == "" || d.Version != "" {
		t.Errorf("dead: %+v", d)
	}
	if local := byName["in-cluster"]; local.Server != "https://kubernetes.default.svc" || local.Version == "" {
		t.Errorf("in-cluster: %+v", local)
	}
	if _, err := preview.ParseInventory(data, "exported"); err != nil {
		t.Errorf("what is written cannot be read: %v", err)
	}
}

// liveOnly makes a set that no file declares: what the repository changes also changes its
// Applications too, and a set that reads another repository is nobody's concern.
func liveOnly(t *testing.T, c client.Client, namespace string, clone *planClone, live func(*daemon.PlanConfig)) {
	t.Helper()
	for name, url := range map[string]string{"by-hand": "https://git.example.com/org/fleet", "of-others": "https://git.example.com/org/else"} {
		text := strings.NewReplacer("NAME", name, "ADDRESS", url).Replace(`
metadata: {name: NAME}
spec:
  goTemplate: true
  generators: [{list: {elements: [{name: one}, {name: two}]}}]
  template:
    metadata: {name: 'NAME-{{.name}}'}
    spec:
      project: default
      source: {repoURL: ADDRESS, targetRevision: main, path: charts/web}
      destination: {name: alive, namespace: 'NAME-{{.name}}'}
`)
		set := &v1alpha1.ApplicationSet{}
		if err := yaml.UnmarshalStrict([]byte(text), set); err != nil {
			t.Fatal(err)
		}
		set.Namespace = namespace
		if err := c.Create(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	p := clone.plan(live)
	text := preview.Text(p, preview.TextOptions{Width: 400})
	if p.Summary.Applications.Change != 3 || len(p.Objects) != 3 || p.Summary.Errors != 0 || p.Summary.Sets != (preview.Counts{}) ||
		!strings.Contains(text, "taken from the control plane because they read this repository: sets by-hand.") {
		t.Errorf("the set of the control plane is not followed:\n%s", text)
	}
}

// TestPlanLive takes clusters and projects from a control plane.
func TestPlanLive(t *testing.T) {
	t.Parallel()
	env := testenv.Hub(t)
	namespace, rc := env.Namespace(t), env.RESTConfig()
	if err := daemon.Install(t.Context(), rc, namespace); err != nil {
		t.Fatal(err)
	}
	alive, err := cli.ClusterSecret(namespace, "alive", rc)
	if err != nil {
		t.Fatal(err)
	}
	alive.Labels["tier"] = "edge"
	c, err := daemon.NewClient(rc)
	if err != nil {
		t.Fatal(err)
	}
	project := &v1alpha1.AppProject{ObjectMeta: metav1.ObjectMeta{Name: "strict", Namespace: namespace}, Spec: v1alpha1.AppProjectSpec{SourceRepos: []string{"https://elsewhere.example.com/*"}}}
	for _, o := range []client.Object{alive, project} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	files := planFleet()
	set := strings.ReplaceAll(files["clusters/edge.yaml"], ", namespace: argocd", "")
	clone := newPlanClone(t, map[string]string{
		"set.yaml": strings.ReplaceAll(set, "project: team", "project: default"), "charts/web/Chart.yaml": files["charts/web/Chart.yaml"],
		"charts/web/values.yaml": files["charts/web/values.yaml"], "charts/web/templates/deployment.yaml": files["charts/web/templates/deployment.yaml"],
	})
	clone.commit(map[string]string{"charts/web/values.yaml": "replicas: 7\nimage: x\n"})
	live := func(cfg *daemon.PlanConfig) {
		cfg.REST, cfg.Inventory, cfg.Namespace, cfg.Offline = rc, nil, namespace, false
	}
	p := clone.plan(live)
	if len(p.Objects) != 1 || p.Objects[0].Cluster != "alive" || p.Summary.Errors != 0 {
		t.Errorf("got\n%s", preview.Text(p, preview.TextOptions{}))
	}
	liveOnly(t, c, namespace, clone, live)
	clone.commit(map[string]string{"set.yaml": strings.ReplaceAll(set, "project: team", "project: strict")})
	if p = clone.plan(live); p.Summary.Refused == 0 || !strings.Contains(preview.Text(p, preview.TextOptions{Width: 400}), "not permitted in project strict") {
		t.Errorf("the control plane's project refuses nothing:\n%s", preview.Text(p, preview.TextOptions{}))
	}
}
