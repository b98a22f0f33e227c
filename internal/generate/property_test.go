package generate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// randomFleet is a fleet and a set that has most generators, in either mode.
func randomFleet(t *testing.T, r *rand.Rand) (*facts, *v1alpha1.ApplicationSet) {
	t.Helper()
	f := &facts{}
	for i := range 3 + r.IntN(6) {
		f.clusters = append(f.clusters, member(fmt.Sprintf("c%d", i), fmt.Sprintf("env=e%d", r.IntN(2)), fmt.Sprintf("size=%d", i%3)))
	}
	files := map[string]string{}
	for i := range 1 + r.IntN(5) {
		files[fmt.Sprintf("apps/a%d/config.yaml", i)] = fmt.Sprintf("app: a%d\nreplicas: %d\n", i, i)
	}
	f.repos = singleRepo(files)
	generators := `- matrix:
    generators:
    - clusters: {values: {at: 'AT'}}
    - git: {repoURL: https://git.example.com/fleet, directories: [{path: apps/*}]}
    - merge:
        mergeKeys: [tier]
        generators:
        - list: {elements: [{tier: hot, v: '1'}, {tier: cold, v: '2'}]}
        - list: {elements: [{tier: cold, v: '3'}]}`
	if r.IntN(2) == 0 {
		return f, setOf(t, withTemplate(strings.ReplaceAll(generators, "AT", "{{name}}"), "{{name}}-{{path.basename}}-{{tier}}", "{{path}}/{{metadata.labels.env}}/{{values.at}}/{{v}}"))
	}
	return f, setOf(t, goTemplated(withTemplate(strings.ReplaceAll(generators, "AT", "{{.name}}"), "{{.name}}-{{.path.basename}}-{{.tier}}",
		"{{.path.path}}/{{.metadata.labels.env}}/{{.values.at}}/{{.v | upper}}"), "missingkey=error"))
}

// byName are the generated Applications.
func byName(t *testing.T, res generate.Result) map[string]*v1alpha1.Application {
	t.Helper()
	if res.Completeness != generate.Complete || problems(res) != "" {
		t.Fatalf("%s: %s", res.Completeness, problems(res))
	}
	out := map[string]*v1alpha1.Application{}
	for _, app := range res.Applications {
		out[app.Name] = app
	}
	return out
}

// TestClustersDoNotConcernEachOther: adding a cluster changes no other's
// Applications, and one that is taken out and put back has the same ones.
func TestClustersDoNotConcernEachOther(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		f, set := randomFleet(t, r)
		before := byName(t, generate.Generate(set, f))
		apps := liveOf(generate.Reconcile(set, generate.Generate(set, f), nil, generate.Policy{}))

		without := *f
		at := r.IntN(len(f.clusters))
		without.clusters = append(append(without.clusters[:0:0], f.clusters[:at]...), f.clusters[at+1:]...)
		fewer := byName(t, generate.Generate(set, &without))
		if len(fewer) >= len(before) {
			t.Fatalf("seed %d: %d Applications without a cluster, %d with it", seed, len(fewer), len(before))
		}
		for name, app := range fewer {
			if diff := cmp.Diff(before[name], app); diff != "" {
				t.Fatalf("seed %d: %s depends on a cluster that is not its own:\n%s", seed, name, diff)
			}
		}
		for _, c := range generate.Reconcile(set, generate.Generate(set, &without), apps, generate.Policy{}) {
			if _, stays := fewer[c.Name]; stays != (c.Verb == generate.Keep) {
				t.Fatalf("seed %d: %s is %s", seed, c.Name, c.Verb)
			}
		}
		r.Shuffle(len(f.clusters), func(i, j int) { f.clusters[i], f.clusters[j] = f.clusters[j], f.clusters[i] })
		if diff := cmp.Diff(before, byName(t, generate.Generate(set, f))); diff != "" {
			t.Fatalf("seed %d: put back, it has other Applications:\n%s", seed, diff)
		}
	}
}

// TestOutagesNeverDelete: whatever fails, and whatever is remembered, no
// Application that was there is proposed to go.
func TestOutagesNeverDelete(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		f, set := randomFleet(t, r)
		good := generate.Generate(set, f)
		apps := liveOf(generate.Reconcile(set, good, nil, generate.Policy{}))
		broken := *f
		switch r.IntN(3) {
		case 0:
			broken.clustersErr = fmt.Errorf("down")
		case 1:
			broken.repos = nil
		default:
			broken.clustersErr, broken.repos = fmt.Errorf("down"), nil
		}
		opts := generate.Options{}
		if r.IntN(2) == 0 {
			opts.Memory = remembered(t, good)
		}
		res := opts.Generate(set, &broken)
		if res.Completeness == generate.Complete || len(res.Errors) == 0 {
			t.Fatalf("seed %d: an outage is no complete answer", seed)
		}
		for _, c := range generate.Reconcile(set, res, apps, generate.Policy{HandOver: true}) {
			if c.Verb != generate.Keep {
				t.Fatalf("seed %d: %s is %s (%s)", seed, c.Name, c.Verb, c.Reason)
			}
		}
		if opts.Memory.Len() > 0 {
			if diff := cmp.Diff(good.Applications, res.Applications); diff != "" {
				t.Fatalf("seed %d: what is remembered is in force:\n%s", seed, diff)
			}
		}
	}
}
