package policy_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

const rounds = 5000

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

func randomDest(r *rand.Rand) dest {
	patterns := func(values ...string) string {
		return pick(r, "", "!", "") + pick(r, append(values, "*")...)
	}
	d := dest{Namespace: patterns("a", "b", "a*", "")}
	if r.IntN(3) > 0 {
		d.Server = patterns("https://one", "https://two", "https://*")
	}
	if r.IntN(2) > 0 {
		d.Name = patterns("one", "two", "t*")
	}
	return d
}

func randomCluster(r *rand.Rand) rutter.ClusterInfo {
	n := pick(r, "one", "two")
	return rutter.ClusterInfo{Name: n, Server: "https://" + n, Project: pick(r, "", "", "team", "other")}
}

func denies(d dest) bool {
	for _, f := range []string{d.Server, d.Name, d.Namespace} {
		if len(f) > 0 && f[0] == '!' {
			return true
		}
	}
	return false
}

// TestDenyNeverWidens is B54: an entry with a "!" in its only selector of a
// cluster, or in its namespace, takes away and never gives.
func TestDenyNeverWidens(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		var base []dest
		for range r.IntN(4) {
			base = append(base, randomDest(r))
		}
		deny := randomDest(r)
		if positive := deny.Server != "" && deny.Server[0] != '!' || deny.Name != "" && deny.Name[0] != '!'; !denies(deny) ||
			positive && (deny.Namespace == "" || deny.Namespace[0] != '!') {
			continue
		}
		cluster, ns := randomCluster(r), pick(r, "a", "b", "ab", "c")
		before := project(func(s *v1alpha1.AppProjectSpec) { s.Destinations = base })
		after := project(func(s *v1alpha1.AppProjectSpec) {
			s.Destinations = slices.Insert(slices.Clone(base), r.IntN(len(base)+1), deny)
		})
		for _, namespaced := range []bool{true, false} {
			for _, p := range []*v1alpha1.AppProject{before, after} {
				p.Spec.ClusterResourceWhitelist = []v1alpha1.ClusterResourceRestriction{{Group: "*", Kind: "*"}}
			}
			ref := rutter.Ref{Kind: "K", Namespace: ns, Name: "n"}
			if inForce(before).CheckResource(cluster, ref, namespaced) != nil && inForce(after).CheckResource(cluster, ref, namespaced) == nil {
				t.Fatalf("adding %+v to %+v allows namespace %s of %+v (namespaced %v)", deny, base, ns, cluster, namespaced)
			}
		}
	}
}

// TestOrderDoesNotMatter: a project is a set of rules.
func TestOrderDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range rounds {
		var dests []dest
		var repos []string
		for range r.IntN(5) {
			dests = append(dests, randomDest(r))
			repos = append(repos, pick(r, "", "!")+pick(r, "https://h/a", "https://h/*", "https://h/**", "*"))
		}
		p := project(func(s *v1alpha1.AppProjectSpec) { s.Destinations, s.SourceRepos = dests, repos })
		q := project(func(s *v1alpha1.AppProjectSpec) {
			s.Destinations, s.SourceRepos = slices.Clone(dests), slices.Clone(repos)
		})
		r.Shuffle(len(dests), func(i, j int) {
			q.Spec.Destinations[i], q.Spec.Destinations[j] = q.Spec.Destinations[j], q.Spec.Destinations[i]
			q.Spec.SourceRepos[i], q.Spec.SourceRepos[j] = q.Spec.SourceRepos[j], q.Spec.SourceRepos[i]
		})
		cluster, ns, url := randomCluster(r), pick(r, "a", "b", "c"), pick(r, "https://h/a", "https://h/b/c", "https://x/y")
		if (inForce(p).CheckDestination(cluster, ns) == nil) != (inForce(q).CheckDestination(cluster, ns) == nil) {
			t.Fatalf("the order of %+v decides on namespace %s of %+v", dests, ns, cluster)
		}
		if (inForce(p).CheckSource(url) == nil) != (inForce(q).CheckSource(url) == nil) {
			t.Fatalf("the order of %v decides on %s", repos, url)
		}
	}
}

// TestSourceDenyNeverWidens is B54 for repositories.
func TestSourceDenyNeverWidens(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range rounds {
		var repos []string
		for range r.IntN(4) {
			repos = append(repos, pick(r, "", "!")+pick(r, "https://h/a", "https://h/*", "https://h/**", "*", "[x"))
		}
		url := pick(r, "https://h/a", "https://h/b/c", "https://x/y")
		before := project(func(s *v1alpha1.AppProjectSpec) { s.SourceRepos = repos })
		after := project(func(s *v1alpha1.AppProjectSpec) {
			s.SourceRepos = append(slices.Clone(repos), "!"+pick(r, "https://h/a", "https://h/*", "https://z", "*", "[x"))
		})
		if inForce(before).CheckSource(url) != nil && inForce(after).CheckSource(url) == nil {
			t.Fatalf("adding a deny to %v allows %s", repos, url)
		}
	}
}

// TestPrivateClusterNeverWidens: registering a cluster for a project never
// allows a namespace that the project allows nowhere (B55), and never allows
// another project anything.
func TestPrivateClusterNeverWidens(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range rounds {
		var dests []dest
		for range r.IntN(4) {
			dests = append(dests, randomDest(r))
		}
		p := project(func(s *v1alpha1.AppProjectSpec) { s.Destinations = dests })
		ns := pick(r, "a", "b", "ab", "c")
		cluster := rutter.ClusterInfo{Name: "own", Server: "https://own", Project: "team"}
		if inForce(p).CheckDestination(cluster, ns) != nil {
			continue
		}
		if !slices.ContainsFunc(dests, func(d dest) bool {
			return d.Namespace == "*" || d.Namespace == ns || d.Namespace == "a*" && ns[0] == 'a'
		}) {
			t.Fatalf("namespace %s of the private cluster is allowed by none of %+v", ns, dests)
		}
		cluster.Project = "other"
		if inForce(p).CheckDestination(cluster, ns) == nil {
			t.Fatalf("another project's cluster is allowed by %+v", dests)
		}
	}
}
