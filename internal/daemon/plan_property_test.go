package daemon_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/plan"
	"github.com/rutterhq/rutter/internal/preview"
)

// fleetState are the objects of a fleet, by cluster and identity.
type fleetState map[string]*unstructured.Unstructured

// carryOut does to a state what a plan says.
func (s fleetState) carryOut(t *testing.T, p preview.Plan) {
	t.Helper()
	key := func(c preview.ObjectChange) string { return c.Cluster + " " + c.Ref().String() }
	same := func(a, b *unstructured.Unstructured) bool { return compare.Hash(a) == compare.Hash(b) }
	for _, c := range p.Objects {
		if c.Verb != preview.Add && !same(s[key(c)], c.Before) {
			t.Fatalf("%s %s: what the plan takes for the object is not what is there", c.Verb, key(c))
		}
		switch c.Verb {
		case preview.Delete, preview.Leave:
			delete(s, key(c))
		case preview.Add:
			if s[key(c)] != nil {
				t.Fatalf("%s is to be added and is there", key(c))
			}
			s[key(c)] = c.After
		case preview.Change, preview.Move:
			s[key(c)] = c.After
		}
	}
}

func (s fleetState) hashes() map[string]string {
	out := map[string]string{}
	for k, o := range s {
		out[k] = compare.Hash(o)
	}
	return out
}

// controllerState is what the controller makes of files: every Application is
// rendered by itself, from a folder and without any store, and marked as it is
// sent. Nothing of the planner is used.
func controllerState(t *testing.T, dir string, apps []*v1alpha1.Application) fleetState {
	t.Helper()
	out := fleetState{}
	local := daemon.Local{}
	for _, url := range []string{"https://git.example.com/org/fleet", "git@git.example.com:org/fleet.git"} {
		local[rutter.NormalizeGitURL(url)] = dir
	}
	inventory := planInventory()
	for _, app := range apps {
		unit, _ := argo.ToUnit(app, argo.Config{Namespace: "argocd"}, nil)
		cluster, ok := inventory.Find(unit.Target)
		name := cluster.Name
		if !ok {
			name = "in-cluster"
		}
		m, _, err := daemon.RenderApp(t.Context(), daemon.RenderConfig{App: app, Local: local, Offline: true, KubeVersion: cluster.Version})
		if err != nil {
			t.Fatalf("%s: %v", app.Name, err)
		}
		for _, o := range m.Objects {
			if o.GroupVersionKind().Group == "argoproj.io" {
				continue
			}
			sent := plan.Sent(o.Unstructured, unit, o.GetKind() != "Namespace")
			out[name+" "+rutter.RefOf(sent).String()] = sent
		}
	}
	return out
}

// controllerApps are the Applications of the files in a folder.
func controllerApps(t *testing.T, c *planClone, files map[string]string) []*v1alpha1.Application {
	t.Helper()
	var apps []*v1alpha1.Application
	for name, content := range files {
		inPlatform := strings.HasPrefix(name, "platform/") && strings.Contains(files["platform/kustomization.yaml"], strings.TrimPrefix(name, "platform/"))
		if !strings.HasPrefix(name, "clusters/") && !inPlatform || strings.HasSuffix(name, "kustomization.yaml") {
			continue
		}
		objects, err := argo.Decode([]byte(content), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			switch o := o.(type) {
			case *v1alpha1.Application:
				apps = append(apps, o)
			case *v1alpha1.ApplicationSet:
				apps = append(apps, generate.Generate(o, folderFacts{t: t, dir: c.dir}).Applications...)
			}
		}
	}
	return apps
}

// folderFacts answer generators from a folder.
type folderFacts struct {
	t   *testing.T
	dir string
}

// Clusters implements generate.Facts.
func (folderFacts) Clusters() ([]rutter.ClusterInfo, error) {
	var out []rutter.ClusterInfo
	for _, c := range planInventory().Clusters {
		out = append(out, c.Info())
	}
	return out, nil
}

// Snapshot implements generate.Facts.
func (f folderFacts) Snapshot(repo rutter.Repo) (rutter.Snapshot, error) {
	return daemon.Local{rutter.NormalizeGitURL(repo.URL): f.dir}.Snapshot(f.t.Context(), repo, rutter.ResolveOptions{})
}

// randomChange is one of what people do to a repository.
func randomChange(r *rand.Rand, step int, files map[string]string) (what string, changed map[string]string) {
	one := func(name, content string) map[string]string { return map[string]string{name: content} }
	overlays := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(n string) bool { return !strings.HasPrefix(n, "apps/") })
	some := overlays[r.IntN(len(overlays))]
	switch r.IntN(11) {
	case 0:
		return "an image in a base", one("bases/app/all.yaml", strings.Replace(files["bases/app/all.yaml"], "/app:", fmt.Sprintf("/app:%d-", step), 1))
	case 1:
		return "a value of a chart", one("charts/web/values.yaml", fmt.Sprintf("replicas: %d\nimage: registry.example.com/web:%d\n", r.IntN(5), step))
	case 2:
		return "a new folder", overlayFiles(10 + step)
	case 3:
		if len(overlays) > 5 {
			return "a folder less", one(some, "")
		}
		return "a new folder", overlayFiles(10 + step)
	case 4:
		return "a patch in one folder", one(some, files[some]+fmt.Sprintf("commonAnnotations: {step: '%d'}\n", step))
	case 5:
		return "a prefix in one folder", one(some, fmt.Sprintf("namePrefix: renamed-%d-\nresources: [../../bases/app]\n", step))
	case 6:
		return "a Secret", one("system/monitoring/all.yaml", fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: p%d}\n", step))
	case 7:
		if strings.Contains(files["platform/kustomization.yaml"], "ingress") {
			return "a child less", one("platform/kustomization.yaml", "resources: [monitoring.yaml]\n")
		}
		return "a child more", one("platform/kustomization.yaml", "resources: [monitoring.yaml, ingress.yaml]\n")
	case 8:
		return "other names of Applications", one("clusters/apps.yaml", strings.Replace(files["clusters/apps.yaml"], "metadata: {name: '", fmt.Sprintf("metadata: {name: 'n%d-", step), 1))
	case 9:
		return "another namespace", one("clusters/apps.yaml", replaceLine(files["clusters/apps.yaml"], "destination:", fmt.Sprintf("      destination: {name: prod-1, namespace: team-%d}", step)))
	default:
		return "an object more in a base", one("bases/app/all.yaml", files["bases/app/all.yaml"]+fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more-%d}\ndata: {a: b}\n", step))
	}
}

func replaceLine(text, with, line string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.Contains(l, with) {
			lines[i] = line
		}
	}
	return strings.Join(lines, "\n")
}

// TestPlanIsWhatHappens: for random changes, carrying the plan out makes of the
// base's objects exactly the head's, object by object; and those are what the
// controller makes of the files.
func TestPlanIsWhatHappens(t *testing.T) {
	t.Parallel()
	const changes, checkEvery, seed = 36, 6, 11
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(7, seed))
	files := planFleet()
	c := newPlanClone(t, files)
	state := controllerState(t, c.dir, controllerApps(t, c, files))
	if len(state) < 15 {
		t.Fatalf("the fixture has only %d objects", len(state))
	}
	seen := map[string]int{}
	for step := range changes {
		what, changed := randomChange(r, step, files)
		seen[what]++
		for name, content := range changed {
			files[name] = content
			if content == "" {
				delete(files, name)
			}
		}
		c.git("checkout", "-q", "-B", "main")
		c.git("checkout", "-q", "-B", "change")
		c.commit(changed)
		p := c.plan(nil)
		if len(p.Problems)+len(p.Held)+len(p.Refused) > 0 {
			t.Fatalf("%d, %s: problems %+v, held %+v, refused %+v", step, what, p.Problems, p.Held, p.Refused)
		}
		state.carryOut(t, p)
		whole := fleetState{}
		whole.carryOut(t, c.plan(func(cfg *daemon.PlanConfig) { cfg.Base = c.empty() }))
		if diff := cmp.Diff(whole.hashes(), state.hashes()); diff != "" {
			t.Fatalf("%d, %s: the plan leaves another state than the head (-head +after the plan):\n%s\n%s", step, what, diff, preview.Text(p, preview.TextOptions{Groups: -1}))
		}
		if step%checkEvery == checkEvery-1 {
			want := controllerState(t, c.dir, controllerApps(t, c, files))
			if diff := cmp.Diff(want.hashes(), state.hashes()); diff != "" {
				t.Fatalf("%d, %s: the plan leaves another state than the controller (-controller +after the plan):\n%s", step, what, diff)
			}
		}
	}
	if len(seen) < 9 {
		t.Errorf("only these kinds of change came up: %v", seen)
	}
}
