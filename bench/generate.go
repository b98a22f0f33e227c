package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"text/template"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/generate"
)

// phaseGenerate stands for the phases of generating, a bench of its own.
const phaseGenerate = "generate"

// generateDirectories are as many as each cluster has Applications.
const generateDirectories = 100

// generateBench evaluates one set, a matrix of clusters by directories: first by
// itself, beside a loop that renders and compares the same as simply as can be;
// then with a controller and an API server.
type generateBench struct {
	options

	out   io.Writer
	dir   string
	fleet *fleet
	set   *v1alpha1.ApplicationSet
}

// generateRow is one phase's figures.
type generateRow struct {
	Phase string `json:"phase"`
	MS    int64  `json:"ms"`
	// Ratio is to the simple loop that the phase is compared with, 0 for none.
	Ratio float64 `json:"ratio,omitempty"`
	Apps  int     `json:"applications"`
	// Writes are the Applications that were written.
	Writes int     `json:"writes"`
	Peak   float64 `json:"peak_rss_mb"`
	// CPU is the processor time of whoever evaluates, until it rests.
	CPU float64 `json:"cpu_s"`
	// Status and Memory are the bytes of the set's status and of its stored answers.
	Status int `json:"status_bytes,omitempty"`
	Memory int `json:"memory_bytes,omitempty"`
}

// generateSet has a label that only one Application of each cluster shows, so
// that one element can change.
const generateSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: fleet, namespace: argocd}
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators:
  - matrix:
      generators:
      - clusters: {selector: {matchLabels: {fleet: bench}}}
      - git: {repoURL: '%s', revision: main, directories: [{path: 'apps/*'}], requeueAfterSeconds: 0}
  template:
    metadata:
      name: '{{.name}}-{{.path.basename}}'
      labels: {region: '{{.metadata.labels.region | lower}}', canary: '{{if eq .path.basename "app-0042"}}{{.metadata.labels.canary}}{{else}}none{{end}}'}
      annotations: {argocd.argoproj.io/skip-reconcile: 'true'}
    spec:
      project: default
      source: {repoURL: '%s', targetRevision: main, path: '{{.path.path}}', helm: {valueFiles: [values.yaml, 'values-{{.metadata.labels.region}}.yaml']}}
      destination: {name: '{{.name}}', namespace: '{{.path.basename}}'}
      syncPolicy: {automated: {prune: true, selfHeal: true}, syncOptions: [CreateNamespace=true]}
`

func (b *generateBench) run(ctx context.Context) error {
	var err error
	if b.dir, err = os.MkdirTemp("", "rutter-bench-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(b.dir)
	files := map[string]string{}
	for i := range generateDirectories {
		files[overlayFile(i)] = "resources: []\n"
	}
	if b.fleet, err = newRepository(ctx, b.dir, files); err != nil {
		return fmt.Errorf("make the repository: %w", err)
	}
	b.set = &v1alpha1.ApplicationSet{}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, generateSet, b.fleet.url(), b.fleet.url()), b.set); err != nil {
		return fmt.Errorf("read the set: %w", err)
	}
	if err := b.pure(ctx); err != nil {
		return err
	}
	runtime.GC()
	return b.live(ctx)
}

// clusters are the members, the first with one label of its own.
func (b *generateBench) clusters(canary string) []rutter.ClusterInfo {
	out := make([]rutter.ClusterInfo, b.apps/generateDirectories)
	for i := range out {
		name := fmt.Sprintf("cluster-%03d", i)
		out[i] = rutter.ClusterInfo{Name: name, Server: "https://127.0.0.1:1/" + name,
			Labels: map[string]string{"fleet": "bench", "region": "EU", "tier": "gold", "canary": "v1"}}
	}
	out[0].Labels["canary"] = canary
	return out
}

// generateFacts answers the set from a folder.
type generateFacts struct {
	clusters []rutter.ClusterInfo
	snapshot rutter.Snapshot
}

// Clusters implements generate.Facts.
func (f *generateFacts) Clusters() ([]rutter.ClusterInfo, error) { return f.clusters, nil }

// Snapshot implements generate.Facts.
func (f *generateFacts) Snapshot(rutter.Repo) (rutter.Snapshot, error) { return f.snapshot, nil }

// pure evaluates without any server: for the first time, with nothing changed,
// and with one label changed.
func (b *generateBench) pure(ctx context.Context) error {
	snapshot, err := daemon.Local{rutter.NormalizeGitURL(b.fleet.url()): b.fleet.dir}.Snapshot(ctx, rutter.Repo{URL: b.fleet.url(), Revision: "main"}, rutter.ResolveOptions{})
	if err != nil {
		return fmt.Errorf("open the repository: %w", err)
	}
	facts := &generateFacts{b.clusters("v1"), snapshot}
	first, changes, err := b.evaluate("generate-first", facts, nil, 0)
	if err != nil {
		return err
	}
	first.Writes = b.apps
	live := make([]*v1alpha1.Application, 0, len(changes))
	for _, c := range changes {
		live = append(live, c.Application)
	}
	runtime.GC()
	simple, err := b.simpleLoop(live)
	if err != nil {
		return err
	}
	same, changes, err := b.evaluate("generate-no-change", facts, live, simple)
	if err != nil {
		return err
	}
	facts.clusters = b.clusters("v2")
	one, changed, err := b.evaluate("generate-one-change", facts, live, simple)
	if err != nil {
		return err
	}
	same.Writes, one.Writes = written(changes), written(changed)
	first.Ratio = ratio(time.Duration(first.MS)*time.Millisecond, simple)
	rows := []generateRow{{Phase: "simple-loop", MS: simple.Milliseconds(), Ratio: 1, Apps: b.apps}, first, same, one}
	for _, r := range rows {
		if err := b.print(r); err != nil {
			return err
		}
	}
	if same.Writes != 0 || one.Writes != 1 {
		return fmt.Errorf("no change costs %d writes and one change %d", same.Writes, one.Writes)
	}
	return nil
}

// evaluate generates and compares with what is there.
func (b *generateBench) evaluate(phase string, facts *generateFacts, live []*v1alpha1.Application, simple time.Duration) (generateRow, []generate.Change, error) {
	resetPeak()
	before, _, _, err := usage(os.Getpid())
	if err != nil {
		return generateRow{}, nil, err
	}
	began := time.Now()
	res := generate.Generate(b.set, facts)
	d := generate.Decide(b.set, res, live, generate.Policy{Clusters: facts.clusters, Projects: []string{"default"}, HandOver: true})
	took := time.Since(began)
	after, _, _, err := usage(os.Getpid())
	if err != nil {
		return generateRow{}, nil, err
	}
	r := generateRow{Phase: phase, MS: took.Milliseconds(), Ratio: ratio(took, simple), Apps: len(res.Applications), Peak: peakMB(), CPU: round(after - before)}
	if res.Completeness != generate.Complete || len(d.Changes) != b.apps {
		return r, nil, fmt.Errorf("%s: %d changes, %s: %v", phase, len(d.Changes), res.Completeness, res.Errors)
	}
	memory, _, err := res.Memory.Encode(1 << 20)
	if err != nil {
		return r, nil, fmt.Errorf("%s: %w", phase, err)
	}
	r.Memory = len(memory)
	return r, d.Changes, nil
}

func written(changes []generate.Change) int {
	n := 0
	for _, c := range changes {
		if c.Verb != generate.Keep {
			n++
		}
	}
	return n
}

// simpleLoop is what one would write first: the set's template as one text,
// filled in for each element, decoded, and compared.
func (b *generateBench) simpleLoop(live []*v1alpha1.Application) (time.Duration, error) {
	text, err := json.Marshal(b.set.Spec.Template)
	if err != nil {
		return 0, fmt.Errorf("encode the template: %w", err)
	}
	// The quotes in its actions must be quotes again, and those of the one that it has are.
	text = bytes.ReplaceAll(text, []byte(`\"app-0042\"`), []byte(`"app-0042"`))
	tmpl, err := template.New("").Funcs(template.FuncMap{"lower": func(s string) string { return string(bytes.ToLower([]byte(s))) }}).Parse(string(text))
	if err != nil {
		return 0, fmt.Errorf("read the template: %w", err)
	}
	known := make(map[string]*v1alpha1.Application, len(live))
	for _, app := range live {
		known[app.Name] = app
	}
	began, same := time.Now(), 0
	for _, c := range b.clusters("v1") {
		for i := range generateDirectories {
			var out bytes.Buffer
			err := tmpl.Execute(&out, map[string]any{"name": c.Name, "metadata": map[string]any{"labels": c.Labels},
				"path": map[string]any{"path": "apps/" + appName(i), "basename": appName(i)}})
			if err != nil {
				return 0, fmt.Errorf("fill in the template: %w", err)
			}
			var app v1alpha1.Application
			if err := json.Unmarshal(out.Bytes(), &app); err != nil {
				return 0, fmt.Errorf("read what is filled in: %w", err)
			}
			if k := known[app.Name]; k != nil && reflect.DeepEqual(k.Spec, app.Spec) && reflect.DeepEqual(k.Labels, app.Labels) {
				same++
			}
		}
	}
	took := time.Since(began)
	if same != len(live) {
		return 0, fmt.Errorf("the simple loop finds %d of %d Applications unchanged", same, len(live))
	}
	return took, nil
}

func (b *generateBench) print(r generateRow) error {
	var err error
	if b.json {
		err = json.NewEncoder(b.out).Encode(r)
	} else {
		_, err = fmt.Fprintf(b.out, "%-20s %8.2fs  ratio %5.2f  applications %d  written %d  cpu %.1fs  peak %.0f MB  status %d bytes  memory %d bytes\n", r.Phase, float64(r.MS)/1000, r.Ratio,
			r.Apps, r.Writes, r.CPU, r.Peak, r.Status, r.Memory)
	}
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// mirror is where the controller of this bench keeps its mirrors.
func (b *generateBench) mirror() string { return filepath.Join(b.dir, "data") }
