// Package seeds has the ApplicationSets that people write, each as its document
// has it, and the Applications that the document describes (testdata/*.golden).
package seeds

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/daemon"
)

var update = flag.Bool("update", false, "write the golden files")

// tree is the files of a repository.
type tree map[string]string

// repos are laid out as the documents describe them.
var repos = map[string]tree{
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

// clusters are Secrets with the labels that the documents select by.
const clusters = `apiVersion: v1
kind: Secret
metadata:
  name: prod-east
  labels: {argocd.argoproj.io/secret-type: cluster, environment: production, env: production, type: workload, environment-tier: workload, region: us-east-1, tier: production, project: shop, replicas: "3"}
stringData: {name: prod-east, server: "https://prod-east:6443", config: '{}'}
---
apiVersion: v1
kind: Secret
metadata:
  name: stage-west
  labels: {argocd.argoproj.io/secret-type: cluster, environment: staging, env: staging, type: workload, environment-tier: workload, region: us-west-2, tier: staging, project: shop, replicas: "1"}
stringData: {name: stage-west, server: "https://stage-west:6443", config: '{}'}
`

// TestSeedSets runs rutter appset generate -o json over each sample that holds
// an ApplicationSet: the Applications are those that its document describes, and
// what the reference refuses is refused with how it is written right. A golden
// file is the exit code, standard error and standard output.
func TestSeedSets(t *testing.T) {
	args := []string{"--clusters", written(t, t.TempDir(), tree{"clusters.yaml": clusters}) + "/clusters.yaml"}
	var folders []string // and what stands for each in a golden file
	for url, files := range repos {
		folder := written(t, t.TempDir(), files)
		args, folders = append(args, "--repo", url+"="+folder), append(folders, folder, "FOLDER")
	}
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	deps := cli.Deps{Snapshot: func(ctx context.Context, l map[string]string, repo rutter.Repo) (rutter.Snapshot, error) {
		return daemon.Local(l).Snapshot(ctx, repo, rutter.ResolveOptions{})
	}}
	sets := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(raw, []byte("\nkind: ApplicationSet\n")) {
			continue
		}
		sets++
		t.Run(file, func(t *testing.T) {
			var out, stderr bytes.Buffer
			code := cli.Main(t.Context(), append([]string{"appset", "generate", file, "-o", "json"}, args...), strings.NewReader(""), &out, &stderr, "test", deps)
			var list []json.RawMessage
			if code == cli.ExitOK {
				if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list) == 0 || stderr.Len() > 0 && !strings.Contains(stderr.String(), "warning") && !strings.Contains(stderr.String(), "as they lie there") {
					t.Errorf("%v: %s%s", err, out.Bytes(), stderr.Bytes())
				}
			} else if stderr.Len() == 0 {
				t.Error("refused without a word")
			}
			got := "exit " + string(rune('0'+code)) + "\n" + strings.NewReplacer(folders...).Replace(stderr.String()+out.String())
			golden := filepath.Join("testdata", strings.TrimSuffix(file, ".yaml")+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got; -update records it):\n%s", diff)
			}
		})
	}
	if sets != 14 {
		t.Errorf("%d samples with ApplicationSets, want 14", sets)
	}
}

// written writes files below a folder.
func written(t *testing.T, dir string, files tree) string {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
