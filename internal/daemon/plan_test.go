package daemon_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/preview"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "plan", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// TestPlan is a pull request that does a little of everything, in all forms.
func TestPlan(t *testing.T) {
	t.Parallel()
	files := planFleet()
	c := newPlanClone(t, files)
	c.commit(map[string]string{
		"bases/app/all.yaml":             replace(files["bases/app/all.yaml"], "app:1.0.0", "app:1.1.0"),
		"charts/web/values.yaml":         replace(files["charts/web/values.yaml"], "replicas: 2", "replicas: 0"),
		"apps/shop-7/kustomization.yaml": "",
		"apps/shop-8/kustomization.yaml": overlayFiles(8)["apps/shop-8/kustomization.yaml"],
		"system/monitoring/all.yaml":     "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-other}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: hunter3}\n",
		"platform/kustomization.yaml":    "resources: [monitoring.yaml]\ncommonAnnotations: {team: platform}\n",
		"clusters/projects.yaml":         replace(files["clusters/projects.yaml"], "kind: Namespace}", "kind: Nothing}"),
	})
	p := c.plan(nil)
	golden(t, "pull-request.txt", preview.Text(p, preview.TextOptions{}))
	golden(t, "pull-request.md", preview.Markdown(p, 0))
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "pull-request.json", string(data)+"\n")
	page, err := preview.HTML(p)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "pull-request.html", page)
	if warm := c.plan(nil); warm.Digest != p.Digest {
		t.Error("a warm plan has another digest")
	}
	if strings.Contains(string(data)+page, "hunter") {
		t.Error("a Secret is shown")
	}
}

// planCase is a change and what the plan says of it.
type planCase struct {
	reason string
	// before is committed on the base, after on the head.
	before, after func(files map[string]string) map[string]string
	config        func(*daemon.PlanConfig)
	want, not     []string
}

func edit(name, old, now string) func(map[string]string) map[string]string {
	return func(files map[string]string) map[string]string {
		return map[string]string{name: replace(files[name], old, now)}
	}
}

func put(pairs ...string) func(map[string]string) map[string]string {
	return func(map[string]string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
}

func withoutOverlays(n int) func(map[string]string) map[string]string {
	return func(map[string]string) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[fmt.Sprintf("apps/shop-%d/kustomization.yaml", i)] = ""
		}
		return out
	}
}

// making is an Application that makes its namespace.
func making(name, namespace, team string) string {
	return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + ", namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}\nspec:\n  project: default\n" +
		"  source: {repoURL: 'https://git.example.com/org/fleet', targetRevision: main, path: apps/shop-0, kustomize: {namePrefix: " + name + "-}}\n  destination: {name: prod-1, namespace: " + namespace + "}\n" +
		"  syncPolicy: {automated: {prune: true}, syncOptions: [CreateNamespace=true], managedNamespaceMetadata: {labels: {team: " + team + "}}}\n"
}

func planCases() []planCase {
	const other = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: other, namespace: argocd}\nspec:\n  project: default\n" +
		"  source: {repoURL: 'https://git.example.com/org/else', path: x}\n  destination: {name: prod-1, namespace: x}\n"
	return []planCase{
		{
			reason: "a namespace that an Application makes is shown where nothing goes yet, and what it writes on it where that differs",
			before: put("clusters/a.yaml", making("a", "old", "x")), after: put("clusters/a.yaml", making("a", "old", "z"), "clusters/b.yaml", making("b", "new", "x"), "clusters/c.yaml", making("c", "new", "x"), "clusters/d.yaml", making("d", "old", "z")),
			want: []string{"+ Namespace new of application b on prod-1", "~ Namespace old of application a on prod-1", `.metadata.labels.team  "x" → "z"`},
		},
		{
			reason: "and is not gone with it", before: put("clusters/a.yaml", making("a", "old", "x")), after: put("clusters/a.yaml", ""), want: []string{"- application a"}, not: []string{"Namespace"},
		},
		{reason: "what nobody reads changes nothing", after: put("README.md", "other\n"), want: []string{"Nothing changes."}},
		{
			reason: "removals over the budget wait, and their objects stay", after: withoutOverlays(4),
			want: []string{"Held back by the deletion budget", "set apps: 4 of 8 Applications would be deleted, at most 3 go without approval"},
			not:  []string{"Deleted", "Errors", "does not exist"},
		},
		{
			reason: "what is held back is named with what goes with it once it is approved",
			before: func(files map[string]string) map[string]string {
				return map[string]string{"bases/app/all.yaml": files["bases/app/all.yaml"] + "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {}\n"}
			},
			after: withoutOverlays(4),
			want:  []string{"if they go: PersistentVolumeClaim/team-apps/shop-0-data is deleted: its data may be deleted with it (application shop-0 on prod-1)", "shop-3-data"},
			not:   []string{"Look at this before"},
		},
		{
			reason: "and with nothing where the set preserves the objects", before: edit("clusters/apps.yaml", "  template:\n", "  syncPolicy: {preserveResourcesOnDeletion: true}\n  template:\n"),
			after: withoutOverlays(4), want: []string{"4 of 8 Applications would be deleted without their objects"}, not: []string{"if they go"},
		},
		{
			reason: "a set that falls to zero waits", after: withoutOverlays(8),
			want: []string{"set apps: the set generates nothing any more: all that it has left would be deleted, 8 Applications"}, not: []string{"Deleted"},
		},
		{reason: "removals within the budget", after: withoutOverlays(3), want: []string{"applications: 3 deleted (of 10)", "- 3 applications on prod-1: shop-0, shop-1, shop-2"}, not: []string{"Held"}},
		{
			reason: "another name is a move", after: edit("clusters/apps.yaml", "'{{.path.basename}}'", "'new-{{.path.basename}}'"),
			want: []string{"applications: 8 moved", "> 8 applications on prod-1", "it has another name; its objects stay"}, not: []string{"Deleted", "Added", "Held"},
		},
		{
			reason: "a set that goes takes its Applications", after: put("clusters/edge.yaml", ""),
			want: []string{"- set edge goes, with 2 applications", "2 applications on 2 clusters: edge-edge-1, edge-edge-2", "2 Deployment.apps"},
		},
		{
			reason: "a set that preserves leaves their objects",
			before: edit("clusters/edge.yaml", "  template:", "  syncPolicy: {preserveResourcesOnDeletion: true}\n  template:"), after: put("clusters/edge.yaml", ""),
			want: []string{"- 2 applications", "No longer declared, and left in place", ". 2 Deployment.apps"},
		},
		{
			reason: "an Application of Applications that does not prune", before: edit("clusters/root.yaml", "prune: true", "prune: false"),
			after: edit("platform/kustomization.yaml", ", ingress.yaml", ""),
			want:  []string{". application ingress", "Application root, which declared it, does not prune by itself"}, not: []string{"Deleted"},
		},
		{
			reason: "an Application of Applications that prunes", after: edit("platform/kustomization.yaml", ", ingress.yaml", ""),
			want: []string{"- application ingress", "- ConfigMap ingress"},
		},
		{
			reason: "what is deployed by folders is what the folder declares: the parent's change reaches the child",
			after:  edit("platform/kustomization.yaml", "team: platform", "team: other"), want: []string{`.metadata.annotations.team  "platform" → "other"`, "2 applications on prod-1"},
		},
		{
			reason: "a project refuses", after: edit("clusters/projects.yaml", "namespace: 'team-*'", "namespace: 'other-*'"),
			want: []string{"Refused by the rules of projects", "project team changes", "no entry of spec.destinations allows it"},
		},
		{
			reason: "another repository is an error for its Application only", after: put("clusters/other.yaml", other, "charts/web/values.yaml", "replicas: 3\nimage: registry.example.com/web:1.0.0\n"),
			want: []string{`other: spec.source: repository "https://git.example.com/org/else" is not the one that is planned`, ".spec.replicas  2 → 3"},
		},
		{
			reason: "an error that was there is no error of the change", before: put("clusters/other.yaml", other), after: put("README.md", "x\n"),
			want: []string{"1 error of the base still there"}, not: []string{"Errors"},
		},
		{
			reason: "a file that cannot be read", after: put("clusters/bad.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: x}\nspec:\n  sorce: {}\n"),
			want: []string{"clusters/bad.yaml: clusters/bad.yaml:5:", "sorce"},
		},
		{
			reason: "templates and patches are no declarations",
			after: put("charts/web/templates/app.yaml", "{{ if .Values.never }}\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: {{ .x }}}\n{{ end }}\n",
				"bases/patch.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: {project: other}\n"),
			want: []string{"Nothing changes."}, not: []string{"Errors"},
		},
		{
			reason: "clusters that are not known evaluate no set that reads them", config: func(c *daemon.PlanConfig) { c.Inventory = nil },
			after: put("charts/web/values.yaml", "replicas: 9\n"), want: []string{"Whether these clusters are there is not known without an inventory, and is believed: prod-1.", "--inventory", "error of the base still there", "No inventory of clusters was given"}, not: []string{"edge-edge"},
		},
		{
			reason: "a revision that is neither side is named", before: edit("clusters/root.yaml", "path: platform", "path: platform, targetRevision: change"),
			after: edit("system/ingress/all.yaml", "mode: a", "mode: b"), want: []string{"follow these revisions of the repository see no change: change."},
		},
		{
			reason: "unless it is where the change goes", config: func(c *daemon.PlanConfig) { c.Branches = []string{"release"} },
			before: edit("clusters/edge.yaml", "targetRevision: main", "targetRevision: release"), after: edit("charts/web/values.yaml", "replicas: 2", "replicas: 3"),
			want: []string{".spec.replicas  2 → 3"}, not: []string{"see no change"},
		},
		{
			reason: "only below the roots", config: func(c *daemon.PlanConfig) { c.Roots = []string{"platform"} }, after: edit("charts/web/values.yaml", "replicas: 2", "replicas: 3"),
			want: []string{"Nothing changes.", "(of 2)"},
		},
		{
			reason: "a broken render does not stop the rest", after: put("apps/shop-0/kustomization.yaml", "resources: [nowhere]\n", "apps/shop-1/kustomization.yaml", "namePrefix: other-\nresources: [../../bases/app]\n"),
			want: []string{"shop-0: spec.source:", "apps/shop-0", "Deployment.apps other-app"},
		},
	}
}

func TestPlanCases(t *testing.T) {
	t.Parallel()
	for _, tc := range planCases() {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			files := planFleet()
			c := newPlanClone(t, files)
			if tc.before != nil {
				changed := tc.before(files)
				c.git("checkout", "-q", "main")
				c.commit(changed)
				c.git("checkout", "-q", "-B", "change")
				maps.Copy(files, changed)
			}
			c.commit(tc.after(files))
			text := preview.Text(c.plan(tc.config), preview.TextOptions{Groups: -1, Width: 400})
			for _, w := range tc.want {
				if !strings.Contains(text, w) {
					t.Errorf("it does not say %q:\n%s", w, text)
				}
			}
			for _, w := range tc.not {
				if strings.Contains(text, w) {
					t.Errorf("it says %q:\n%s", w, text)
				}
			}
		})
	}
}

// TestPlanWorktree plans what is not committed yet.
func TestPlanWorktree(t *testing.T) {
	t.Parallel()
	c := newPlanClone(t, planFleet())
	worktree := func(cfg *daemon.PlanConfig) { cfg.Head = daemon.Worktree }
	if p := c.plan(worktree); !p.Empty() {
		t.Errorf("the commit as it lies on disk differs from itself:\n%s", preview.Text(p, preview.TextOptions{}))
	}
	c.write(map[string]string{"charts/web/values.yaml": "replicas: 5\nimage: registry.example.com/web:1.0.0\n"})
	if p := c.plan(worktree); len(p.Objects) != 2 || p.Objects[0].Fields[0].New != "5" {
		t.Errorf("got\n%s", preview.Text(p, preview.TextOptions{}))
	}
	if p := c.plan(nil); !p.Empty() {
		t.Error("HEAD has what is not committed")
	}
}

// TestPlanSaysWhatTheHeadLacks: commits of the base that the head does not have
// are shown as taken back, and the plan says that a merge would not do that.
func TestPlanSaysWhatTheHeadLacks(t *testing.T) {
	t.Parallel()
	c := newPlanClone(t, planFleet())
	c.git("checkout", "-q", "main")
	c.commit(map[string]string{"charts/web/values.yaml": "replicas: 5\nimage: registry.example.com/web:1.0.0\n"})
	c.git("checkout", "-q", "change")
	const note = "HEAD lacks commits of main (1), and this plan takes them back"
	if text := preview.Text(c.plan(nil), preview.TextOptions{}); !strings.Contains(text, note) || !strings.Contains(text, "5 → 2") {
		t.Errorf("it does not say %q:\n%s", note, text)
	}
	c.git("-c", "user.name=t", "-c", "user.email=t@localhost", "merge", "-q", "main")
	if text := preview.Text(c.plan(nil), preview.TextOptions{}); strings.Contains(text, "lacks") || !strings.Contains(text, "Nothing changes.") {
		t.Errorf("after the merge:\n%s", text)
	}
}

// TestPlanRefusesWhatItCannotFind names what is wrong with the question.
func TestPlanRefusesWhatItCannotFind(t *testing.T) {
	t.Parallel()
	c := newPlanClone(t, planFleet())
	for _, tc := range []struct {
		edit func(*daemon.PlanConfig)
		want string
	}{
		{func(c *daemon.PlanConfig) { c.Base = "nothing" }, `--base: revision "nothing" is not in`},
		{func(c *daemon.PlanConfig) { c.Head = "--upload-pack=x" }, `--head: revision "--upload-pack=x"`},
		{func(c *daemon.PlanConfig) { c.Repo = "/nowhere" }, "--repo /nowhere"},
	} {
		cfg := c.config()
		tc.edit(&cfg)
		if _, err := daemon.Plan(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
}
