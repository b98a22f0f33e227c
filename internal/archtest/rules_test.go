package archtest

import (
	"strings"
	"testing"
)

// TestImportsCatch shows each ring breaches of it, and what says so.
func TestImportsCatch(t *testing.T) {
	const (
		notRing  = "not allowed for this ring"
		notWorld = "does not touch the world"
		notLib   = "not one of the ring's libraries"
	)
	in := func(p string) string { return module + "/internal/" + p }
	for _, c := range []struct{ reason, from, to, want string }{
		{"the vocabulary does no I/O", module, "os", notWorld},
		{"nor by a package below", module, "net/http/httptest", notWorld},
		{"nor runs anything", module, "os/exec", notWorld},
		{"the vocabulary is at the bottom", module, in("plan"), notRing},
		{"the vocabulary knows three packages of apimachinery", module, "k8s.io/apimachinery/pkg/apis/meta/v1", notLib},
		{"API types are data", module + "/api/argoproj/v1alpha1", "net/http", notWorld},
		{"API types know nothing of ours", module + "/api/argoproj/v1alpha1", in("plan"), notRing},
		{"API types have no client", module + "/api/rutter/v1alpha1", "sigs.k8s.io/controller-runtime/pkg/scheme", notLib},
		{"embedded files are files", module + "/deploy", in("daemon"), notRing},
		{"a decider does not log", in("plan"), "log/slog", notWorld},
		{"a decider has no context", in("health"), "context", notWorld},
		{"a decider reads no file", in("compare"), "os", notWorld},
		{"a decider has no chance", in("rollout"), "math/rand/v2", notWorld},
		{"a decider has no lock", in("inventory"), "sync", notWorld},
		{"a decider has no network", in("compare"), "net", notWorld},
		{"a decider runs nothing", in("generate"), "os/exec", notWorld},
		{"a decider's paths are slashed", in("generate"), "path/filepath", notWorld},
		{"a decider has no client", in("compare"), "k8s.io/client-go/rest", notLib},
		{"a decider has no controller", in("dialect/argo"), "sigs.k8s.io/controller-runtime/pkg/client", notLib},
		{"a decider waits for nothing", in("plan"), "k8s.io/apimachinery/pkg/util/wait", notLib},
		{"a name that only begins alike is another library", in("policy"), "github.com/gobwas/globber", notLib},
		{"a decider does not know a dialect", in("compare"), in("dialect/argo"), notRing},
		{"nor its types", in("plan"), module + "/api/argoproj/v1alpha1", notRing},
		{"nor an adapter", in("generate"), in("source/git"), notRing},
		{"one dialect does not know the other", in("dialect/argo"), in("dialect/flux"), notRing},
		{"apply knows ports, not clusters", in("apply"), in("cluster"), notRing},
		{"apply has no client", in("apply"), "k8s.io/client-go/dynamic", notLib},
		{"siblings", in("cluster"), in("source/git"), notRing},
		{"siblings of one family", in("source/git"), in("source/oci"), notRing},
		{"render knows no source", in("render/helm"), in("source/git"), notRing},
		{"an adapter does not know the engine", in("notify"), in("engine"), notRing},
		{"an adapter does not decide", in("cluster"), in("compare"), notRing},
		{"the engine knows no cluster", in("engine"), in("cluster"), notRing},
		{"the engine knows no renderer", in("engine"), in("render/store"), notRing},
		{"the engine knows no dialect", in("engine"), in("dialect/argo"), notRing},
		{"the engine knows no dialect's rules", in("engine"), in("policy"), notRing},
		{"the engine has no client", in("engine"), "k8s.io/client-go/kubernetes", notLib},
		{"the engine reads no file", in("engine"), "os", notWorld},
		{"a command line knows no adapter", in("cli"), in("cluster"), notRing},
		{"a controller knows no adapter", in("controller/argo"), in("source/git"), notRing},
		{"an HTTP side knows no adapter", in("httpapi"), in("render"), notRing},
		{"a driver does not know the composition root", in("controller/argo"), in("daemon"), notRing},
		{"one driver does not know the other", in("cli"), in("httpapi"), notRing},
		{"the composition root is used by main", in("testenv"), in("daemon"), notRing},
		{"test clusters are for tests", in("daemon"), in("testenv"), notRing},
		{"main is not a test", module + "/cmd/rutter", in("testenv"), notRing},
		{"the rules are imported by nobody", module + "/bench", in("archtest"), notRing},
		{"Kubernetes itself is a child process", in("local"), module + "/localcluster/internal/node", "module of its own"},
		{"also for the composition root", in("daemon"), module + "/localcluster/internal/node", "module of its own"},
		{"no C", in("source/git"), "C", "everything is Go"},
		{"a new package names its ring", in("stray"), "fmt", "belongs to no ring"},
		{"a name that only begins alike is in no ring", in("planner"), "fmt", "belongs to no ring"},
	} {
		got := Imports(Package{ImportPath: c.from, Imports: []string{c.to}})
		if len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: %s imports %s: got %q, want one with %q", c.reason, c.from, c.to, got, c.want)
		}
	}
}

// TestImportsAllow shows that the rings leave room for the work.
func TestImportsAllow(t *testing.T) {
	in := func(p string) string { return module + "/internal/" + p }
	for _, c := range []struct{ from, to string }{
		{module, "context"}, // ports take one
		{module, "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"},
		{in("plan"), module},
		{in("plan"), in("inventory")},
		{in("plan"), "time"},
		{in("compare"), "k8s.io/apimachinery/pkg/api/resource"},
		{in("generate"), module + "/api/argoproj/v1alpha1"},
		{in("dialect/argo"), in("policy")},
		{in("dialect/argo"), in("dialect/argo/status")},
		{in("engine"), in("apply")},
		{in("engine"), in("compare")},
		{in("render"), in("render/helm")},
		{in("render/helm"), in("render/record")},
		{in("render/helm"), "helm.sh/helm/v4/pkg/engine"},
		{in("source/git"), in("source/git/ssh")},
		{in("cluster"), "k8s.io/client-go/rest"},
		{in("cli"), in("generate")},
		{in("controller/argo"), in("engine")},
		{in("daemon"), in("cluster")},
		{module + "/cmd/rutter", in("daemon")},
		{module + "/bench", in("testenv")},
	} {
		if got := Imports(Package{ImportPath: c.from, Imports: []string{c.to}}); len(got) > 0 {
			t.Errorf("%s imports %s: %q", c.from, c.to, got)
		}
	}
}

// TestReachCatches: what is forbidden may not come in through a third package.
func TestReachCatches(t *testing.T) {
	for _, c := range []struct{ from, through, dep string }{
		{module, "k8s.io/apimachinery/pkg/types", "k8s.io/client-go/rest"},
		{module + "/internal/plan", module, "sigs.k8s.io/controller-runtime/pkg/client"},
		{module + "/internal/engine", module + "/internal/apply", "k8s.io/client-go/rest"},
		{module + "/internal/engine", module + "/internal/plan", module + "/api/argoproj/v1alpha1"},
		{module + "/internal/dialect/argo", module, "helm.sh/helm/v4/pkg/engine"},
	} {
		got := Imports(Package{ImportPath: c.from, Imports: []string{c.through}, Deps: []string{c.through, c.dep}})
		if len(got) != 1 || !strings.Contains(got[0], "reaches "+c.dep) {
			t.Errorf("%s reaches %s: got %q", c.from, c.dep, got)
		}
	}
	if got := Imports(Package{ImportPath: module + "/internal/cluster", Deps: []string{"k8s.io/client-go/rest"}}); len(got) > 0 {
		t.Errorf("an adapter has a client: %q", got)
	}
}

// TestRingsAreTold checks the table itself: every package that a ring may import
// has a ring, so that a renamed package leaves no dead permission behind.
func TestRingsAreTold(t *testing.T) {
	for _, r := range rings {
		for _, to := range r.inside {
			if ringOf(Package{ImportPath: strings.TrimSuffix(module+"/"+to, "/")}) == nil {
				t.Errorf("ring %s may import %q, which has no ring", r.name, to)
			}
		}
	}
}
