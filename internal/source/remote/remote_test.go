package remote

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
)

func TestAddresses(t *testing.T) {
	tests := []struct {
		raw      string
		registry bool
		want     string
		problem  string
	}{
		{raw: "https://Charts.Example.com:443/Stable/", want: "https://charts.example.com/Stable"},
		{raw: " http://h:80/a//b/ ", want: "http://h/a//b"},
		{raw: "https://u:p-w@h/a?sig=p-w", want: "https://h/a"},
		{raw: "https://[::1]:8443/x", want: "https://[::1]:8443/x"},
		{raw: "https://h/a/../b", problem: "path with . or .."},
		{raw: "https://h/a/%2e%2e/b", problem: "path with . or .."},
		{raw: `https://h/a\b`, problem: "characters"},
		{raw: "https://h/a%5cb", problem: "backslash"},
		{raw: "https://h/a%00b", problem: "path with"},
		{raw: "https://h/a#b", problem: "fragment"},
		{raw: "https:///a", problem: "no valid host name"},
		{raw: "https://-h/a", problem: "no valid host name"},
		{raw: "https://h h/a", problem: "characters"},
		{raw: "https://h/\x1b[0m", problem: "characters"},
		{raw: "https://u:p-w@h:port/x", problem: "cannot be parsed"},
		{raw: "gopher://u:p-w@h/x", problem: "not allowed"},
		{raw: "file:///etc/passwd", problem: "not allowed"},
		{raw: "h/a", problem: "not allowed"},
		{raw: "", problem: "empty"},
		{raw: "https://h/" + strings.Repeat("x", 5000), problem: "5010 characters"},
		{raw: "oci://Ghcr.io/org/app", registry: true, want: "oci://ghcr.io/org/app"},
		{raw: "ghcr.io/org/app", registry: true, want: "oci://ghcr.io/org/app"},
		{raw: "localhost:5000/app", registry: true, want: "oci://localhost:5000/app"},
		{raw: "registry-1.docker.io/org/app", registry: true, want: "oci://docker.io/org/app"},
		{raw: "https://index.docker.io/v1/", registry: true, want: "oci://docker.io"},
		{raw: "oci://u:p-w@h/app", registry: true, want: "oci://h/app"},
		{raw: "oci://h/app@sha256:x", registry: true, problem: "not the name of a repository"},
		{raw: "oci://h/app:tag", registry: true, problem: "not the name of a repository"},
		{raw: "oci://h/../app", registry: true, problem: "dots"},
		{raw: "oci://h/a..b", registry: true, problem: "not the name of a repository"},
		{raw: "oci://h/app?x=p-w", registry: true, problem: "query"},
		{raw: "http://h/app", registry: true, problem: "not allowed"},
	}
	for _, tc := range tests {
		parse := ParseWeb
		if tc.registry {
			parse = ParseRegistry
		}
		a, err := parse(tc.raw)
		switch {
		case tc.problem == "" && (err != nil || a.String() != tc.want):
			t.Errorf("%q: got %s, %v; want %s", tc.raw, a, err, tc.want)
		case tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem) || rutter.CodeOf(err) != rutter.CodeInvalid):
			t.Errorf("%q: got %v, want an error with %q", tc.raw, err, tc.problem)
		}
		if strings.Contains(a.String(), "p-w") || err != nil && strings.Contains(err.Error(), "p-w") {
			t.Errorf("%q: tells the password: %s, %v", tc.raw, a, err)
		}
	}
}

func TestBounds(t *testing.T) {
	tests := []struct {
		bound Bound
		url   string
		want  bool
	}{
		{Bound{Scheme: "https", Host: "h", Path: "a/b"}, "https://h/a/b", true},
		{Bound{Scheme: "https", Host: "h", Path: "a/b"}, "https://H:443/A/b/c", true},
		{Bound{Scheme: "https", Host: "h", Path: "a/b"}, "https://h/a/bc", false},
		{Bound{Scheme: "https", Host: "h", Path: "a/b", Loose: true}, "https://h/a/bc", true},
		{Bound{Scheme: "https", Host: "h", Path: "a/b"}, "https://h/a", false},
		{Bound{Scheme: "https", Host: "h", Path: "a/b"}, "http://h/a/b", false},
		{Bound{Scheme: "https", Host: "h", Path: "a/b"}, "https://h:8443/a/b", false},
		{Bound{Scheme: "https", Host: "h"}, "https://h.evil.org/a", false},
		{Bound{Scheme: "https", Host: "h", Loose: true}, "https://h.evil.org/a", false},
		{Bound{Scheme: "https", Host: "h"}, "https://h@evil.org/a", false},
		{Bound{Scheme: "https", Host: "h", Path: "a"}, "https://h/a/../b", false},
		{Bound{Scheme: "https", Host: "h", Path: "a"}, "https://h/a/%2e%2e/b", false},
		{Bound{Scheme: "https", Host: "h", Path: "a"}, "https://h/a/..%5cb", false},
		{Bound{Scheme: "https", Host: "h", Path: "a/", Loose: true}, "https://h/a", true},
		{Bound{Scheme: "https", Host: "h", Path: "a/", Loose: true}, "https://h/ab", false},
	}
	for _, tc := range tests {
		u, err := url.Parse(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := tc.bound.Holds(u); got != tc.want {
			t.Errorf("%+v holds %s: %v", tc.bound, tc.url, got)
		}
	}
}

func TestChoose(t *testing.T) {
	k := NewKeyring().With([]rutter.RepoCredential{
		{URL: "https://h/charts", Name: "exact", Type: "helm", Username: "u", Password: "exact"},
		{URL: "https://h/charts", Name: "mine", Type: "helm", Project: "mine", Username: "u", Password: "mine"},
		{URL: "https://h/bare", Type: "helm", Insecure: true, Username: "own"},
		{URL: "https://h/", Template: true, Type: "helm", Password: "host"},
		{URL: "https://h/charts/in", Template: true, Password: "inner"},
		{URL: "reg.example.com/team", Type: "helm", EnableOCI: true, Password: "team"},
		{URL: "oci://reg.example.com/team/a", Type: "oci", Password: "team-a"},
		{URL: "https://reg2.example.com", Type: "oci", Name: "reg2", Password: "reg2"},
		{URL: "git@github.com:org/repo.git", SSHPrivateKey: "key"},
		{URL: "github.com/org", Type: "git", Password: "no registry"},
		{URL: "::", Type: "helm", Password: "broken"},
	}, rutter.RepoTrust{})
	tests := []struct {
		url, project string
		registry     bool
		want         string
	}{
		{url: "https://h/charts", want: "exact"},
		{url: "https://H/Charts/", want: "exact"},
		{url: "https://h/charts", project: "mine", want: "mine"},
		{url: "https://h/charts", project: "other", want: "exact"},
		{url: "https://h/charts/inner/x", want: "inner"},
		{url: "https://h/charts/x", want: "exact"},
		{url: "https://h/bare", want: "host"},
		{url: "https://h/else", want: "host"},
		{url: "http://h/charts", want: ""},
		{url: "https://h2/charts", want: ""},
		{url: "https://u:inline@h2/charts", want: "inline"},
		{url: "https://u:inline@h/charts", want: "exact"},
		{url: "oci://reg.example.com/team/x/y", registry: true, want: "team"},
		{url: "reg.example.com/team", registry: true, want: "team"},
		{url: "reg.example.com/team/a/b", registry: true, want: "team-a"},
		{url: "reg.example.com/team/ab", registry: true, want: "team"},
		{url: "reg.example.com/teams", registry: true, want: ""},
		{url: "reg2.example.com/x", registry: true, want: "reg2"},
		{url: "github.com/org/x", registry: true, want: ""},
		{url: "h/charts", registry: true, want: ""},
	}
	for _, tc := range tests {
		parse := ParseWeb
		if tc.registry {
			parse = ParseRegistry
		}
		a, err := parse(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		access := k.Choose(a, tc.project)
		if _, got, _ := access.Password(); got != tc.want {
			t.Errorf("%s (%s): got %q, want %q", tc.url, tc.project, got, tc.want)
		}
		if text := access.Describe(); tc.want != "" && tc.want != "host" && strings.Contains(text, `"`+tc.want+`"`) && tc.want != "exact" && tc.want != "mine" && tc.want != "reg2" {
			t.Errorf("%s: tells the password: %s", tc.url, text)
		}
	}
	bare, _ := ParseWeb("https://h/bare")
	if a := k.Choose(bare, ""); a.cred.Username != "own" || !a.cred.Insecure || a.cred.Password != "host" {
		t.Error("a repository without a login keeps its own settings beside the template's login")
	}
	for raw, want := range map[string]bool{"oci://x/y": true, "x/y": true, "https://reg2.example.com": true, "https://h/charts": false, "http://x": false} {
		if got := k.IsRegistry(raw, ""); got != want {
			t.Errorf("%s is a registry: %v", raw, got)
		}
	}
	if url, ok := k.Named("reg2", ""); !ok || url != "oci://reg2.example.com" {
		t.Errorf("named: %s, %v", url, ok)
	}
	if _, ok := k.Named("mine", "other"); ok {
		t.Error("another project's repository was found by its name")
	}
}

// TestDigest tells apart what a credential may get answered differently.
func TestDigest(t *testing.T) {
	a, _ := ParseWeb("https://h/charts")
	choose := func(trust rutter.RepoTrust, creds ...rutter.RepoCredential) Access {
		return NewKeyring().With(creds, trust).Choose(a, "")
	}
	base := rutter.RepoCredential{URL: "https://h/charts", Username: "u", Password: "p"}
	rotated := base
	rotated.Password = "q"
	one := choose(rutter.RepoTrust{}, base)
	if again := choose(rutter.RepoTrust{}, base); again.Digest() != one.Digest() || again.Scope() != one.Scope() {
		t.Error("the same credential has another digest")
	}
	if other := choose(rutter.RepoTrust{}, rotated); other.Digest() == one.Digest() || other.Scope() != one.Scope() {
		t.Error("a rotated password must have another digest and the same store")
	}
	if other := choose(rutter.RepoTrust{CAs: map[string]string{"h": "x"}}, base); other.Digest() == one.Digest() {
		t.Error("another authority has the same digest")
	}
	if none := choose(rutter.RepoTrust{}); none.Scope() == one.Scope() || none.Digest() == one.Digest() {
		t.Error("no credential shares with one")
	}
}

func TestRefusedAddresses(t *testing.T) {
	tests := map[string]bool{
		"169.254.169.254": true, "169.254.1.1": true, "fe80::1": true, "fe80::1%eth0": true, "fd00:ec2::254": true, "100.100.100.200": true,
		"168.63.129.16": true, "0.0.0.0": true, "::": true, "224.0.0.1": true, "255.255.255.255": true,
		"::ffff:169.254.169.254": true, "64:ff9b::a9fe:a9fe": true, "2002:a9fe:a9fe::1": true, "::169.254.169.254": true,
		"127.0.0.1": false, "::1": false, "10.0.0.1": false, "192.168.1.1": false, "93.184.216.34": false, "2606:2800:220:1::1": false, "64:ff9b::5db8:d822": false, "fd12:3456::1": false,
	}
	for text, want := range tests {
		if got := Refuses(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is refused: %v, want %v", text, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	a, _ := ParseWeb("https://h/charts")
	for _, cred := range []rutter.RepoCredential{
		{URL: "https://h", Template: true, Username: "u", Password: "line\nbreak-pw"},
		{URL: "https://h", Template: true, Username: "u:x", Password: "pw"},
		{URL: "https://h", Template: true, BearerToken: "a\r\nX: b"},
	} {
		err := NewKeyring().With([]rutter.RepoCredential{cred}, rutter.RepoTrust{}).Choose(a, "").Check()
		if rutter.CodeOf(err) != rutter.CodeInvalid || strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: %v", cred.Username, err)
		}
	}
}
