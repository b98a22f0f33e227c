package git

import (
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

// submodule puts a gitlink to commit at path, and .gitmodules beside it.
func (o *origin) submodule(path, commit, modules string) {
	o.t.Helper()
	o.write(".gitmodules", modules)
	o.git("-C", o.work, "update-index", "--add", "--cacheinfo", "160000,"+commit+","+path)
}

// commitIndex commits without looking for what a submodule would be in the
// work tree, where it is not.
func (o *origin) commitIndex() string {
	o.t.Helper()
	o.git("-C", o.work, "add", ".gitmodules")
	o.git("-C", o.work, "commit", "--quiet", "-m", "change")
	o.git("-C", o.work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/main")
	return o.git("-C", o.work, "rev-parse", "HEAD")
}

func module(path, url string) string {
	return "[submodule \"a.b " + path + "\"]\n\tpath = " + path + "\n\turl = " + url + "\n"
}

func TestSubmodules(t *testing.T) {
	deep, sub, top := newOrigin(t), newOrigin(t), newOrigin(t)
	deepCommit := deep.commit("main", "deepest", "3")
	sub.write("base/x.yaml", "x: 1", "base/y.yaml", "y")
	sub.link("../../../README.md", "base/up.md")
	sub.link("x.yaml", "base/link.yaml")
	sub.link("../../../outside", "base/out")
	sub.submodule("inner/deep", deepCommit, module("inner/deep", deep.url()))
	sub.git("-C", sub.work, "add", "base")
	pinned := sub.commitIndex()
	sub.git("-C", sub.work, "rm", "--quiet", "--cached", "inner/deep")
	sub.commit("main", "base/x.yaml", "x: 2") // its branch goes on: the pinned commit counts
	top.write("README.md", "top")
	top.link("vendor/sub/base", "base")
	top.submodule("vendor/sub", pinned, module("vendor/sub", sub.url()))
	top.git("-C", top.work, "add", "README.md", "base")
	top.commitIndex()

	f := newFetcher(t, Options{Submodules: true})
	s := snap(t, f, top.url(), "main")
	if n := f.Stats().Fetches; n != 1 {
		t.Errorf("%d fetches before anything below a submodule was read, want 1", n)
	}
	wantFile(t, s, "vendor/sub/base/x.yaml", "x: 1")
	wantFile(t, s, "vendor/sub/base/link.yaml", "x: 1")
	wantFile(t, s, "vendor/sub/base/y.yaml", "y")
	wantFile(t, s, "base/x.yaml", "x: 1")
	wantFile(t, s, "vendor/sub/base/up.md", "top") // as in a checkout, where it lies in its parent
	wantFile(t, s, "vendor/sub/inner/deep/deepest", "3")
	if err := second(s.ReadFile("vendor/sub/base/out")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link out of the tree: %v", err)
	}
	inner, err := fs.Sub(s, "vendor/sub/inner")
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(inner, "deep/deepest"); err != nil {
		t.Error(err)
	}
	if n := f.Stats().Fetches; n != 3 {
		t.Errorf("%d fetches, want one for each repository", n)
	}
	hash, err := s.Hash(rutter.InputFile, "vendor/sub/base/x.yaml")
	if want := sub.git("-C", sub.work, "rev-parse", pinned+":base/x.yaml"); err != nil || hash != want {
		t.Errorf("Hash = %q, %v; want the blob %s", hash, err, want)
	}
	if hash, err := s.Hash(rutter.InputStat, "vendor/sub/base/gone"); hash != "" || err != nil {
		t.Errorf("Hash of nothing = %q, %v", hash, err)
	}
	// Without the option: an empty folder.
	plain := snap(t, newFetcher(t, Options{}), top.url(), "main")
	if entries, err := plain.ReadDir("vendor/sub"); err != nil || len(entries) != 0 {
		t.Errorf("without the option: %v, %v", entries, err)
	}
}

// TestSubmoduleCredentials: a submodule is logged in to like any repository,
// and asked for by the project that asked for its parent.
func TestSubmoduleCredentials(t *testing.T) {
	sub, top := newOrigin(t), newOrigin(t)
	pinned := sub.commit("main", "f", "sub")
	inner := serveHTTP(t, sub, false, basic("ann", "sub-s3cr3t"))
	top.submodule("sub", pinned, module("sub", inner.URL+"/lib/fleet.git"))
	top.commitIndex()
	outer := serveHTTP(t, top, false, basic("ann", "top-s3cr3t"))
	var asked []string
	f := newFetcher(t, Options{Submodules: true, Permit: func(parent, sub rutter.Repo) error {
		asked = append(asked, parent.Project+" "+parent.URL+" "+parent.Revision+" > "+sub.Project+" "+sub.URL+" "+sub.Revision)
		if parent.Project == "strict" {
			return errors.New("project strict does not allow it")
		}
		return nil
	}})
	topURL := outer.URL + "/team/fleet.git"
	f.SetCredentials([]rutter.RepoCredential{
		{URL: outer.URL, Template: true, Username: "ann", Password: "top-s3cr3t"},
		{URL: inner.URL + "/lib", Template: true, Project: "team", Username: "ann", Password: "sub-s3cr3t"},
	}, rutter.RepoTrust{})
	read := func(project string) error {
		s, err := f.Snapshot(t.Context(), rutter.Repo{URL: topURL, Revision: "main", Project: project}, rutter.ResolveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.ReadFile("sub/f")
		return err
	}
	if err := read("team"); err != nil {
		t.Errorf("the project with the credential: %v", err)
	}
	if err := read("other"); rutter.CodeOf(err) != rutter.CodeForbidden || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("a project without it: %v", err)
	}
	if err := read("strict"); rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), "project strict does not allow it") {
		t.Errorf("a project that does not allow it: %v", err)
	}
	want := "team " + topURL + " main > team " + inner.URL + "/lib/fleet.git " + pinned
	if len(asked) != 3 || asked[0] != want {
		t.Errorf("asked %q, want %q first", asked, want)
	}
	for _, header := range inner.seen() {
		if r := (&http.Request{Header: http.Header{"Authorization": {header}}}); !basic("ann", "sub-s3cr3t")(r) {
			t.Errorf("the submodule's host got a login that is not its own: %q", header)
		}
	}
}

func TestHostileSubmodules(t *testing.T) {
	sub := newOrigin(t)
	pinned := sub.commit("main", "f", "secret of this machine")
	touched := filepath.Join(t.TempDir(), "touched")
	long := strings.Repeat("# x\n", maxModules/4+1)
	tests := []struct {
		name, modules string
		code          rutter.Code
		words         string
		fsck          bool // git refuses it when it arrives
	}{
		{"remote helper", module("sub", "ext::sh -c touch% "+touched), rutter.CodeInvalid, "", false},
		{"remote helper without space", module("sub", "ext::"+touched), rutter.CodeInvalid, "", false},
		{"option", module("sub", "--upload-pack=touch "+touched), rutter.CodeInvalid, "gitmodulesUrl", true},
		{"option in a host", module("sub", "ssh://-oProxyCommand=touch%20"+touched+"/x"), rutter.CodeInvalid, "", false},
		{"option in a path", module("sub", "git@host:-x"), rutter.CodeInvalid, "", false},
		{"file of this machine", module("sub", sub.url()), rutter.CodeForbidden, "on this machine", false},
		{"folder of this machine", module("sub", sub.bare), rutter.CodeInvalid, "", false},
		{"metadata service", module("sub", "http://169.254.169.254/latest"), rutter.CodeForbidden, "link-local", false},
		{"other protocol", module("sub", "git://host/x"), rutter.CodeInvalid, "not allowed", false},
		{"above the host", module("sub", "../../../../../../x"), rutter.CodeInvalid, "leads out of the host", false},
		{"no url", "[submodule \"sub\"]\n\tpath = sub\n", rutter.CodeInvalid, ".gitmodules", false},
		{"url of another", module("other", "https://host/x"), rutter.CodeInvalid, ".gitmodules", false},
		{"include", "[include]\n\tpath = " + touched + "\n", rutter.CodeInvalid, "no url in .gitmodules", false},
		{"not a configuration", "[[[\n", rutter.CodeInvalid, "cannot be read", false},
		{"line break in the url", "[submodule \"sub\"]\n\tpath = sub\n\turl = \"https://host/x\\n-oX\"\n", rutter.CodeInvalid, "gitmodulesUrl", true},
		{"too long", long + module("sub", sub.url()), rutter.CodeInvalid, "more than", false},
		{"update command", module("sub", "https://127.0.0.1:1/x.git") + "\tupdate = !touch " + touched + "\n", rutter.CodeInvalid, "gitmodulesUpdate", true},
	}
	top := newOrigin(t)
	url := serveHTTP(t, top, false, nil).URL + "/fleet.git"
	f := newFetcher(t, Options{Submodules: true})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			top.submodule("sub", pinned, tt.modules)
			top.commitIndex()
			s, err := f.Snapshot(t.Context(), rutter.Repo{URL: url, Revision: "main"}, rutter.ResolveOptions{})
			if tt.fsck {
				if rutter.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.words) {
					t.Errorf("%v; want code %q and the words %q", err, tt.code, tt.words)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantFile(t, s, ".gitmodules", tt.modules)
			got, err := s.ReadFile("sub/f")
			if rutter.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.words) || !strings.Contains(err.Error(), "sub/f") {
				t.Errorf("%q, %v; want code %q and the words %q", got, err, tt.code, tt.words)
			}
		})
	}
	if found, _ := filepath.Glob(touched); len(found) > 0 {
		t.Error("a command was run")
	}
}

// TestSubmoduleNesting: a chain of submodules ends in an error, not in the
// machine's memory.
func TestSubmoduleNesting(t *testing.T) {
	o := newOrigin(t)
	pinned := o.commit("main", "f", "0")
	for range maxNesting + 1 {
		o.submodule("s", pinned, module("s", o.url()))
		pinned = o.commitIndex()
	}
	s := snap(t, newFetcher(t, Options{Submodules: true}), o.url(), "main")
	wantFile(t, s, strings.Repeat("s/", maxNesting)+"f", "0")
	if err := second(s.ReadFile(strings.Repeat("s/", maxNesting+1) + "f")); rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "nested") {
		t.Errorf("one submodule too deep: %v", err)
	}
}

func TestSubmoduleURL(t *testing.T) {
	tests := []struct{ parent, url, want string }{
		{"https://host/org/top.git", "https://other/x", "https://other/x"},
		{"https://host/org/top.git", "../lib.git", "https://host/org/lib.git"},
		{"https://host/org/top.git/", "../../common/lib", "https://host/common/lib"},
		{"https://user:pw@host/org/top", "./../lib", "https://host/org/lib"},
		{"https://host/org/top", "./sub", "https://host/org/top/sub"},
		{"https://host/top", "../lib", "https://host/lib"},
		{"https://host/top", "../../lib", ""},
		{"git@host:org/top.git", "../lib.git", "git@host:org/lib.git"},
		{"git@host:top.git", "../lib.git", "git@host:lib.git"},
		{"git@host:/srv/top.git", "../lib.git", "git@host:/srv/lib.git"},
		{"git@host:top.git", "../../lib.git", ""},
		{"git@[::1]:org/top", "../lib", "git@[::1]:org/lib"},
		{"ssh://git@host:2222/org/top", "../lib", "ssh://git@host:2222/org/lib"},
		{"file:///srv/git/top", "../lib", "file:///srv/git/lib"},
	}
	for _, tt := range tests {
		l, err := parseLocation(tt.parent)
		if err != nil {
			t.Fatal(err)
		}
		got, err := submoduleURL(l, tt.url)
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s in %s is %q, %v; want %q", tt.url, tt.parent, got, err, tt.want)
		}
	}
}

func TestParseModules(t *testing.T) {
	got := parseModules("submodule.a.path\nvendor/a/\x00submodule.a.url\nu1\x00submodule.a.b.c.path\nd\x00submodule.a.b.c.url\nu2\x00submodule.none.path\nx\x00core.path\ny\x00submodule.path\nz\x00submodule.a.url\nu3\x00novalue\x00")
	if diff := cmp.Diff(map[string]string{"vendor/a": "u3", "d": "u2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzSubmoduleURL: a relative URL stays at the host of its parent.
func FuzzSubmoduleURL(f *testing.F) {
	for _, s := range []string{"../lib", "../../x", "./-x", "../-x", "..//x", "../../../@evil/x", "..//evil/x", "../:x", "../a/../../../b"} {
		f.Add(s)
	}
	var parents []location
	for _, p := range []string{"https://host/org/top.git", "git@host:org/top", "ssh://git@host:22/top"} {
		l, err := parseLocation(p)
		if err != nil {
			f.Fatal(err)
		}
		parents = append(parents, l)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, p := range parents {
			url, err := submoduleURL(p, raw)
			if err != nil || url == raw {
				continue
			}
			l, err := parseLocation(url)
			if err == nil && (l.host != p.host || l.scheme != p.scheme || l.user != p.user) {
				t.Errorf("%q in %s leads to %q", raw, p.remote, url)
			}
		}
	})
}
