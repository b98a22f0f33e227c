package policy_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/policy"
)

// cases is how many random projects each property is held against.
const cases = 100_000

type gk = v1alpha1.GroupKind

type restriction = v1alpha1.ClusterResourceRestriction

// randomProject has rules in all lists, of a small world, so that they meet.
func randomProject(r *rand.Rand) *v1alpha1.AppProject {
	return project(func(s *v1alpha1.AppProjectSpec) {
		for range r.IntN(4) {
			s.Destinations = append(s.Destinations, randomDest(r))
		}
		for range 1 + r.IntN(3) {
			s.SourceRepos = append(s.SourceRepos, pick(r, "", "", "!")+randomRepo(r))
		}
		for range r.IntN(3) {
			s.ClusterResourceWhitelist = append(s.ClusterResourceWhitelist, restriction{Group: pick(r, "", "g", "*"), Kind: pick(r, "K", "*", "[x"), Name: pick(r, "", "n*")})
		}
		for range r.IntN(2) {
			s.ClusterResourceBlacklist = append(s.ClusterResourceBlacklist, restriction{Group: pick(r, "", "g"), Kind: pick(r, "K", "L"), Name: pick(r, "", "m*")})
		}
		if r.IntN(2) == 0 {
			list := []gk{}
			for range r.IntN(3) {
				list = append(list, gk{Group: pick(r, "", "g", "*"), Kind: pick(r, "K", "*", "[x")})
			}
			s.NamespaceResourceWhitelist = &list
		}
		for range r.IntN(2) {
			s.NamespaceResourceBlacklist = append(s.NamespaceResourceBlacklist, gk{Group: pick(r, "", "g"), Kind: pick(r, "K", "L")})
		}
		for range r.IntN(2) {
			s.SourceNamespaces = append(s.SourceNamespaces, pick(r, "apps", "app*", "/^apps$/", "[x"))
		}
		s.PermitOnlyProjectScopedClusters = r.IntN(5) == 0
	})
}

func randomRepo(r *rand.Rand) string {
	return pick(r, "https://h/a", "https://h/*", "https://h/**", "*", "[x")
}

func randomQuestion(r *rand.Rand) policy.Question {
	cluster := randomCluster(r)
	q := policy.Question{Application: "x", ApplicationNamespace: pick(r, "argocd", "apps", "stranger"), ControlPlane: "argocd",
		Cluster: &cluster, Namespace: pick(r, "a", "b", "ab", "c")}
	switch r.IntN(3) {
	case 0:
		q.Source = pick(r, "https://h/a", "https://h/b/c", "https://x/y")
	case 1:
		q.Object, q.Namespaced = rutter.Ref{Group: pick(r, "", "g"), Kind: pick(r, "K", "L"), Namespace: q.Namespace, Name: pick(r, "n1", "m1")}, true
	case 2:
		q.Object = rutter.Ref{Group: pick(r, "", "g"), Kind: pick(r, "K", "L"), Name: pick(r, "n1", "m1")}
	}
	return q
}

func allowed(p *v1alpha1.AppProject, q policy.Question) bool {
	_, err := inForce(p).Decide(q)
	return err == nil
}

// denied is p with one more rule that denies.
func denied(r *rand.Rand, p *v1alpha1.AppProject) *v1alpha1.AppProject {
	out := p.DeepCopy()
	s := &out.Spec
	switch r.IntN(6) {
	case 0:
		deny := v1alpha1.ApplicationDestination{Namespace: pick(r, "!a", "!a*", "![x", "!b")}
		switch r.IntN(3) {
		case 0:
			deny.Server = pick(r, "https://one", "*")
		case 1:
			deny.Name = pick(r, "one", "t*")
		}
		s.Destinations = slices.Insert(s.Destinations, r.IntN(len(s.Destinations)+1), deny)
	case 1:
		s.Destinations = append(s.Destinations, v1alpha1.ApplicationDestination{Server: "!" + pick(r, "https://one", "https://two", "[x"), Namespace: pick(r, "", "*", "a")})
	case 2:
		s.SourceRepos = slices.Insert(s.SourceRepos, r.IntN(len(s.SourceRepos)+1), "!"+randomRepo(r))
	case 3:
		s.ClusterResourceBlacklist = append(s.ClusterResourceBlacklist, restriction{Group: pick(r, "", "g", "*"), Kind: pick(r, "K", "*", "[x"), Name: pick(r, "", "n*")})
	case 4:
		s.NamespaceResourceBlacklist = append(s.NamespaceResourceBlacklist, gk{Group: pick(r, "", "g", "*"), Kind: pick(r, "K", "*", "[x")})
	case 5:
		s.PermitOnlyProjectScopedClusters = true
	}
	return out
}

// without is p with one rule less that allows; false where it has none in the
// list that was drawn.
func without(r *rand.Rand, p *v1alpha1.AppProject) (*v1alpha1.AppProject, bool) {
	out := p.DeepCopy()
	s := &out.Spec
	switch r.IntN(5) {
	case 0:
		return out, drop(r, &s.Destinations, func(d dest) bool { return !denies(d) })
	case 1:
		return out, drop(r, &s.SourceRepos, func(t string) bool { return t[0] != '!' })
	case 2:
		return out, drop(r, &s.ClusterResourceWhitelist, func(restriction) bool { return true })
	case 3:
		return out, s.NamespaceResourceWhitelist != nil && drop(r, s.NamespaceResourceWhitelist, func(gk) bool { return true })
	}
	return out, drop(r, &s.SourceNamespaces, func(string) bool { return true })
}

func drop[T any](r *rand.Rand, list *[]T, allows func(T) bool) bool {
	if len(*list) == 0 {
		return false
	}
	i := r.IntN(len(*list))
	if !allows((*list)[i]) {
		return false
	}
	*list = slices.Delete(*list, i, i+1)
	return true
}

// TestNeverWidens: one more rule that denies, and one rule less that allows,
// never allow what was not allowed before, whatever is asked.
func TestNeverWidens(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for name, change := range map[string]func(*v1alpha1.AppProject) (*v1alpha1.AppProject, bool){
		"a denial more":     func(p *v1alpha1.AppProject) (*v1alpha1.AppProject, bool) { return denied(r, p), true },
		"a permission less": func(p *v1alpha1.AppProject) (*v1alpha1.AppProject, bool) { return without(r, p) },
	} {
		asked, yes, taken := 0, 0, 0
		for asked < cases {
			before := randomProject(r)
			after, ok := change(before)
			if !ok {
				continue
			}
			asked++
			q := randomQuestion(r)
			was, is := allowed(before, q), allowed(after, q)
			switch {
			case !was && is:
				t.Fatalf("%s allows %+v:\n%+v\n%+v", name, q, before.Spec, after.Spec)
			case was && !is:
				taken++
			case was:
				yes++
			}
		}
		if yes == 0 || taken == 0 {
			t.Errorf("%s: of %d questions %d stay allowed and %d become denied: the cases say nothing", name, asked, yes, taken)
		}
	}
}

// TestAdmissionAndApplyAgree: what the Application was admitted for is decided in
// the same way when an object of it is applied. Where the destination is denied no
// object may go there, and an object that may go there goes to an admitted one.
func TestAdmissionAndApplyAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	both, one := 0, 0
	for range cases {
		p := inForce(randomProject(r))
		q := randomQuestion(r)
		q.Source, q.Namespaced = "", true
		q.Object = rutter.Ref{Group: pick(r, "", "g"), Kind: pick(r, "K", "L"), Namespace: q.Namespace, Name: "n"}
		admission := q
		admission.Object = rutter.Ref{}
		_, admitted := p.Decide(admission)
		_, applied := p.Decide(q)
		if admitted != nil && applied == nil {
			t.Fatalf("the destination is denied (%v) and the object is applied: %+v", admitted, q)
		}
		if admitted == nil {
			_, kind := p.Kind(q.Object, true)
			if (kind == nil) != (applied == nil) {
				t.Fatalf("an admitted destination and the kind's rule (%v) say something else than apply (%v)", kind, applied)
			}
			both++
		} else {
			one++
		}
		// The functions that admission and apply call by themselves are the evaluator's.
		if err := p.CheckSourceNamespace(q.Application, q.ApplicationNamespace, q.ControlPlane); err == nil {
			if (p.CheckDestination(*q.Cluster, q.Namespace) == nil) != (admitted == nil) || (p.CheckResource(*q.Cluster, q.Object, true) == nil) != (applied == nil) {
				t.Fatalf("the parts say something else than the whole: %+v", q)
			}
		}
	}
	if both == 0 || one == 0 {
		t.Errorf("%d admitted, %d not: the cases say nothing", both, one)
	}
}
