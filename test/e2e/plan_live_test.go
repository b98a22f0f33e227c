package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/preview"
)

func livePlan(t *testing.T, w *world, r *repo, base, head string) preview.Plan {
	t.Helper()
	plan, err := daemon.Plan(t.Context(), daemon.PlanConfig{Repo: r.clone, Base: base, Head: head, URLs: []string{r.url}, Namespace: controlNamespace,
		REST: w.hub.rest, KubeVersion: "v1.37.0", CacheDir: filepath.Join(t.TempDir(), "plan")})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// planCommand runs rutter plan as a person at the control plane does.
func planCommand(t *testing.T, w *world, args ...string) (code int, out string) {
	t.Helper()
	var said bytes.Buffer
	deps := cli.Deps{Plan: func(ctx context.Context, o cli.PlanOptions) (cli.FleetPlan, error) {
		return daemon.Plan(ctx, daemon.PlanConfig{Repo: o.Repo, Base: o.Base, Head: o.Head, URLs: o.URLs, Namespace: o.Namespace, REST: o.REST,
			KubeVersion: o.KubeVersion, CacheDir: o.CacheDir})
	}}
	args = append([]string{"plan", "-n", controlNamespace, "--kubeconfig", writeKubeconfig(t, w.hub.rest), "--cache-dir", filepath.Join(t.TempDir(), "plan")}, args...)
	code = cli.Main(t.Context(), args, strings.NewReader(""), &said, &said, "test", deps)
	return code, said.String()
}

// TestPlanIsApprovedBeforeTheMerge: what a plan says that the budget will hold
// has the digest that the controller gives it after the merge, so that it can be
// approved before, by the digest of the plan and no other; and nothing else goes.
func TestPlanIsApprovedBeforeTheMerge(t *testing.T) {
	t.Parallel()
	w := start(t)
	ns, set := w.alpha.namespace(t, "approved"), unique("approved")
	files := tree{}
	for i := range 8 {
		files[fmt.Sprintf("apps/a%d/c.yaml", i)] = configMap(fmt.Sprintf("c%d", i), "1")
	}
	r := w.repo(t, "approved", files)
	v := vars{"REPO": r.url, "NS": ns, "SET": set, "STEP": ""}
	r.push(t, tree{"declared/set.yaml": v.expand(plannedSet)})
	w.create(t, plannedSet, v)
	for i := range 8 {
		w.awaitSynced(t, fmt.Sprintf("%s-a%d", set, i), "")
	}
	base := strings.TrimSpace(r.git(t, "rev-parse", "HEAD"))
	fewer := tree{}
	for i := range 5 {
		fewer[fmt.Sprintf("apps/a%d/c.yaml", i)] = ""
	}
	head := strings.TrimSpace(r.commit(t, fewer))
	plan := livePlan(t, w, r, base, head)
	if len(plan.Held) != 1 || len(plan.Held[0].Applications) != 5 || plan.Held[0].Digest == "" || !plan.Blocked() {
		t.Fatalf("the plan:\n%s", preview.Text(plan, preview.TextOptions{}))
	}
	approve := func(digest string) (int, string) {
		return planCommand(t, w, "--repo", r.clone, "--base", base, "--head", head, "--url", r.url, "--live", "--approve", digest)
	}
	approval := func() string {
		return get(t, w.hub, controlNamespace, set, &v1alpha1.ApplicationSet{}).Annotations[generate.AnnotationApprove]
	}
	if code, said := approve("sha256:another"); code != cli.ExitBlocked || !strings.Contains(said, "nothing was approved") || approval() != "" {
		t.Errorf("another digest: exit code %d, the set is approved for %q:\n%s", code, approval(), said)
	}
	if code, said := approve(plan.Digest); code != 0 || !strings.Contains(said, "exactly these 5 Applications") || approval() != plan.Held[0].Digest {
		t.Fatalf("its digest: exit code %d, the set is approved for %q:\n%s", code, approval(), said)
	}
	pushed(t, r.addr, r.url)
	for i := range 5 {
		w.awaitGone(t, fmt.Sprintf("%s-a%d", set, i))
	}
	if n := countApps(t, w, set); n != 3 {
		t.Errorf("%d Applications are left, wanted 3", n)
	}
}

// TestPlanOfWhatIsNotAsked: a plan asks no service; it shows a set with what the
// controller heard last, and concludes nothing from what it has not heard.
func TestPlanOfWhatIsNotAsked(t *testing.T) {
	t.Parallel()
	w := start(t)
	ns, set := w.alpha.namespace(t, "unasked"), unique("unasked")
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"output":{"parameters":[{"app":"one"},{"app":"two"}]}}`)
	}))
	t.Cleanup(service.Close)
	r := w.repo(t, "unasked", tree{"apps/one/c.yaml": configMap("one", "1"), "apps/two/c.yaml": configMap("two", "1")})
	v := vars{"REPO": r.url, "NS": ns, "SET": set, "URL": service.URL}
	w.create(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${SET}', namespace: argocd}\ndata: {baseUrl: '${URL}'}\n", v)
	declared := `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: '${SET}', namespace: argocd}
spec:
  goTemplate: true
  generators: [{plugin: {configMapRef: {name: '${SET}'}}}]
  template:
    metadata: {name: '${SET}-{{.app}}'}
    spec:
      project: default
      source: {repoURL: '${REPO}', targetRevision: main, path: 'apps/{{.app}}'}
      destination: {name: alpha, namespace: '${NS}'}
      syncPolicy: {automated: {}}
`
	r.push(t, tree{"declared/set.yaml": v.expand(declared)})
	w.create(t, declared, v)
	w.awaitSynced(t, set+"-one", "")
	w.awaitSynced(t, set+"-two", "")
	base := strings.TrimSpace(r.git(t, "rev-parse", "HEAD"))
	head := strings.TrimSpace(r.commit(t, tree{"declared/set.yaml": v.expand(strings.Replace(declared, "spec:\n      project", "spec:\n      info: [{name: team, value: a}]\n      project", 1))}))
	plan := livePlan(t, w, r, base, head)
	text := preview.Text(plan, preview.TextOptions{Width: 300})
	if plan.Summary.Applications.Change != 2 || plan.Summary.Errors > 0 || !strings.Contains(text, "what the controller heard of them last") {
		t.Error(text)
	}
}
