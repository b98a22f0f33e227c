package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
)

func TestResolve(t *testing.T) {
	o := newOrigin(t)
	first := o.commit("main", "f", "1")
	old := o.tag("v1.0.0", true)
	second := o.commit("main", "f", "2")
	light := o.tag("v1.2.0", false)
	third := o.commit("main", "f", "3")
	o.tag("v1.3.0-rc.1", true)
	o.tag("not-a-version", true)
	feature := o.commit("feature/x", "f", "4")
	two := o.tag("2.0.0", true)
	both := o.commit("both", "f", "5")
	o.git("-C", o.work, "tag", "both", first)
	o.git("-C", o.work, "push", "--quiet", "origin", "refs/tags/both")
	o.git("-C", o.work, "push", "--quiet", "origin", first+":refs/pull/7/head")

	tests := []struct {
		revision, want string
		code           rutter.Code
		reason         string
	}{
		{"", third, "", "empty is HEAD"},
		{"HEAD", third, "", ""},
		{"main", third, "", "a branch"},
		{" main ", third, "", "space around a name means nothing"},
		{"refs/heads/main", third, "", "a full name"},
		{"heads/main", "", rutter.CodeNotFound, "a partial name is none"},
		{"feature/x", feature, "", "a branch with a slash"},
		{"x", two, "", "x is a range that any version matches, as in the reference"},
		{"refs/pull/7/head", first, "", "a ref that is neither branch nor tag"},
		{"pull/7/head", first, "", "its short name"},
		{"v1.0.0", old, "", "an annotated tag is the commit it names"},
		{"v1.2.0", light, "", "a lightweight tag"},
		{"1.2.0", "", rutter.CodeNotFound, "a version is an exact name"},
		{"1.*", second, "", "the highest 1.x; pre-releases do not count"},
		{">=1.0.0-0 <2.0.0", third, "", "pre-releases count when the range names one"},
		{">=1.0", two, "", "tags without v too"},
		{"^1.0.0", light, "", ""},
		{"~1.0", old, "", ""},
		{">=3", "", rutter.CodeNotFound, "no tag matches, and no ref is called so"},
		{"both", both, "", "a branch comes before a tag of its name: the order of the remote"},
		{"refs/tags/both", first, "", "the full name tells them apart"},
		{first, first, "", "a full commit is taken as it is"},
		{strings.ToUpper(first), first, "", "whatever its case"},
		{strings.Repeat("e", 40), strings.Repeat("e", 40), "", "without asking the remote"},
		{second[:7], second, "", "an abbreviated commit"},
		{strings.ToUpper(second[:10]), second, "", ""},
		{first[:39], first, "", ""},
		{second[:6], "", rutter.CodeNotFound, "too short"},
		{"deadbee", "", rutter.CodeNotFound, "a commit that is not there"},
		{"mai", "", rutter.CodeNotFound, "no prefix of a name"},
		{"Main", "", rutter.CodeNotFound, "names have a case"},
		{"main^{commit}", "", rutter.CodeNotFound, "no expressions"},
		{"main~1", "", rutter.CodeNotFound, "no expressions"},
		{"*:refs/x", "", rutter.CodeNotFound, "no refspec"},
		{"--upload-pack=touch /tmp/x", "", rutter.CodeInvalid, "no option"},
		{"-x", "", rutter.CodeInvalid, "no option"},
		{"a\nb", "", rutter.CodeInvalid, "no line break"},
		{"a\x00b", "", rutter.CodeInvalid, "no zero"},
		{strings.Repeat("a", 2000), "", rutter.CodeInvalid, "too long"},
	}
	f := newFetcher(t, Options{})
	for _, tt := range tests {
		got, err := f.Resolve(t.Context(), rutter.Repo{URL: o.url(), Revision: tt.revision}, rutter.ResolveOptions{MaxAge: 1 << 60})
		if got != tt.want || rutter.CodeOf(err) != tt.code {
			t.Errorf("Resolve(%q) = %q, %v; want %q, code %q (%s)", tt.revision, got, err, tt.want, tt.code, tt.reason)
		}
	}
	if s := f.Stats(); s.Lookups != 1 || s.Fetches != 1 {
		t.Errorf("%+v; want 1 look-up, and 1 fetch for all abbreviated commits", s)
	}
}

// TestTagPrefix is reference 1.2's tagPrefix: several components have their
// versions in one repository.
func TestTagPrefix(t *testing.T) {
	o := newOrigin(t)
	tags := map[string]string{}
	for _, tag := range []string{"1.0.0", "api/1.0.0", "api/v1.2.0", "api/1.3.0-rc.1", "api/next", "api/x/9.0.0", "api-9.0.0", "web/7.1.0", "v8.0.0", "2.5", "web/1234567"} {
		o.commit("main", "f", tag)
		tags[tag] = o.tag(tag, strings.Contains(tag, "v"))
	}
	branch := o.commit("5.x", "f", "branch")
	o.git("-C", o.work, "push", "--quiet", "origin", branch+":refs/heads/api/6.0.0")
	short := branch[:9]
	tests := []struct {
		prefix, revision, want string
		reason                 string
	}{
		{"", "1.0.0", tags["1.0.0"], "an exact version"},
		{"api/", "1.0.0", tags["api/1.0.0"], "with the prefix put before it"},
		{"api/", "v1.2.0", tags["api/v1.2.0"], ""},
		{"api/", "1.2.0", "", "an exact version is an exact name"},
		{"web/", "1.0.0", "", "never the tag of that name without the prefix: it is another component's"},
		{"", "2.5", tags["2.5"], "what parses as one version is no range"},
		{"api/", "1.*", tags["api/v1.2.0"], "the highest with the prefix; no pre-release"},
		{"api/", ">=1.0.0-0", tags["api/1.3.0-rc.1"], "a pre-release where the range names one; no branch"},
		{"api/", "*", tags["api/v1.2.0"], "tags that are no version without the prefix are skipped, api/x/9.0.0 too"},
		{"", "*", tags["v8.0.0"], "tags with a prefix are no versions"},
		{"api", "*", "", "/1.0.0 is no version"},
		{"api-", "*", tags["api-9.0.0"], "a prefix is any text"},
		{"web/", "^7", tags["web/7.1.0"], ""},
		{"api/", "^8", "", "no tag with the prefix matches, and no ref is called so"},
		{"api/", "5.x", branch, "a range that no tag matches may be a branch"},
		{"", "6.0.0", "", "a short name is whole"},
		{"api/", "main", tags["web/1234567"], "for what is no version the prefix means nothing"},
		{"api/", "", tags["web/1234567"], "nor for HEAD"},
		{"api/", branch, branch, "nor for a commit"},
		{"api/", short, branch, "nor for a part of one"},
		{"web/", "1234567", tags["web/1234567"], "digits are a version first"},
		{"refs/tags/api/", "1.0.0", tags["api/1.0.0"], "a full name is a name"},
	}
	f := newFetcher(t, Options{})
	for _, tt := range tests {
		got, err := f.Resolve(t.Context(), rutter.Repo{URL: o.url(), Revision: tt.revision, TagPrefix: tt.prefix}, rutter.ResolveOptions{MaxAge: 1 << 60})
		if got != tt.want || (rutter.CodeOf(err) == rutter.CodeNotFound) != (tt.want == "") {
			t.Errorf("%q with prefix %q = %q, %v; want %q (%s)", tt.revision, tt.prefix, got, err, tt.want, tt.reason)
		}
	}
	_, err := f.Resolve(t.Context(), rutter.Repo{URL: o.url(), Revision: "^8", TagPrefix: "api/"}, rutter.ResolveOptions{MaxAge: 1 << 60})
	if err == nil || !strings.Contains(err.Error(), "api/") {
		t.Errorf("%v; want that it names the prefix", err)
	}
	if _, err := f.Resolve(t.Context(), rutter.Repo{URL: o.url(), Revision: "^8", TagPrefix: "a\nb"}, rutter.ResolveOptions{}); rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Errorf("a prefix with a line break: %v", err)
	}
}

// TestHostileRefs: whatever a server calls its refs, they are names and nothing else.
func TestHostileRefs(t *testing.T) {
	o := newOrigin(t)
	commit := o.commit("main", "f", "1")
	names := []string{"refs/heads/--upload-pack=touch", "refs/heads/-x", "refs/heads/../../../../evil", "refs/heads/a..b", "refs/tags/../../config", "refs/heads/x\x1b[31m", "/etc/passwd",
		"../HEAD", "refs/heads/$(id)", "refs/heads/main.lock", "refs/heads/" + strings.Repeat("a/", 400)}
	list := ""
	for _, name := range names {
		list += commit + "\t" + name + "\n"
	}
	file := filepath.Join(t.TempDir(), "refs")
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	args := filepath.Join(t.TempDir(), "args")
	f := newFetcher(t, Options{Git: wrapGit(t, `printf '%s\n' "$*" >> `+args+`; if test "$1" = ls-remote; then cat `+file+`; exit; fi`)})
	for _, name := range names {
		s, err := f.Snapshot(t.Context(), rutter.Repo{URL: o.url(), Revision: name}, rutter.ResolveOptions{MaxAge: 1 << 60})
		if err != nil && rutter.CodeOf(err) != rutter.CodeInvalid {
			t.Errorf("%q: %v", name, err)
		}
		if err == nil && s.Revision() != commit {
			t.Errorf("%q leads to %s", name, s.Revision())
		}
	}
	lines, err := os.ReadFile(args)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.Contains(string(lines), name) {
			t.Errorf("%q is on a command line", name)
		}
	}
	written, _ := filepath.Glob(filepath.Join(f.opts.Dir, "*"))
	if len(written) != 2 {
		t.Errorf("beside the mirrors and the session: %v", written)
	}
}

// TestSHA256Repository says that it is not supported, whatever is asked of it.
func TestSHA256Repository(t *testing.T) {
	dir := t.TempDir()
	o := &origin{t: t, bare: filepath.Join(dir, "fleet.git"), work: filepath.Join(dir, "work")}
	o.git("init", "--quiet", "--bare", "--object-format=sha256", "--initial-branch=main", o.bare)
	o.git("init", "--quiet", "--object-format=sha256", "--initial-branch=main", o.work)
	o.git("-C", o.work, "remote", "add", "origin", o.bare)
	commit := o.commit("main", "f", "1")
	s := serveHTTP(t, o, false, nil)
	f := newFetcher(t, Options{})
	for _, url := range []string{o.url(), s.URL + "/fleet.git"} {
		for _, revision := range []string{"main", "", "^1", commit, commit[:12], commit[:40]} {
			_, err := f.Snapshot(t.Context(), rutter.Repo{URL: url, Revision: revision}, rutter.ResolveOptions{})
			if rutter.CodeOf(err) != rutter.CodeUnsupported || !strings.Contains(err.Error(), "SHA-256") {
				t.Errorf("%s of %s: %v; want that it is not supported", revision, url, err)
			}
		}
	}
}

func TestEmptyRepository(t *testing.T) {
	o := newOrigin(t)
	_, err := resolve(t.Context(), newFetcher(t, Options{}), o.url(), "")
	if rutter.CodeOf(err) != rutter.CodeNotFound || !strings.Contains(err.Error(), "push a commit") {
		t.Errorf("HEAD of an empty repository: %v", err)
	}
}

func TestAbbreviatedCommitFollowsPushes(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	f := newFetcher(t, Options{})
	for _, content := range []string{"2", "3"} {
		commit := o.commit("main", "f", content)
		s := snap(t, f, o.url(), commit[:8])
		if s.Revision() != commit {
			t.Errorf("%s resolves to %s", commit[:8], s.Revision())
		}
		wantFile(t, s, "f", content)
	}
}

func TestAmbiguousCommit(t *testing.T) {
	h := &history{refs: "same", found: map[string]string{}}
	o := newOrigin(t)
	o.commit("main", "f", "1")
	f := newFetcher(t, Options{})
	snap(t, f, o.url(), "main")
	m := mirrorOf(t, f)
	r, err := f.remote(rutter.Repo{URL: o.url()})
	if err != nil {
		t.Fatal(err)
	}
	// Two commits that share a letter are found without making millions of them.
	for range 40 {
		o.git("-C", o.work, "commit", "--quiet", "--allow-empty", "-m", "x")
	}
	o.git("-C", o.work, "push", "--quiet", "origin", "HEAD:refs/heads/main")
	if err := h.fetch(t.Context(), m, r); err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(o.git("-C", o.work, "rev-list", "HEAD"))
	seen := map[string]bool{}
	for _, id := range all {
		if seen[id[:1]] {
			_, err := h.find(t.Context(), m, r, refs{digest: "same"}, id[:1])
			if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "ambiguous") {
				t.Errorf("an ambiguous commit: %v", err)
			}
			return
		}
		seen[id[:1]] = true
	}
	t.Fatal("41 commits without two that begin alike")
}

func TestTagObjectIsNoCommit(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	o.tag("v1", true)
	id := o.git("-C", o.work, "rev-parse", "refs/tags/v1")
	_, err := newFetcher(t, Options{}).Snapshot(t.Context(), rutter.Repo{URL: o.url(), Revision: id}, rutter.ResolveOptions{})
	if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "is a tag and not a commit") {
		t.Errorf("a tag's own id: %v", err)
	}
}

func TestParseRefsRefusesNoise(t *testing.T) {
	id := strings.Repeat("a", 40)
	for _, out := range []string{"hello\n", id + "\n", id + " refs/heads/main\n", id + "\trefs/heads/a\nnoise\tx\n"} {
		if _, err := parseRefs([]byte(out)); rutter.CodeOf(err) != rutter.CodeUnavailable {
			t.Errorf("parseRefs(%q): %v; want an error", out, err)
		}
	}
	if _, err := parseRefs([]byte(strings.Repeat("a", 64) + "\trefs/heads/main\n")); rutter.CodeOf(err) != rutter.CodeUnsupported {
		t.Errorf("SHA-256: %v", err)
	}
}
