package generate_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

func BenchmarkFiftyThousand(b *testing.B) {
	f := &facts{}
	for i := range 500 {
		f.clusters = append(f.clusters, member(fmt.Sprintf("cluster-%03d", i), "env=production", "region=eu", fmt.Sprintf("no=%d", i)))
	}
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("apps/app-%03d/kustomization.yaml", i)] = ""
	}
	f.repos = singleRepo(files)
	set := setOf(b, withTemplate(`- matrix:
    generators:
    - clusters: {}
    - git: {repoURL: https://git.example.com/fleet, directories: [{path: apps/*}]}`, "{{name}}-{{path.basename}}", "{{path}}"))
	for _, c := range []string{"fast", "go"} {
		b.Run(c, func(b *testing.B) {
			if c == "go" {
				set.Spec.GoTemplate = true
				set.Spec.Template.Name = "{{.name}}-{{.path.basename}}"
				set.Spec.Template.Spec.Source.Path = "{{.path.path}}"
			}
			set.Spec.Template.Spec.Destination.Server = ""
			set.Spec.Template.Spec.Destination.Name = "{{name}}"
			if c == "go" {
				set.Spec.Template.Spec.Destination.Name = "{{.name}}"
			}
			set.UID = "1"
			
			
			res := generate.Generate(set, f)
			changes := generate.Reconcile(set, res, nil, generate.Policy{})
			l := liveOf(changes)
			b.ReportAllocs()
			for b.Loop() {
				b.StartTimer()
				res = generate.Generate(set, f)
				if len(res.Applications) != 50000 {
					b.Fatal(problems(res))
				}
				ch := generate.Reconcile(set, res, l, generate.Policy{})
				for _, c := range ch {
					if c.Verb != generate.Keep {
						b.Fatal(c)
					}
				}
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.Sys)/1e6, "MB-sys")
		})
	}
	_ = rutter.Repo{}
}

func liveOf(changes []generate.Change) []*v1alpha1.Application {
	out := make([]*v1alpha1.Application, 0, len(changes))
	for _, c := range changes {
		out = append(out, c.Application)
	}
	return out
}
