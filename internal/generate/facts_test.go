package generate_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// tree is a Snapshot over files in memory.
type tree struct {
	fstest.MapFS
}

func (tree) Revision() string { return strings.Repeat("a", 40) }

func (t tree) Hash(_ rutter.InputKind, p string) (string, error) {
	if f, ok := t.MapFS[p]; ok {
		return string(f.Data), nil
	}
	return "", nil
}

// treeOf makes a Snapshot of "path: content" pairs.
func treeOf(files map[string]string) tree {
	out := tree{MapFS: fstest.MapFS{}}
	for p, content := range files {
		out.MapFS[p] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
	}
	return out
}

// facts are the answers of a test; a repository that is not among them is gone.
type facts struct {
	clusters    []rutter.ClusterInfo
	clustersErr error
	repos       map[string]fs.FS
	// asked are the repositories that were asked for, in order.
	asked []rutter.Repo
}

func (f *facts) Clusters() ([]rutter.ClusterInfo, error) { return f.clusters, f.clustersErr }

func (f *facts) Snapshot(repo rutter.Repo) (rutter.Snapshot, error) {
	f.asked = append(f.asked, repo)
	t, ok := f.repos[repo.URL].(rutter.Snapshot)
	if !ok {
		return nil, rutter.Errorf(rutter.CodeNotFound, "repository %s does not exist", repo.URL)
	}
	return t, nil
}

// member is a cluster with labels written as "key=value".
func member(name string, labels ...string) rutter.ClusterInfo {
	c := rutter.ClusterInfo{Name: name, Server: "https://" + name + ".example.com", Labels: map[string]string{}}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		c.Labels[k] = v
	}
	return c
}

// inCluster is the control plane's own cluster without a Secret.
func inCluster() rutter.ClusterInfo {
	return rutter.ClusterInfo{Name: "in-cluster", Server: generate.InClusterServer}
}

// fleet is what most tests generate from.
func fleet() *facts {
	return &facts{
		clusters: []rutter.ClusterInfo{
			member("west", "env=production", "region=us-west"),
			member("east", "env=production", "region=us-east"),
			member("lab", "env=staging", "region=eu"),
			inCluster(),
		},
		repos: map[string]fs.FS{"https://git.example.com/fleet": treeOf(map[string]string{
			"README.md":                       "the fleet",
			"apps/cart/base/deployment.yaml":  "kind: Deployment",
			"apps/shop/base/deployment.yaml":  "kind: Deployment",
			"apps/.hidden/base/x.yaml":        "",
			"apps/old/keep.txt":               "",
			"clusters/east/config.yaml":       "cluster: east\nenv: production\nreplicas: 1000000\nzones: [a, b]\nratio: 0.5\n",
			"clusters/west/config.yaml":       "cluster: west\nenv: production\nreplicas: 2\n",
			"clusters/lab/config.json":        `[{"cluster":"lab-1","env":"staging"},{"cluster":"lab-2","env":"staging"}]`,
			"clusters/east/deep/config.yaml":  "cluster: deep\nenv: none\n",
			"infrastructure/dns/install.yaml": "",
			"tenants/team-a/empty.yaml":       "",
		})},
	}
}

// setOf reads an ApplicationSet, refusing fields that do not exist.
func setOf(t testing.TB, text string) *v1alpha1.ApplicationSet {
	t.Helper()
	set := &v1alpha1.ApplicationSet{}
	if err := yaml.UnmarshalStrict([]byte(text), set); err != nil {
		t.Fatalf("the set of the test: %v\n%s", err, text)
	}
	if set.Name == "" {
		set.Name = "set"
	}
	if set.Namespace == "" {
		set.Namespace = "argocd"
	}
	return set
}

// names are those of the generated Applications.
func names(res generate.Result) []string {
	out := make([]string, 0, len(res.Applications))
	for _, app := range res.Applications {
		out = append(out, app.Name)
	}
	return out
}

// problems are all errors of a result, elements' included.
func problems(res generate.Result) string {
	var lines []string
	for _, err := range res.Errors {
		lines = append(lines, err.Error())
	}
	for _, e := range res.Elements {
		if e.Err != nil {
			lines = append(lines, e.Err.Error())
		}
	}
	return strings.Join(lines, "\n")
}

// singleRepo is one repository, at the address that tests use.
func singleRepo(files map[string]string) map[string]fs.FS {
	return map[string]fs.FS{"https://git.example.com/fleet": treeOf(files)}
}
