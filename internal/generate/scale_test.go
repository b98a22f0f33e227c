package generate_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// liveOf are the Applications that changes create or write.
func liveOf(changes []generate.Change) []*v1alpha1.Application {
	out := make([]*v1alpha1.Application, 0, len(changes))
	for _, c := range changes {
		out = append(out, c.Application)
	}
	return out
}

// largeFleet is a matrix of clusters and directories, in either mode.
func largeFleet(t testing.TB, goTemplate bool, clusters, directories int) (*facts, *v1alpha1.ApplicationSet) {
	t.Helper()
	f := &facts{}
	for i := range clusters {
		f.clusters = append(f.clusters, member(fmt.Sprintf("cluster-%03d", i), "env=production", "region=eu", "tier=gold", fmt.Sprintf("no=%d", i)))
	}
	files := map[string]string{}
	for i := range directories {
		files[fmt.Sprintf("apps/app-%03d/kustomization.yaml", i)] = ""
	}
	f.repos = singleRepo(files)
	generators := `- matrix:
    generators:
    - clusters: {}
    - git: {repoURL: https://git.example.com/fleet, directories: [{path: apps/*}]}`
	set := setOf(t, withTemplate(generators, "{{name}}-{{path.basename}}", "{{path}}"))
	destination, region := "{{name}}", "{{metadata.labels.region}}"
	if goTemplate {
		set = setOf(t, goTemplated(withTemplate(generators, "{{.name}}-{{.path.basename}}", "{{.path.path}}"), "missingkey=error"))
		destination, region = "{{.name}}", "{{.metadata.labels.region | lower}}"
	}
	set.UID = "1"
	set.Spec.Template.Labels = map[string]string{"region": region}
	set.Spec.Template.Spec.Destination = v1alpha1.ApplicationDestination{Name: destination, Namespace: "x"}
	set.Spec.Template.Spec.Source.Helm = &v1alpha1.ApplicationSourceHelm{ValueFiles: []string{"values.yaml", "values-" + region + ".yaml"}}
	set.Spec.Template.Spec.SyncPolicy = &v1alpha1.SyncPolicy{Automated: &v1alpha1.SyncPolicyAutomated{Prune: true}, SyncOptions: []string{"CreateNamespace=true"}}
	return f, set
}

// TestFiftyThousandApplications prints what a set of 500 clusters by 100
// directories costs when nothing has changed, and when one cluster has.
func TestFiftyThousandApplications(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, goTemplate := range []bool{false, true} {
		f, set := largeFleet(t, goTemplate, 500, 100)
		live := liveOf(generate.Reconcile(set, generate.Generate(set, f), nil, generate.Policy{}))
		if len(live) != 50_000 {
			t.Fatalf("%d Applications", len(live))
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := time.Now()
		res := generate.Generate(set, f)
		generated := time.Since(start)
		d := generate.Decide(set, res, live, generate.Policy{Clusters: f.clusters, Projects: []string{"default"}, HandOver: true})
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if n := count(d.Changes, generate.Keep); n != 50_000 {
			t.Fatalf("%d of 50,000 are as generated", n)
		}
		memory, left, err := res.Memory.Encode(64 << 10)
		if err != nil || left != 0 {
			t.Errorf("600 answers are remembered in %d bytes: %d left out, %v", len(memory), left, err)
		}
		t.Logf("Go templates %v: generated in %v, decided in %v; %d MB allocated, %d MB from the system; memory %d bytes",
			goTemplate, generated, took-generated, (after.TotalAlloc-before.TotalAlloc)>>20, after.Sys>>20, len(memory))
		if took > 10*time.Second || after.Sys > 1500<<20 {
			t.Errorf("took %v and %d MB", took, after.Sys>>20)
		}

		f.clusters[7].Labels["region"] = "us"
		changes := generate.Reconcile(set, generate.Generate(set, f), live, generate.Policy{})
		if n := count(changes, generate.Update); n != 100 {
			t.Errorf("a label of one cluster changes its 100 Applications, not %d", n)
		}
	}
}

func BenchmarkMatrix(b *testing.B) {
	for name, goTemplate := range map[string]bool{"fasttemplate": false, "goTemplate": true} {
		b.Run(name, func(b *testing.B) {
			f, set := largeFleet(b, goTemplate, 100, 100)
			live := liveOf(generate.Reconcile(set, generate.Generate(set, f), nil, generate.Policy{}))
			b.ReportAllocs()
			for b.Loop() {
				if n := count(generate.Reconcile(set, generate.Generate(set, f), live, generate.Policy{}), generate.Keep); n != 10_000 {
					b.Fatal(n)
				}
			}
		})
	}
}
