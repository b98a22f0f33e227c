package git

import (
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
	guard "github.com/rutterhq/rutter/internal/source/remote"
)

func TestSpellings(t *testing.T) {
	same := [][]string{
		{"https://github.com/org/repo", "https://github.com/org/repo.git", "https://GitHub.com/org/repo/", "HTTPS://github.com/org/repo", "https://user:pw@github.com/org/repo", " https://github.com/org/repo.git/ "},
		{"git@github.com:org/repo", "git@github.com:org/repo.git", "git@github.com:/org/repo", "ssh://git@github.com/org/repo.git", "ssh://git@GITHUB.com/org/repo"},
		{"http://github.com/org/repo"},
		{"https://github.com/org/Repo"},
		{"https://github.com:8443/org/repo"},
		{"ssh://git@github.com:2222/org/repo"},
		{"ssh://other@github.com/org/repo"},
		{"file:///srv/repo", "file:///srv/repo/", "file:///srv/x/../repo", "file://localhost/srv/repo"},
		{"file:///srv/Repo"},
		{"file:///srv/my repo"},
	}
	seen := map[string]int{}
	for i, group := range same {
		for _, raw := range group {
			l, err := parseLocation(raw)
			if err != nil {
				t.Errorf("%q: %v", raw, err)
				continue
			}
			if j, ok := seen[l.identity()]; ok && j != i {
				t.Errorf("%q is taken for one of %q", raw, same[j])
			}
			seen[l.identity()] = i
			if strings.Contains(l.display(), "pw") {
				t.Errorf("%q is shown as %q", raw, l.display())
			}
		}
	}
	if len(seen) != len(same) {
		t.Errorf("%d identities for %d repositories", len(seen), len(same))
	}
}

func TestTwoSpellingsOneMirror(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	s := serveHTTP(t, o, false, nil)
	f := newFetcher(t, Options{})
	for _, url := range []string{s.URL + "/fleet.git", s.URL + "/fleet", s.URL + "/fleet/", strings.Replace(s.URL, "http", "HTTP", 1) + "/fleet"} {
		if _, err := f.Snapshot(t.Context(), rutter.Repo{URL: url, Revision: "main"}, rutter.ResolveOptions{MaxAge: 1 << 60}); err != nil {
			t.Fatal(err)
		}
	}
	mirrorOf(t, f)
	if s := f.Stats(); s.Lookups != 1 || s.Fetches != 1 {
		t.Errorf("%+v, want one of each", s)
	}
}

func TestFileSpellings(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"both", "both.git", "bare.git"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	id := func(name string) string {
		l, err := parseLocation("file://" + filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return l.identity()
	}
	if id("bare") != id("bare.git") {
		t.Error("git takes bare for bare.git; so must we")
	}
	if id("both") == id("both.git") {
		t.Error("two repositories are taken for one")
	}
}

var hostile = []string{
	"", " ", "-", "--upload-pack=touch x", "-oProxyCommand=x", "ext::sh -c 'touch x'", "ext::sh", "fd::17", "foo::bar", "git@host::x",
	"ssh://-oProxyCommand=touch/x", "ssh://git@-oProxyCommand=x/y", "ssh://-l@host/x", "-x@host:y", "git@-host:y", "git@host:-x", "ssh://host/-x", "https://host/-x",
	"https://", "https:///x", "https://host", "https://host/", "ssh://host", "git://host/x", "ftp://host/x", "/etc/passwd", "./x", "../x", "C:\\x",
	"https://host/x\n", "https://ho st/x", "https://host/x y", "https://host/x\x00y", "https://host/x\ny", "https://host/x?y=z", "https://host/x#y", "https://host\\@evil/x",
	"https://host:port/x", "https://host:999999999/x", "https://[::1/x", "https://ho%0ast/x", "https://hos;t/x", "https://$(id)/x", "ssh://git@h`id`/x", "ssh://a b@host/x", "ssh://a%0ab@host/x",
	"file://host/x", "file://", "file:///", "file://relative", "file:///x?y", "file:///a%00b", "git@host:", "git@host:/", "host", "a:b:c\nd", "https://u:s3cr3t@", "https://u:s3cr3t@h:bad/x", "https://u:s3cr3t/x@h/x", "https://u:s3cr3t?x@h/x", "https://u:%zzs3cr3t@h/x",
	"https://host/org/../x", "https://host/org/%2e%2e/x", "https://host/./x", "https://host/..", "ssh://git@host/a/../x", "git@host:../x", "git@host:org/../x",
	strings.Repeat("https://host/", 400),
}

func TestHostileURLsAreRefused(t *testing.T) {
	f := newFetcher(t, Options{Git: wrapGit(t, `case "$1" in ls-remote|fetch) echo started >&2; exit 1;; esac`)})
	for _, raw := range hostile {
		if strings.TrimSpace(raw) != raw && raw != " " {
			raw = strings.TrimSpace(raw) + "\n/x"
		}
		_, err := resolve(t.Context(), f, raw, "main")
		if rutter.CodeOf(err) != rutter.CodeInvalid {
			t.Errorf("%q: %v; want that it is invalid", raw, err)
		}
		if err != nil && (strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: the error shows too much: %v", raw, err)
		}
	}
	if n := f.Stats().Lookups; n != 0 {
		t.Errorf("git was started %d times", n)
	}
}

// TestLinkLocalHosts: every spelling of the addresses where clouds keep keys
// that the C library or curl would understand.
func TestLinkLocalHosts(t *testing.T) {
	f := newFetcher(t, Options{Git: wrapGit(t, `case "$1" in ls-remote|fetch) echo started >&2; exit 1;; esac`)})
	for _, host := range []string{"169.254.169.254", "169.254.0.1:8080", "[fe80::1]", "[FE80::a:b]:443", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "2852039166", "0xA9FEA9FE", "0xa9.0xfe.0xa9.0xfe",
		"0251.0376.0251.0376", "169.254.43518", "169.16689662", "169.254.169.254.", "168.63.129.16", "192.0.0.192", "0.0.0.0", "0", "[fd20:ce::254]", "[64:ff9b::169.254.169.254]", "[2002:a9fe:a9fe::1]", "[fd00:ec2::254]", "100.100.100.200", "metadata.google.internal", "Metadata.Google.internal."} {
		for _, form := range []string{"http://%s/x", "https://u:s3cr3t@%s/org/x.git", "ssh://git@%s/x", "git@%s:x"} {
			if strings.HasPrefix(form, "git@") && strings.Contains(host, "]:") || strings.HasSuffix(host, ":8080") && strings.HasPrefix(form, "git@") {
				continue
			}
			raw := strings.Replace(form, "%s", host, 1)
			_, err := resolve(t.Context(), f, raw, "main")
			if rutter.CodeOf(err) != rutter.CodeForbidden || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%s: %v; want that it is forbidden", raw, err)
			}
		}
	}
	if n := f.Stats().Lookups; n != 0 {
		t.Errorf("git was started %d times", n)
	}
	for _, host := range []string{"127.0.0.1", "169.253.1.1", "10.0.0.1", "[fec0::1]", "[::1]", "169.254.example.com", "169-254-169-254.example.com", "fe80.example.com", "4294967296", "1.2.3.4.5"} {
		if _, err := parseLocation("https://" + host + "/x"); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// TestGuard is for what this package itself connects to, by whatever name.
func TestGuard(t *testing.T) {
	for address, ok := range map[string]bool{"169.254.169.254:80": false, "[fe80::1%eth0]:80": false, "[::ffff:169.254.1.1]:443": false, "127.0.0.1:80": true, "[::1]:80": true, "10.0.0.1:80": true,
		"168.63.129.16:80": false, "192.0.0.192:80": false, "0.0.0.0:80": false, "[fd20:ce::254]:80": false, "[64:ff9b::a9fe:a9fe]:80": false, "[2002:a9fe:a9fe::1]:80": false} {
		if err := guard.Guard("tcp", address, nil); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestBounds(t *testing.T) {
	one, prefix := bounds{"https://host", "org/app", false}, bounds{"https://host", "org/app", true}
	tests := []struct {
		url          string
		whole, begun bool
	}{
		{"https://host/org/app", true, true},
		{"https://host/org/app.git/info/lfs", true, true},
		{"https://HOST/org/app/info/lfs", true, true},
		{"https://host/org/app2/x", false, true},
		{"https://host/org/app.gitx", false, true},
		{"https://host/org/app/../other", false, false},
		{"https://host/org/app/%2e%2e/other", false, false},
		{"https://host/org", false, false},
		{"https://host/other/org/app", false, false},
		{"http://host/org/app", false, false},
		{"https://host:8443/org/app", false, false},
		{"https://host.evil/org/app", false, false},
		{"https://host@evil/org/app", false, false},
	}
	for _, tt := range tests {
		u, err := url.Parse(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		if one.cover(u) != tt.whole || prefix.cover(u) != tt.begun {
			t.Errorf("%s is covered: %v by a repository, %v by a template", tt.url, one.cover(u), prefix.cover(u))
		}
	}
}

// TestRedirected: what a request still carries at the address that it is sent to.
func TestRedirected(t *testing.T) {
	tests := []struct{ from, to, want, reason string }{
		{"https://host/org/app.git/a", "https://host/org/app.git/b", "Authorization X-Token", "within the bounds"},
		{"https://host/org/app.git/a", "https://host/other/b", "X-Token", "the login is not for it; the action's own header is for the host"},
		{"https://host/org/app.git/a", "https://host:8443/org/app.git/b", "", "another port"},
		{"https://host/org/app.git/a", "https://sub.host/org/app.git/b", "", "a host below is another"},
		{"https://host/org/app.git/a", "http://host/org/app.git/b", "refused", "from TLS to none"},
		{"http://host/org/app.git/a", "https://host/org/app.git/b", "", "another scheme"},
		{"http://host/org/app.git/a", "file:///etc/passwd", "refused", ""},
	}
	b := bounds{"https://host", "org/app", false}
	for _, tt := range tests {
		header := http.Header{"Authorization": {"x"}, "X-Token": {"y"}, "Accept": {"z"}}
		requests := make([]*http.Request, 2)
		for i, raw := range []string{tt.from, tt.to} {
			u, err := url.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			requests[i] = &http.Request{URL: u, Header: header.Clone()}
		}
		requests[1].Header.Set("Referer", tt.from)
		var got string
		if err := b.redirected(requests[1], requests[:1]); err != nil {
			got = "refused"
		} else {
			requests[1].Header.Del("Accept")
			got = strings.Join(slices.Sorted(maps.Keys(requests[1].Header)), " ")
		}
		if got != tt.want {
			t.Errorf("from %s to %s: %q, want %q (%s)", tt.from, tt.to, got, tt.want, tt.reason)
		}
	}
}

func TestOwnMirrorsCannotBeRead(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	f := newFetcher(t, Options{})
	snap(t, f, o.url(), "main")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(f.opts.Dir, link); err != nil {
		t.Fatal(err)
	}
	dir := mirrorOf(t, f).dir
	rel, err := filepath.Rel(f.opts.Dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"file://" + dir, "file://" + f.opts.Dir + "/x/../" + rel, "file://" + filepath.Join(link, rel)} {
		if _, err := resolve(t.Context(), f, url, "main"); rutter.CodeOf(err) != rutter.CodeForbidden {
			t.Errorf("%s: %v; want that it is forbidden", url, err)
		}
	}
}

// remoteHelper is what git takes for the name of a program to run.
var remoteHelper = regexp.MustCompile(`^[A-Za-z0-9+.-]+::`)

func FuzzParseLocation(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	for _, s := range []string{"https://u:p@github.com/org/repo.git", "git@github.com:org/repo", "ssh://git@host:22/x", "file:///srv/x", "0:0::", "http://169.254.169.254/x", "http://0xa9fea9fe/x", "git@[::1]:org/x", "https://host/a/%2e%2e/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		l, err := parseLocation(raw)
		if err != nil {
			return
		}
		if strings.HasPrefix(l.remote, "-") || strings.ContainsAny(l.remote, "\x00\n\r") || remoteHelper.MatchString(l.remote) {
			t.Errorf("%q is handed to git as %q", raw, l.remote)
		}
		if u, err := url.Parse(l.remote); err == nil && u.User != nil {
			if _, secret := u.User.Password(); secret {
				t.Errorf("%q keeps its password: %q", raw, l.remote)
			}
		}
		if l.scheme != "file" && (guard.RefusesHost(l.hostname()) || climbs(l.path)) {
			t.Errorf("%q leads to %q", raw, l.remote)
		}
		again, err := parseLocation(l.remote)
		if err != nil || again.identity() != l.identity() {
			t.Errorf("%q is %q, which is %q, %v", raw, l.identity(), again.identity(), err)
		}
	})
}
