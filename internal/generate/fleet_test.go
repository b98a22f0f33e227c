package generate_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/generate"
)

var update = flag.Bool("update", false, "write the golden files")

// monorepo is a fleet repository laid out as such repositories are described:
// a folder for each cluster with its facts, applications with a base and
// overlays, infrastructure.
func monorepo() *facts {
	files := map[string]string{}
	for _, app := range []string{"shop", "cart", "search"} {
		files["apps/"+app+"/base/kustomization.yaml"] = "resources: [deployment.yaml]\n"
		for _, env := range []string{"dev", "production"} {
			files["apps/"+app+"/overlays/"+env+"/kustomization.yaml"] = "resources: [../../base]\n"
		}
	}
	for cluster, env := range map[string]string{"us-east": "production", "eu-west": "production", "lab": "dev"} {
		files["clusters/"+cluster+"/config.yaml"] = "cluster: " + cluster + "\nurl: https://" + cluster + ".example.com\nenv: " + env + "\n"
		files["clusters/"+cluster+"/values.yaml"] = "replicas: 2\n"
	}
	files["infrastructure/dns/kustomization.yaml"] = ""
	files["infrastructure/ingress/kustomization.yaml"] = ""
	return &facts{
		clusters: []rutter.ClusterInfo{
			member("us-east", "env=production", "type=workload", "project=retail", "region=us", "replicas=5"),
			member("eu-west", "env=production", "type=workload", "project=retail", "region=eu", "replicas=3"),
			member("lab", "env=dev", "type=workload", "project=lab", "region=eu", "replicas=1"),
			member("build", "env=production", "type=tools", "project=tools", "region=eu", "replicas=1"),
			inCluster(),
		},
		repos: map[string]fs.FS{
			"https://git.example.com/fleet": treeOf(files),
		},
	}
}

// TestFleet generates each set in testdata from the monorepo and compares the
// Applications, errors and warnings with what is recorded beside it.
func TestFleet(t *testing.T) {
	sets, err := filepath.Glob("testdata/*.set.yaml")
	if err != nil || len(sets) == 0 {
		t.Fatalf("no sets: %v", err)
	}
	for _, file := range sets {
		name := strings.TrimSuffix(filepath.Base(file), ".set.yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := report(t, generate.Generate(setOf(t, string(text)), monorepo()))
			golden := "testdata/" + name + ".golden"
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got; -update records it):\n%s", diff)
			}
		})
	}
}

// report is a result as a text.
func report(t *testing.T, res generate.Result) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("# " + string(res.Completeness) + "\n")
	for _, w := range res.Warnings {
		b.WriteString("# warning: " + w + "\n")
	}
	for line := range strings.SplitSeq(problems(res), "\n") {
		if line != "" {
			b.WriteString("# error: " + line + "\n")
		}
	}
	for _, e := range res.Elements {
		for _, w := range e.Warnings {
			b.WriteString("# " + e.Name + ": warning: " + w + "\n")
		}
	}
	for _, app := range res.Applications {
		raw, err := yaml.Marshal(app)
		if err != nil {
			t.Fatal(err)
		}
		// An Application as it is generated has no status.
		text, _, _ := strings.Cut(string(raw), "\nstatus:")
		b.WriteString("---\n" + strings.TrimSpace(text) + "\n")
	}
	return b.Bytes()
}

// TestOrderDoesNotMatter: facts and generators in another order give the same
// Applications, and the same order of them.
func TestOrderDoesNotMatter(t *testing.T) {
	set := setOf(t, withTemplate(`- matrix:
    generators:
    - clusters: {selector: {matchLabels: {type: workload}}}
    - git: {repoURL: https://git.example.com/fleet, directories: [{path: apps/*}, {path: infrastructure/*}]}
- git: {repoURL: https://git.example.com/fleet, files: [{path: 'clusters/*/config.yaml'}, {path: '*/lab/*', exclude: true}]}
- list: {elements: [{path.basename: x, name: l}, {path.basename: z, name: l}]}`, "{{name}}{{cluster}}-{{path.basename}}", "{{path}}"))
	// Each kind of element has other parameters; one template serves all.
	set.Spec.GoTemplate = true
	set.Spec.Template.Name = `{{.name | default .cluster | default "l"}}-{{ dig "basename" "x" (.path | default dict) }}{{ get . "path.basename" }}`
	set.Spec.Template.Spec.Source.Path = `{{ dig "path" "none" (.path | default dict) }}`
	want := generate.Generate(set, monorepo())
	if len(want.Applications) != 3*5+2+2 || want.Completeness != generate.Complete {
		t.Fatalf("%d applications: %v\n%s", len(want.Applications), names(want), problems(want))
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		f, shuffled := monorepo(), set.DeepCopy()
		r.Shuffle(len(f.clusters), func(i, j int) { f.clusters[i], f.clusters[j] = f.clusters[j], f.clusters[i] })
		g := shuffled.Spec.Generators
		r.Shuffle(len(g), func(i, j int) { g[i], g[j] = g[j], g[i] })
		for i := range g {
			if l := g[i].List; l != nil {
				slices.Reverse(l.Elements)
			}
		}
		got := generate.Generate(shuffled, f)
		if diff := cmp.Diff(want.Applications, got.Applications); diff != "" {
			t.Fatalf("seed %d:\n%s", seed, diff)
		}
	}
}

func TestSources(t *testing.T) {
	set := setOf(t, withTemplate(`- git: {repoURL: https://a, revision: main, directories: [{path: '*'}]}
- git: {repoURL: https://a, revision: main, files: [{path: '*'}]}
- matrix:
    generators:
    - git: {repoURL: https://b, revision: HEAD, directories: [{path: '*'}]}
    - merge:
        mergeKeys: [x]
        generators:
        - clusters: {}
        - git: {repoURL: 'https://{{path.basename}}', directories: [{path: '*'}]}
        - matrix: {generators: [{list: {}}, {git: {repoURL: 'ssh://c', directories: [{path: '*'}]}}]}`, "{{name}}", "x"))
	want := []rutter.Repo{
		{URL: "https://a", Revision: "main", Project: "default"},
		{URL: "https://b", Project: "default"},
		{URL: "ssh://c", Project: "default"},
	}
	if diff := cmp.Diff(want, generate.Sources(set)); diff != "" {
		t.Errorf("each repository once, at any depth, templated ones left out:\n%s", diff)
	}
	if !generate.UsesClusters(set) {
		t.Error("a nested clusters generator uses the clusters")
	}
	set.Spec.Template.Spec.Project = "{{project}}"
	if got := generate.Sources(set)[0].Project; got != "" {
		t.Errorf("a templated project gives no access to its credentials, got %q", got)
	}
	set.Spec.Generators = set.Spec.Generators[:2]
	if generate.UsesClusters(set) {
		t.Error("git alone does not use the clusters")
	}
}

func TestMatrixAsksOnce(t *testing.T) {
	f := monorepo()
	set := setOf(t, withTemplate(`- matrix:
    generators:
    - clusters: {}
    - git: {repoURL: https://git.example.com/fleet, directories: [{path: apps/*}]}`, "{{name}}-{{path.basename}}", "x"))
	if res := generate.Generate(set, f); len(res.Applications) != 15 {
		t.Fatalf("%v\n%s", names(res), problems(res))
	}
	if len(f.asked) != 1 {
		t.Errorf("an inner generator that does not depend on the outer is asked once, not %d times", len(f.asked))
	}
}

func BenchmarkThousand(b *testing.B) {
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("apps/app-%04d/kustomization.yaml", i)] = ""
	}
	set := setOf(b, withTemplate("- git: {repoURL: https://git.example.com/fleet, directories: [{path: apps/*}]}", "{{path.basename}}", "{{path}}"))
	f := &facts{repos: singleRepo(files)}
	for b.Loop() {
		if res := generate.Generate(set, f); len(res.Applications) != 1000 {
			b.Fatal(problems(res))
		}
	}
}

func TestDirectoryPatternsThatCannotMatch(t *testing.T) {
	for _, pattern := range []string{"/apps/*", "./apps/*", "apps/*/"} {
		res := generate.Generate(setOf(t, withTemplate("- git: {repoURL: https://git.example.com/fleet, directories: [{path: '"+pattern+"'}]}", "{{path}}", "x")), monorepo())
		if len(res.Elements) != 0 || len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], `as "apps/*"`) {
			t.Errorf("%q finds nothing in the reference, which must be said: %v %v", pattern, res.Elements, res.Warnings)
		}
	}
}
