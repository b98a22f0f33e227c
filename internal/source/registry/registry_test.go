package registry

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

func TestChallenges(t *testing.T) {
	tests := []struct {
		headers []string
		scheme  string
		want    map[string]string
	}{
		{[]string{`Bearer realm="https://auth.example.com/token",service="reg",scope="repository:a/b:pull,push"`}, "bearer", map[string]string{"realm": "https://auth.example.com/token", "service": "reg", "scope": "repository:a/b:pull,push"}},
		{[]string{`BASIC realm=x`}, "basic", map[string]string{"realm": "x"}},
		{[]string{`Basic realm="x"`, `Bearer realm="y"`}, "bearer", map[string]string{"realm": "y"}},
		{[]string{`Bearer realm="a\"b\\c" , service = reg ,empty=""`}, "bearer", map[string]string{"realm": `a"b\c`, "service": "reg", "empty": ""}},
		{[]string{`Bearer realm="unfinished`}, "bearer", map[string]string{"realm": "unfinished"}},
		{[]string{"Negotiate"}, "", nil},
		{[]string{""}, "", nil},
		{[]string{"Bearer " + strings.Repeat("x", 10<<10)}, "", nil},
		{[]string{`Bearer =,=,"=`}, "bearer", map[string]string{"": "", `"`: ""}},
	}
	for _, tc := range tests {
		c, ok := challengeOf(http.Header{"Www-Authenticate": tc.headers})
		if ok != (tc.scheme != "") || c.scheme != tc.scheme {
			t.Errorf("%q: got %q", tc.headers, c.scheme)
		}
		if diff := cmp.Diff(tc.want, c.params); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.headers, diff)
		}
	}
}

func TestRealms(t *testing.T) {
	tests := []struct {
		registry, realm string
		login, want     bool
		reason          string
	}{
		{"https://ghcr.io", "https://ghcr.io/token", true, true, ""},
		{"https://registry-1.docker.io", "https://auth.docker.io/token", true, true, "the parent domain's"},
		{"https://registry.gitlab.com", "https://gitlab.com/jwt/auth", true, true, "the parent domain"},
		{"https://registry.example.com:5000", "https://registry.example.com:5001/auth", true, true, "another port of the host"},
		{"https://registry.example.com", "http://registry.example.com/auth", true, false, "not in clear text"},
		{"https://registry.example.com", "http://auth.example.com/", true, false, "not in clear text"},
		{"http://registry.example.com:5000", "http://registry.example.com:5001/auth", true, true, "as the operator allowed"},
		{"http://registry.example.com", "http://auth.example.com/", true, false, "only its own host in clear text"},
		{"http://registry.example.com", "https://auth.example.com/", true, true, ""},
		{"https://registry.example.com", "https://auth.evil.org/", true, false, ""},
		{"https://registry.example.com", "https://example.com.evil.org/", true, false, ""},
		{"https://registry.example.com", "https://evilexample.com/", true, false, ""},
		{"https://a.b.example.com", "https://c.example.com/", true, false, "not of its own domain"},
		{"https://ghcr.io", "https://evil.io/", true, false, "a public suffix"},
		{"https://me.github.io", "https://you.github.io/", true, false, "a public suffix"},
		{"https://shop.co.uk", "https://evil.co.uk/", true, false, "a public suffix"},
		{"https://10.0.0.1", "https://11.0.0.1/", true, false, "addresses have no domain"},
		{"https://registry", "https://other/", true, false, ""},
		{"https://registry.local", "https://auth.local/", true, false, "a domain of one name"},
		{"https://registry.example.com", "https://auth.other.org/", false, true, "there is nothing to lose"},
		{"https://registry.example.com", "http://auth.other.org/", false, false, ""},
		{"https://registry.example.com", "file:///x", false, false, ""},
	}
	for _, tc := range tests {
		base, err := url.Parse(tc.registry)
		if err != nil {
			t.Fatal(err)
		}
		realm, err := url.Parse(tc.realm)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&Repository{base: base}).allows(realm, tc.login); got != tc.want {
			t.Errorf("%s may name %s (login %v): %v; %s", tc.registry, tc.realm, tc.login, got, tc.reason)
		}
	}
}

func TestWishes(t *testing.T) {
	versions := []string{"1.0.0", "latest", "v1.1.0", "2.0.0-rc.1", "1.2.0+b", "1.2.0+a", "1.2.0", "v0.1", "999"}
	tests := []struct{ wish, want string }{
		{"", "999"}, {"*", "999"}, {"1.x", "1.2.0+b"}, {"^1.0.0", "1.2.0+b"}, {"1.2.0", "1.2.0"}, {"v1.2.0", "1.2.0"}, {"1.2.0+a", "1.2.0+a"},
		{"1.1.0", "v1.1.0"}, {"2.0.0-rc.1", "2.0.0-rc.1"}, {"~2.0.0-0", "2.0.0-rc.1"}, {"2.x", ""}, {"0.1", "v0.1"}, {"3.0.0", ""}, {"1.2.0+c", "1.2.0+b"},
		{">=1.0.0 <1.2.0 || 999.x", "999"},
	}
	for _, tc := range tests {
		w, err := ParseWish(tc.wish)
		if err != nil {
			t.Errorf("%q: %v", tc.wish, err)
			continue
		}
		for name, order := range map[string][]string{"forwards": versions, "backwards": reversed(versions)} {
			got := ""
			if i := w.Choose(slices.All(order)); i >= 0 {
				got = order[i]
			}
			if got != tc.want {
				t.Errorf("%q %s: got %q, want %q", tc.wish, name, got, tc.want)
			}
		}
	}
	for _, bad := range []string{"main", "not a version", "1.0.0/..", strings.Repeat("1.x || ", 1000) + "2"} {
		if _, err := ParseWish(bad); rutter.CodeOf(err) != rutter.CodeInvalid {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	if TagOf("1.0.0+a") != "1.0.0_a" || VersionOf("1.0.0_a") != "1.0.0+a" || VersionOf("some_tag") != "some+tag" {
		t.Error("tags and versions")
	}
}

func reversed(list []string) []string {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}
