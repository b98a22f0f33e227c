package policy_test

import (
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/policy"
)

func project(edit func(*v1alpha1.AppProjectSpec)) *v1alpha1.AppProject {
	p := &v1alpha1.AppProject{}
	p.Name = "team"
	edit(&p.Spec)
	return p
}

func inForce(p *v1alpha1.AppProject) *policy.Project { return policy.New(p, policy.Around{}) }

// check compares an answer with the wanted one: "" for allowed, else a part of the refusal.
func check(t *testing.T, err error, want, reason string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v\nit is allowed because %s", err, reason)
	case want != "" && err == nil:
		t.Errorf("allowed\nit is refused because %s", reason)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("refused with %q, which does not say %q (%s)", err, want, reason)
	case want != "" && rutter.CodeOf(err) != rutter.CodeForbidden:
		t.Errorf("code is %s, want forbidden", rutter.CodeOf(err))
	}
}

func TestCheckSource(t *testing.T) {
	for _, tc := range []struct {
		name   string
		repos  []string
		url    string
		want   string
		reason string
	}{
		{"star", []string{"*"}, "https://github.com/org/repo", "", "a bare * matches everything, slashes too"},
		{"none", nil, "https://github.com/org/repo", "no entry of spec.sourceRepos", "a project without sources allows none"},
		{"one segment", []string{"https://github.com/org/*"}, "https://github.com/org/repo.git", "", ".git does not count"},
		{"star stops at slash", []string{"https://github.com/*"}, "https://github.com/org/repo", "no entry", "* does not cross /"},
		{"double star", []string{"https://github.com/**"}, "https://github.com/org/repo", "", "** crosses /"},
		{"scp and ssh", []string{"git@github.com:org/*"}, "ssh://git@github.com/org/Repo.git", "", "both spellings are one repository"},
		{"case", []string{"https://GitHub.com/Org/repo"}, "https://github.com/org/REPO", "", "URLs are compared in lower case"},
		{"deny wins", []string{"*", "!https://github.com/org/secret"}, "https://github.com/org/secret.git", `spec.sourceRepos[1] of AppProject team ("!https://github.com/org/secret")`, "the answer names the rule"},
		{"only denies", []string{"!https://github.com/org/secret"}, "https://github.com/org/other", "no entry", "a rule that denies allows nothing (B54)"},
		{"unreadable allow", []string{"https://github.com/[org/*"}, "https://github.com/org/x", "no entry", "what cannot be read allows nothing"},
		{"unreadable deny", []string{"*", "!https://github.com/[org/*"}, "https://github.com/org/x", "sourceRepos[1]", "what cannot be read denies everything"},
		{"dots", []string{"https://github.com/org/**"}, "https://github.com/org/../theirs/repo", "..", "a server resolves .. behind the pattern"},
		{"encoded dots", []string{"https://github.com/org/**"}, "https://github.com/org/%252e%252e/theirs", "..", "however often it is encoded"},
		{"scp dots", []string{"*"}, "git@host:../theirs", "..", "in the scp form too"},
		{"dots in a name", []string{"*"}, "https://github.com/org/a..b", "", "two dots within a name lead nowhere"},
		{"user trick", []string{"https://github.com/**"}, "https://github.com@evil.example/org/x", "no entry", "the host is what follows the @"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := project(func(s *v1alpha1.AppProjectSpec) { s.SourceRepos = tc.repos })
			check(t, inForce(p).CheckSource(tc.url), tc.want, tc.reason)
		})
	}
}

type dest = v1alpha1.ApplicationDestination

func TestCheckDestination(t *testing.T) {
	shared := rutter.ClusterInfo{Name: "prod", Server: "https://prod:6443"}
	for _, tc := range []struct {
		name      string
		dests     []dest
		cluster   rutter.ClusterInfo
		namespace string
		want      string
		reason    string
	}{
		{"by server", []dest{{Server: "https://prod:6443/", Namespace: "a"}}, shared, "a", "", "a trailing slash does not count"},
		{"by name", []dest{{Name: "pr*", Namespace: "a-*"}}, shared, "a-b", "", "the name is enough"},
		{"other namespace", []dest{{Server: "*", Namespace: "a"}}, shared, "b", "no entry of spec.destinations", "the namespace is not allowed"},
		{"glob crosses slash", []dest{{Server: "https*6443", Namespace: "*"}}, shared, "x", "", "these globs have no separators"},
		{"empty namespace pattern", []dest{{Server: "*"}}, shared, "a", "no entry", "an empty pattern matches only what is empty"},
		{"no cluster", []dest{{Namespace: "*"}}, shared, "a", "no entry", "an entry without a cluster allows none"},
		{"deny namespace", []dest{{Server: "*", Namespace: "*"}, {Server: "*", Namespace: "!kube-system"}}, shared, "kube-system", "spec.destinations[1]", "the answer names the rule"},
		{"deny namespace, another", []dest{{Server: "*", Namespace: "*"}, {Server: "*", Namespace: "!kube-system"}}, shared, "a", "", "the first entry allows it"},
		{"B54", []dest{{Server: "*", Namespace: "a"}, {Server: "*", Namespace: "!b"}, {Server: "*", Namespace: "!c"}}, shared, "d", "no entry", "denying b and c does not allow d"},
		{"deny namespace everywhere", []dest{{Server: "*", Namespace: "*"}, {Namespace: "!kube-*"}}, shared, "kube-system", "destinations[1]", "a denied namespace without a cluster is denied on all"},
		{"deny server", []dest{{Server: "*", Namespace: "*"}, {Server: "!https://prod:6443", Namespace: "*"}}, shared, "a", "destinations[1]", "the server is denied"},
		{"deny server in namespaces", []dest{{Server: "*", Namespace: "*"}, {Server: "!https://prod:6443", Namespace: "x"}}, shared, "a", "", "it is denied for x only"},
		{"deny server, no namespace", []dest{{Server: "*", Namespace: "*"}, {Server: "!https://prod:6443"}}, shared, "a", "destinations[1]", "without a namespace the whole cluster is meant"},
		{"deny name wins over its namespace", []dest{{Server: "*", Namespace: "*"}, {Name: "!prod", Namespace: "x"}}, shared, "a", "destinations[1]", "a denied name is denied whatever the namespace, as in the reference"},
		{"deny name in an entry that selects", []dest{{Server: "*", Name: "!prod", Namespace: "*"}}, shared, "a", "destinations[0]", "all but prod"},
		{"deny name in an entry that selects, another", []dest{{Server: "*", Name: "!stage", Namespace: "*"}}, shared, "a", "", "all but stage"},
		{"deny both", []dest{{Server: "*", Namespace: "*"}, {Server: "!https://prod:6443", Namespace: "!x"}}, shared, "x", "destinations[1]", "both negations deny"},
		{"deny by exclusion", []dest{{Server: "*", Namespace: "*"}, {Server: "!https://dev:6443", Namespace: "!x"}}, shared, "x", "destinations[1]", "x is denied on other clusters too"},
		{"unreadable deny", []dest{{Server: "*", Namespace: "*"}, {Server: "*", Namespace: "![kube"}}, shared, "a", "destinations[1]", "what cannot be read denies everything"},
		{"deny all", []dest{{Server: "*", Namespace: "*"}, {Server: "*", Namespace: "!*"}}, shared, "a", "destinations[1]", "!* denies all"},
		{"another project's", []dest{{Server: "*", Namespace: "*"}}, rutter.ClusterInfo{Name: "x", Server: "https://x", Project: "other"}, "a", "registered for project other only", "a private cluster is nobody else's"},
		{"own, named namespace", []dest{{Server: "https://hub", Namespace: "a"}}, rutter.ClusterInfo{Name: "x", Server: "https://x", Project: "team"}, "a", "", "its own cluster need not be listed"},
		{"B55", []dest{{Server: "https://hub", Namespace: "a"}}, rutter.ClusterInfo{Name: "x", Server: "https://x", Project: "team"}, "b", "no entry", "a private cluster is no way around the namespaces"},
		{"B55, listed", []dest{{Server: "https://x", Namespace: "a"}}, rutter.ClusterInfo{Name: "x", Server: "https://x", Project: "team"}, "b", "no entry", "nor when it is listed"},
		{"own, without rules", nil, rutter.ClusterInfo{Name: "x", Server: "https://x", Project: "team"}, "a", "no entry", "no rule allows any namespace"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := project(func(s *v1alpha1.AppProjectSpec) { s.Destinations = tc.dests })
			check(t, inForce(p).CheckDestination(tc.cluster, tc.namespace), tc.want, tc.reason)
		})
	}
}

func TestPermitOnlyProjectScopedClusters(t *testing.T) {
	p := project(func(s *v1alpha1.AppProjectSpec) {
		s.PermitOnlyProjectScopedClusters = true
		s.Destinations = []dest{{Server: "*", Namespace: "*"}}
	})
	check(t, inForce(p).CheckDestination(rutter.ClusterInfo{Server: "https://hub"}, "a"), "permitOnlyProjectScopedClusters", "the hub is not the project's own")
	check(t, inForce(p).CheckDestination(rutter.ClusterInfo{Server: "https://x", Project: "team"}, "a"), "", "it is its own")
}

func TestCheckResource(t *testing.T) {
	everywhere := []dest{{Server: "*", Namespace: "*"}}
	cluster := rutter.ClusterInfo{Name: "c", Server: "https://c"}
	deployment := rutter.Ref{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "web"}
	role := rutter.Ref{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "viewer"}
	for _, tc := range []struct {
		name       string
		spec       v1alpha1.AppProjectSpec
		ref        rutter.Ref
		namespaced bool
		want       string
		reason     string
	}{
		{"absent list", v1alpha1.AppProjectSpec{Destinations: everywhere}, deployment, true, "", "an absent list allows all namespaced kinds"},
		{"empty list", v1alpha1.AppProjectSpec{Destinations: everywhere, NamespaceResourceWhitelist: &[]v1alpha1.GroupKind{}}, deployment, true, "resource apps:Deployment is not permitted in project team: no entry of spec.namespaceResourceWhitelist", "an empty list allows none"},
		{"listed", v1alpha1.AppProjectSpec{Destinations: everywhere, NamespaceResourceWhitelist: &[]v1alpha1.GroupKind{{Group: "apps", Kind: "Dep*"}}}, deployment, true, "", "the pattern matches"},
		{"black", v1alpha1.AppProjectSpec{Destinations: everywhere, NamespaceResourceBlacklist: []v1alpha1.GroupKind{{Group: "*", Kind: "Secret"}, {Group: "apps", Kind: "*"}}}, deployment, true, "spec.namespaceResourceBlacklist[1]", "the second rule hits"},
		{"black cannot be read", v1alpha1.AppProjectSpec{Destinations: everywhere, NamespaceResourceBlacklist: []v1alpha1.GroupKind{{Group: "apps", Kind: "[Dep"}}}, deployment, true, "spec.namespaceResourceBlacklist[0]", "what cannot be read denies"},
		{"namespace", v1alpha1.AppProjectSpec{Destinations: []dest{{Server: "*", Namespace: "b"}}}, deployment, true, "spec.destinations", "the object's namespace counts, not the application's"},
		{"cluster kind", v1alpha1.AppProjectSpec{Destinations: everywhere}, role, false, "no entry of spec.clusterResourceWhitelist", "cluster-scoped kinds must be listed"},
		{"cluster kind listed", v1alpha1.AppProjectSpec{Destinations: everywhere, ClusterResourceWhitelist: []v1alpha1.ClusterResourceRestriction{{Group: "*", Kind: "*"}}}, role, false, "", "all are listed"},
		{"by name", v1alpha1.AppProjectSpec{Destinations: everywhere, ClusterResourceWhitelist: []v1alpha1.ClusterResourceRestriction{{Group: "*", Kind: "*", Name: "team-*"}}}, role, false, "clusterResourceWhitelist", "the name is not listed"},
		{"cluster black", v1alpha1.AppProjectSpec{Destinations: everywhere, ClusterResourceWhitelist: []v1alpha1.ClusterResourceRestriction{{Group: "*", Kind: "*"}}, ClusterResourceBlacklist: []v1alpha1.ClusterResourceRestriction{{Group: "*", Kind: "ClusterRole"}}}, role, false, "spec.clusterResourceBlacklist[0]", "it is denied"},
		{"cluster kind elsewhere", v1alpha1.AppProjectSpec{Destinations: []dest{{Server: "https://other", Namespace: "*"}}, ClusterResourceWhitelist: []v1alpha1.ClusterResourceRestriction{{Group: "*", Kind: "*"}}}, role, false, "spec.destinations", "an object without a namespace needs a permitted cluster too"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &v1alpha1.AppProject{Spec: tc.spec}
			p.Name = "team"
			check(t, inForce(p).CheckResource(cluster, tc.ref, tc.namespaced), tc.want, tc.reason)
		})
	}
}

func TestCheckSourceNamespace(t *testing.T) {
	p := project(func(s *v1alpha1.AppProjectSpec) { s.SourceNamespaces = []string{"team-*", `/^x[0-9]+$/`, "/[/"} })
	check(t, inForce(p).CheckSourceNamespace("app", "argocd", "argocd"), "", "the control plane's own")
	check(t, inForce(p).CheckSourceNamespace("app", "", "argocd"), "", "a file without a namespace is read as of the control plane's")
	check(t, inForce(p).CheckSourceNamespace("app", "team-a", "argocd"), "", "a glob")
	check(t, inForce(p).CheckSourceNamespace("app", "x12", "argocd"), "", "a regular expression")
	check(t, inForce(p).CheckSourceNamespace("app", "x12y", "argocd"), "application 'app' in namespace 'x12y' is not permitted to use project 'team'", "nothing allows it")
}
