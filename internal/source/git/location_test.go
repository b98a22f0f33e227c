package git

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
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
	for _, s := range []string{"https://u:p@github.com/org/repo.git", "git@github.com:org/repo", "ssh://git@host:22/x", "file:///srv/x", "0:0::"} {
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
		again, err := parseLocation(l.remote)
		if err != nil || again.identity() != l.identity() {
			t.Errorf("%q is %q, which is %q, %v", raw, l.identity(), again.identity(), err)
		}
	})
}
