package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/generate"
)

// seedRepos are laid out as the texts describe them.
var seedRepos = map[string]tree{
	"https://github.com/org/gitops-config": {
		"apps/myapp/production/kustomization.yaml": "resources: []\n", "apps/myapp/staging/kustomization.yaml": "resources: []\n",
		"apps/billing/overlays/production/kustomization.yaml": "resources: []\n", "apps/README.md": "not a folder\n",
	},
	"https://github.com/example-org/fleet-config": {
		"clusters/cluster-1/config.yaml": "cluster: cluster-1\nurl: https://cluster-1.example.internal\nenv: dev\n",
		"clusters/cluster-2/config.yaml": "cluster: cluster-2\nurl: https://cluster-2.example.internal\nenv: staging\n",
	},
	"https://github.com/myorg/fleet-repo.git": {
		"clusters/prod-east/config.yaml": "{}\n", "clusters/stage-west/config.yaml": "{}\n",
		"apps/myapp/kustomization.yaml": "resources: []\n", "apps/shop/kustomization.yaml": "resources: []\n",
	},
}

// seedClusters have the labels that the texts select by.
var seedClusters = []rutter.ClusterInfo{
	{Name: "prod-east", Server: "https://prod-east:6443", Labels: map[string]string{"environment": "production", "env": "production", "type": "workload",
		"environment-tier": "workload", "region": "us-east-1", "tier": "production", "project": "shop", "replicas": "3"}},
	{Name: "stage-west", Server: "https://stage-west:6443", Labels: map[string]string{"environment": "staging", "env": "staging", "type": "workload",
		"environment-tier": "workload", "region": "us-west-2", "tier": "staging", "project": "shop", "replicas": "1"}},
	{Name: "in-cluster", Server: generate.InClusterServer},
}

// seedFacts answers generators from local folders.
type seedFacts struct {
	ctx   context.Context
	local daemon.Local
}

// Clusters implements generate.Facts.
func (f seedFacts) Clusters() ([]rutter.ClusterInfo, error) { return seedClusters, nil }

// Snapshot implements generate.Facts.
func (f seedFacts) Snapshot(repo rutter.Repo) (rutter.Snapshot, error) {
	return f.local.Snapshot(f.ctx, repo, rutter.ResolveOptions{})
}

// TestSeedSets generates what the texts' sets with list, clusters, git and
// matrix generators say, from repositories and members as they describe them.
func TestSeedSets(t *testing.T) {
	t.Parallel()
	local := daemon.Local{}
	for url, files := range seedRepos {
		dir := t.TempDir()
		for name, content := range files {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		local[rutter.NormalizeGitURL(url)] = dir
	}
	files, err := filepath.Glob("../seeds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objs, err := argo.Decode(raw, filepath.Base(file))
		if err != nil {
			continue // TestSeeds has the reason
		}
		for _, obj := range objs {
			if set, ok := obj.(*v1alpha1.ApplicationSet); ok {
				describeSet(&got, filepath.Base(file), generate.Generate(set, seedFacts{ctx: t.Context(), local: local}))
			}
		}
	}
	compareGolden(t, "seed_sets.txt", got.Bytes())
}

func describeSet(out *bytes.Buffer, file string, result generate.Result) {
	fmt.Fprintf(out, "%s: %s\n", file, result.Completeness)
	for _, app := range result.Applications {
		s := app.Spec
		fmt.Fprintf(out, "  %s: %s@%s -> %s %s", app.Name, s.Source.Path, s.Source.TargetRevision, s.Destination.Server, s.Destination.Namespace)
		if s.Source.Helm != nil {
			fmt.Fprintf(out, " values %v", s.Source.Helm.ValueFiles)
		}
		if s.Source.Kustomize != nil {
			fmt.Fprintf(out, " patch %q", s.Source.Kustomize.Patches[0].Patch)
		}
		fmt.Fprintf(out, " project %q labels %v\n", s.Project, app.Labels)
	}
	for _, e := range result.Elements {
		if e.Err != nil {
			fmt.Fprintf(out, "  %s[%d] error: %v\n", e.Producer, e.Index, e.Err)
		}
	}
	for _, err := range result.Errors {
		fmt.Fprintf(out, "  error: %v\n", err)
	}
	for _, warning := range result.Warnings {
		fmt.Fprintf(out, "  warning: %s\n", warning)
	}
}

// compareGolden compares with a file of testdata, or writes it with -update.
func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s (-want +got), write it with -update:\n%s", golden, diff)
	}
}
