package git

import (
	"testing"

	"github.com/rutterhq/rutter"
)

func TestChoose(t *testing.T) {
	pw := func(url, name, project string, template bool) rutter.RepoCredential {
		return rutter.RepoCredential{URL: url, Name: name, Project: project, Template: template, Username: "u", Password: name}
	}
	keys := newKeyring([]rutter.RepoCredential{
		pw("https://git.example.com/org/app", "exact", "", false),
		pw("https://git.example.com/org/app.git", "exact-team", "team", false),
		pw("https://git.example.com/org/other", "foreign", "foreign", false),
		{URL: "https://git.example.com/org/bare", Insecure: true},
		pw("https://git.example.com", "host", "", true),
		pw("https://git.example.com/Org/", "org", "", true),
		pw("https://git.example.com/org/sub", "sub", "", true),
		pw("https://git.example.com/org/sub", "sub-team", "team", true),
		pw("git@git.example.com:org", "ssh-org", "", true),
		{URL: "https://git.example.com/org/app", Type: "helm", Name: "helm", Password: "helm"},
	}, rutter.RepoTrust{KnownHosts: "known", CAs: map[string]string{"Git.example.com": "ca", "git.example.com:8443": "ca-port"}})
	tests := []struct{ url, project, want, reason string }{
		{"https://git.example.com/org/app", "", "exact", "the repository's own"},
		{"https://git.example.com/org/app.git", "default", "exact", "whatever its spelling"},
		{"https://GIT.example.com/org/app/", "team", "exact-team", "a project's own before an unscoped one"},
		{"https://git.example.com/org/other", "team", "org", "another project's does not exist"},
		{"https://git.example.com/org/other", "", "org", "nor for who has no project"},
		{"https://git.example.com/org/other", "foreign", "foreign", ""},
		{"https://git.example.com/org/bare", "", "org", "an entry without a login takes a template's"},
		{"https://git.example.com/org/sub/x", "", "sub", "the longest prefix"},
		{"https://git.example.com/org/sub/x", "team", "sub-team", ""},
		{"https://git.example.com/zzz/x", "", "host", ""},
		{"https://git.example.com.evil.org/org/app", "", "", "another host that begins alike"},
		{"https://git.example.com:8443/org/app", "", "", "another port"},
		{"http://git.example.com/org/app", "", "", "another scheme"},
		{"https://evil@git.example.com/org/app", "", "exact", "a user in the URL is no other repository"},
		{"https://git.example.com@evil.org/org/app", "", "", "userinfo that looks like the host"},
		{"git@git.example.com:org/app", "", "ssh-org", "scp form"},
		{"ssh://git@git.example.com/org/app.git", "", "ssh-org", ""},
		{"ssh://root@git.example.com/org/app.git", "", "", "another user"},
	}
	for _, tt := range tests {
		l, err := parseLocation(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := keys.choose(l, tt.project); got.cred.Password != tt.want {
			t.Errorf("choose(%s, %q) = %q, want %q (%s)", tt.url, tt.project, got.cred.Password, tt.want, tt.reason)
		}
	}
	l, _ := parseLocation("https://git.example.com/org/bare")
	if a := keys.choose(l, ""); !a.cred.Insecure || a.ca != "ca" || a.knownHosts != "" || a.path != "org" {
		t.Errorf("the entry's own settings are lost: %+v", a)
	}
	if l, _ = parseLocation("https://git.example.com:8443/x"); keys.choose(l, "").ca != "ca-port" {
		t.Error("a certificate for a host and port is not found")
	}
}

func TestScopeSeparatesMirrors(t *testing.T) {
	l, _ := parseLocation("https://h/x")
	scope := func(c ...rutter.RepoCredential) access { return newKeyring(c, rutter.RepoTrust{}).choose(l, "p") }
	one := rutter.RepoCredential{URL: "https://h/x", Username: "u", Password: "1"}
	two, scoped := one, one
	two.Password = "2"
	scoped.Project = "p"
	if a, b := scope(one), scope(two); a.scope() != b.scope() || a.digest == b.digest {
		t.Error("a rotated password must keep its mirror and forget its answers")
	}
	if scope(one).scope() == scope(scoped).scope() || scope(one).scope() == scope().scope() {
		t.Error("different credentials share a mirror")
	}
}
