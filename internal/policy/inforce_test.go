package policy_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/policy"
)

// TestWindows: which windows concern an application, by one of the lists or by all.
func TestWindows(t *testing.T) {
	cluster := &rutter.ClusterInfo{Name: "prod", Server: "https://prod"}
	for name, tc := range map[string]struct {
		window v1alpha1.SyncWindow
		want   bool
	}{
		"application":             {v1alpha1.SyncWindow{Applications: []string{"shop-*"}}, true},
		"another application":     {v1alpha1.SyncWindow{Applications: []string{"web"}}, false},
		"namespace":               {v1alpha1.SyncWindow{Namespaces: []string{"ns"}}, true},
		"cluster by name":         {v1alpha1.SyncWindow{Clusters: []string{"prod"}}, true},
		"cluster by server":       {v1alpha1.SyncWindow{Clusters: []string{"https://pr*"}}, true},
		"one of two":              {v1alpha1.SyncWindow{Applications: []string{"web"}, Clusters: []string{"prod"}}, true},
		"both":                    {v1alpha1.SyncWindow{Applications: []string{"shop-*"}, Clusters: []string{"prod"}, UseAndOperator: true}, true},
		"not both":                {v1alpha1.SyncWindow{Applications: []string{"web"}, Clusters: []string{"prod"}, UseAndOperator: true}, false},
		"and, with what is there": {v1alpha1.SyncWindow{Clusters: []string{"prod"}, UseAndOperator: true}, true},
		"nothing is listed":       {v1alpha1.SyncWindow{UseAndOperator: true}, false},
		"unreadable":              {v1alpha1.SyncWindow{Applications: []string{"[x"}}, true},
	} {
		tc.window.Kind, tc.window.Schedule, tc.window.Duration = "deny", "0 0 * * *", "1h"
		p := inForce(project(func(s *v1alpha1.AppProjectSpec) { s.SyncWindows = []v1alpha1.SyncWindow{tc.window} }))
		got := p.Windows("shop-a", rutter.Target{Name: "prod", Namespace: "ns"}, cluster)
		if (len(got) == 1) != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
		if name == "unreadable" && got[0].Problem == "" {
			t.Error("a window that cannot be read does not say so")
		}
	}
}

// TestGlobals: what a global project has is added, its denials too; a list of
// kinds makes one of a project that had none.
func TestGlobals(t *testing.T) {
	own := project(func(s *v1alpha1.AppProjectSpec) {
		s.Destinations = []dest{{Server: "https://one", Namespace: "a"}}
	})
	own.Labels = map[string]string{"tier": "prod"}
	everybody := project(func(s *v1alpha1.AppProjectSpec) {
		s.Destinations = []dest{{Server: "https://two", Namespace: "b"}, {Server: "https://one", Namespace: "!secret"}}
		s.NamespaceResourceWhitelist = &[]gk{{Kind: "ConfigMap"}}
		s.SyncWindows = []v1alpha1.SyncWindow{{Kind: "deny", Schedule: "* * * * *", Duration: "1h", Applications: []string{"*"}}}
		s.SourceNamespaces = []string{"apps"}
	})
	everybody.Name = "everybody"
	settings := []policy.GlobalProject{
		{ProjectName: "everybody", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}},
		{ProjectName: "nobody", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}},
		{ProjectName: "others", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "test"}}},
	}
	globals, problems := policy.Globals(own, settings, func(name string) (*v1alpha1.AppProject, bool) { return everybody, name == "everybody" })
	if len(globals) != 1 || len(problems) != 1 || !strings.Contains(problems[0].Error(), `globalProjects[1]: AppProject "nobody" does not exist`) {
		t.Fatalf("%v %v", globals, problems)
	}
	p := policy.New(own, policy.Around{Global: globals, Repositories: []string{"https://git.example.com/own.git"}})
	two := rutter.ClusterInfo{Name: "two", Server: "https://two"}
	if rule, err := p.Destination(two, "b"); err != nil || !strings.Contains(rule, "of global AppProject everybody") {
		t.Errorf("inherited: %q %v", rule, err)
	}
	if err := p.CheckResource(two, rutter.Ref{Kind: "Secret", Namespace: "b"}, true); err == nil {
		t.Error("the inherited list of kinds is not in force")
	}
	if len(p.AllWindows()) != 1 || p.CheckSourceNamespace("x", "apps", "argocd") == nil {
		t.Error("sync windows are inherited, source namespaces are not")
	}
	if rule, err := p.Source("https://GIT.example.com/own"); err != nil || !strings.Contains(rule, "scoped to AppProject") {
		t.Errorf("a repository of its own: %q %v", rule, err)
	}
	if again, _ := policy.Globals(everybody, settings[:1], nil); len(again) != 0 {
		t.Error("a project inherits from itself")
	}
}

// TestSignatureRule: who has to sign, and what counts as signed.
func TestSignatureRule(t *testing.T) {
	p := inForce(project(func(s *v1alpha1.AppProjectSpec) {
		s.SignatureKeys = []v1alpha1.SignatureKey{{KeyID: "4AEE18F83AFDEB23"}, {KeyID: "SHA256:abc"}}
	}))
	rule, err := p.SignatureRule("https://h/a")
	if err != nil || !rule.Demands() {
		t.Fatalf("%+v %v", rule, err)
	}
	for name, tc := range map[string]struct {
		signature rutter.Signature
		want      string
	}{
		"long id":          {rutter.Signature{Keys: []string{"4AEE18F83AFDEB23"}}, ""},
		"fingerprint":      {rutter.Signature{Keys: []string{"5DE3E0509C47EA3CF04A42D34AEE18F83AFDEB23"}}, ""},
		"part of the key":  {rutter.Signature{Keys: []string{"0000000000000001", "5DE3E0509C47EA3CF04A42D34AEE18F83AFDEB23"}}, ""},
		"ssh":              {rutter.Signature{Keys: []string{"SHA256:abc"}}, ""},
		"the end of ssh":   {rutter.Signature{Keys: []string{"SHA256:xabc"}}, "none of the keys"},
		"a short id":       {rutter.Signature{Keys: []string{"3AFDEB23"}}, "none of the keys"},
		"another":          {rutter.Signature{Object: "commit 1", Keys: []string{"0000000000000001"}}, "commit 1 is signed with key 0000000000000001, which is none of the keys 4AEE18F83AFDEB23, SHA256:abc of spec.signatureKeys"},
		"none":             {rutter.Signature{Object: "commit 1"}, "commit 1 is not signed, and spec.signatureKeys of AppProject team demands it"},
		"it does not hold": {rutter.Signature{Keys: []string{"SHA256:abc"}, Invalid: "changed"}, "does not hold: changed"},
	} {
		err := rule.Check(tc.signature)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOrphan: what counts as an orphan.
func TestOrphan(t *testing.T) {
	p := inForce(project(func(s *v1alpha1.AppProjectSpec) {
		s.Destinations = []dest{{Server: "*", Namespace: "a"}}
		s.NamespaceResourceBlacklist = []gk{{Kind: "Secret"}}
		s.OrphanedResources = &v1alpha1.OrphanedResources{Ignore: []v1alpha1.OrphanedResourceKey{{Kind: "ConfigMap", Name: "kept-*"}, {Group: "apps"}}}
	}))
	for _, tc := range []struct {
		ref  rutter.Ref
		want bool
	}{
		{rutter.Ref{Kind: "ConfigMap", Namespace: "a", Name: "x"}, true},
		{rutter.Ref{Kind: "ConfigMap", Namespace: "a", Name: "kept-1"}, false},
		{rutter.Ref{Group: "example.com", Kind: "ConfigMap", Namespace: "a", Name: "kept-1"}, true},
		{rutter.Ref{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "x"}, false},
		{rutter.Ref{Kind: "Secret", Namespace: "a", Name: "x"}, false},
		{rutter.Ref{Kind: "ConfigMap", Namespace: "b", Name: "x"}, false},
		{rutter.Ref{Kind: "ConfigMap", Namespace: "a", Name: "kube-root-ca.crt"}, false},
		{rutter.Ref{Kind: "ServiceAccount", Namespace: "a", Name: "default"}, false},
		{rutter.Ref{Kind: "Service", Namespace: "a", Name: "kubernetes"}, true},
		{rutter.Ref{Kind: "Event", Namespace: "a", Name: "x"}, false},
	} {
		if got := p.Orphan(rutter.ClusterInfo{Server: "https://one"}, tc.ref); got != tc.want {
			t.Errorf("%s: %v", tc.ref, got)
		}
	}
}

// TestWarnings: what is wider than it looks, or looks like something else.
func TestWarnings(t *testing.T) {
	p := project(func(s *v1alpha1.AppProjectSpec) {
		s.SourceRepos = []string{"*", "https://github.com/**", "https://*/org/**", "https://github.com/org*/**", "https://githυb.com/org/a", "http://h.example/a", "https://githud.com/org/a", "https://gith" + "ub.corn/org/a"}
		s.Destinations = []dest{{Server: "*", Namespace: "*"}}
		s.SourceNamespaces = []string{"/apps/"}
	})
	var fields []string
	for _, w := range policy.Warnings(p) {
		fields = append(fields, w.Field)
	}
	for _, field := range []string{"spec.sourceRepos[0]", "spec.sourceRepos[1]", "spec.sourceRepos[2]", "spec.sourceRepos[3]", "spec.sourceRepos[4]", "spec.sourceRepos[5]", "spec.sourceRepos[7]", "spec.destinations[0]", "spec.sourceNamespaces[0]"} {
		if !slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, field) }) {
			t.Errorf("no warning of %s: %v", field, fields)
		}
	}
	narrow := project(func(s *v1alpha1.AppProjectSpec) {
		s.SourceRepos = []string{"https://github.com/org/**"}
		s.Destinations = []dest{{Name: "prod", Namespace: "shop"}}
	})
	if w := policy.Warnings(narrow); len(w) > 0 {
		t.Errorf("%+v", w)
	}
}
