package examples_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/examples"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/policy"
	"github.com/rutterhq/rutter/internal/render/osdir"
)

var update = flag.Bool("update", false, "write the golden file")

// members are the clusters as the demo declares them.
var members = []rutter.ClusterInfo{
	{Name: "in-cluster", Server: generate.InClusterServer},
	{Name: "dev", Server: "https://dev", Labels: map[string]string{"env": "dev", "tier": "nonprod", "region": "eu-west-1"}},
	{Name: "staging", Server: "https://staging", Labels: map[string]string{"env": "staging", "tier": "nonprod", "region": "eu-west-1"}},
	{Name: "production", Server: "https://production", Labels: map[string]string{"env": "production", "tier": "prod", "region": "eu-central-1"}},
}

// clusterScoped are the kinds of the fleet that have no namespace.
var clusterScoped = []string{"PriorityClass"}

// fleet is what the folder root declares.
type fleet struct {
	projects map[string]*policy.Project
	apps     []*v1alpha1.Application
}

// Clusters implements generate.Facts.
func (*fleet) Clusters() ([]rutter.ClusterInfo, error) { return members, nil }

// Snapshot implements generate.Facts.
func (*fleet) Snapshot(rutter.Repo) (rutter.Snapshot, error) { return osdir.Open("fleet") }

// load reads and generates everything that the demo's root Application leads to.
func load(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{projects: map[string]*policy.Project{}}
	var sets []*v1alpha1.ApplicationSet
	files, err := filepath.Glob("fleet/root/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no root: %v", err)
	}
	for _, file := range files {
		for _, o := range decode(t, file) {
			switch x := o.(type) {
			case *v1alpha1.AppProject:
				f.projects[x.Name] = policy.New(x, policy.Around{})
			case *v1alpha1.Application:
				f.apps = append(f.apps, x)
			case *v1alpha1.ApplicationSet:
				sets = append(sets, x)
			default:
				t.Errorf("%s holds a %T", file, o)
			}
		}
	}
	for _, set := range sets {
		result := generate.Generate(set, f)
		if result.Completeness != generate.Complete || len(result.Warnings) > 0 {
			t.Errorf("ApplicationSet %s is %s: %v %v", set.Name, result.Completeness, result.Errors, result.Warnings)
		}
		for _, e := range result.Elements {
			if e.Err != nil || len(e.Warnings) > 0 {
				t.Errorf("ApplicationSet %s: %s: %v %v", set.Name, e.Name, e.Err, e.Warnings)
			}
		}
		f.apps = append(f.apps, result.Applications...)
	}
	slices.SortFunc(f.apps, func(a, b *v1alpha1.Application) int { return strings.Compare(a.Name, b.Name) })
	return f
}

func decode(t *testing.T, file string) []any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := argo.Decode(data, file)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]any, len(objects))
	for i, o := range objects {
		all[i] = o
	}
	return all
}

func clusterOf(target rutter.Target) (rutter.ClusterInfo, bool) {
	for _, m := range members {
		if target.Name == m.Name || target.Server == m.Server {
			return m, true
		}
	}
	return rutter.ClusterInfo{}, false
}

// TestFleet generates and renders the whole fleet, offline: every declaration
// can be acted upon in full, its project allows it, and nothing in it needs what
// a simulated cluster has not (a load balancer, volumes, metrics).
func TestFleet(t *testing.T) {
	f := load(t)
	if len(f.apps) < 14 {
		t.Errorf("only %d applications", len(f.apps))
	}
	var golden strings.Builder
	for i, app := range f.apps {
		if i > 0 && f.apps[i-1].Name == app.Name {
			t.Errorf("two applications are named %s", app.Name)
		}
		f.check(t, app, &golden)
	}
	compare(t, "testdata/fleet.golden", golden.String())
}

// check translates and renders one Application and writes what it deploys.
func (f *fleet) check(t *testing.T, app *v1alpha1.Application, golden *strings.Builder) {
	t.Helper()
	project := f.projects[app.Spec.Project]
	unit, conditions := argo.ToUnit(app, argo.Config{Namespace: "argocd", Cluster: clusterOf},
		func(name string) (*policy.Project, bool) { p, ok := f.projects[name]; return p, ok })
	cluster, known := clusterOf(unit.Target)
	if unit.Problem != nil || len(conditions) > 0 || !known || project == nil {
		t.Errorf("%s: %v %v, target %+v, project %q", app.Name, unit.Problem, conditions, unit.Target, app.Spec.Project)
		return
	}
	automated := app.Spec.SyncPolicy.Automated
	if automated == nil || !automated.SelfHeal || automated.Prune != (cluster.Name != "production") {
		t.Errorf("%s on %s: automated is %+v; everything heals, and all but production prunes", app.Name, cluster.Name, automated)
	}
	m, _, err := daemon.RenderApp(t.Context(), daemon.RenderConfig{App: app, KubeVersion: "v1.37.2", Offline: true,
		Local: daemon.Local{rutter.NormalizeGitURL(daemon.FleetURL): "fleet"}})
	if err != nil || len(m.Warnings) > 0 || len(m.Objects) == 0 {
		t.Errorf("%s: %d objects, %v, warnings %q", app.Name, len(m.Objects), err, m.Warnings)
		return
	}
	fmt.Fprintf(golden, "%s → %s/%s\n", app.Name, cluster.Name, unit.Target.Namespace)
	for _, o := range m.Objects {
		ref := o.Ref()
		namespaced := !slices.Contains(clusterScoped, ref.Kind)
		if ref.Namespace == "" && namespaced {
			ref.Namespace = unit.Target.Namespace
		}
		if err := project.CheckResource(cluster, ref, namespaced); err != nil {
			t.Errorf("%s: %v", app.Name, err)
		}
		if why := impossible(o); why != "" {
			t.Errorf("%s: %s: %s", app.Name, ref, why)
		}
		fmt.Fprintf(golden, "  %s %s\n", ref.Kind, ref.Name)
	}
}

// impossible says why an object could not become Healthy on a simulated cluster.
func impossible(o rutter.Object) string {
	spec, _ := o.Object["spec"].(map[string]any)
	switch o.GetKind() {
	case "Ingress":
		return "nothing gives an Ingress an address"
	case "HorizontalPodAutoscaler":
		return "there are no metrics"
	case "PersistentVolumeClaim":
		return "nothing provisions volumes"
	case "StatefulSet":
		if spec["volumeClaimTemplates"] != nil {
			return "nothing provisions volumes"
		}
	case "Service":
		if spec["type"] == "LoadBalancer" {
			return "nothing gives a Service an address"
		}
	}
	return ""
}

// TestOneURL: the demo replaces one string; a URL that is written otherwise
// would still point to example.com.
func TestOneURL(t *testing.T) {
	url := regexp.MustCompile(`(?m)(?:repoURL|url):\s*"?([^\s"]+)`)
	seen := 0
	err := fs.WalkDir(examples.Fleet, "fleet", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(examples.Fleet, name)
		if err != nil {
			return err
		}
		for _, found := range url.FindAllSubmatch(data, -1) {
			seen++
			if string(found[1]) != daemon.FleetURL {
				t.Errorf("%s: repoURL is %s, wanted %s", name, found[1], daemon.FleetURL)
			}
		}
		if bytes.Contains(bytes.ReplaceAll(data, []byte(daemon.FleetURL), nil), []byte("fleet.git")) && !strings.HasSuffix(name, ".md") {
			t.Errorf("%s names the repository in another way than %s", name, daemon.FleetURL)
		}
		return nil
	})
	if err != nil || seen < 6 {
		t.Errorf("saw %d URLs: %v", seen, err)
	}
}

// TestSingle: the smallest example can be acted upon as it stands.
func TestSingle(t *testing.T) {
	objects := decode(t, "single/application.yaml")
	if len(objects) != 1 {
		t.Fatalf("it holds %d objects", len(objects))
	}
	app, ok := objects[0].(*v1alpha1.Application)
	if !ok {
		t.Fatalf("it holds a %T", objects[0])
	}
	anything := policy.New(&v1alpha1.AppProject{Spec: v1alpha1.AppProjectSpec{SourceRepos: []string{"*"}, Destinations: []v1alpha1.ApplicationDestination{{Server: "*", Namespace: "*"}}}}, policy.Around{})
	unit, conditions := argo.ToUnit(app, argo.Config{Namespace: "argocd", Cluster: clusterOf}, func(string) (*policy.Project, bool) { return anything, true })
	if unit.Problem != nil || len(conditions) > 0 {
		t.Errorf("%v %v", unit.Problem, conditions)
	}
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", file, diff)
	}
}
