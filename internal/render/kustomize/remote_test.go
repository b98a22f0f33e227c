package kustomize

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParseGit holds the forms in which kustomize takes a text for a repository.
func TestParseGit(t *testing.T) {
	const none = "-"
	tests := map[string]struct{ url, dir, ref string }{
		"https://github.com/org/repo":                              {"https://github.com/org/repo", ".", ""},
		"https://github.com/org/repo/":                             {"https://github.com/org/repo", ".", ""},
		"https://github.com/org/repo?ref=v1":                       {"https://github.com/org/repo", ".", "v1"},
		"https://github.com/org/repo?version=v1":                   {"https://github.com/org/repo", ".", "v1"},
		"https://github.com/org/repo?version=v1&ref=v2":            {"https://github.com/org/repo", ".", "v2"},
		"https://github.com/org/repo?submodules=false&timeout=9s":  {"https://github.com/org/repo", ".", ""},
		"https://github.com/org/repo/a/b?ref=main":                 {"https://github.com/org/repo", "a/b", "main"},
		"https://github.com/org/repo//a/b?ref=main":                {"https://github.com/org/repo", "a/b", "main"},
		"https://github.com/org/repo.git/a?ref=main":               {"https://github.com/org/repo.git", "a", "main"},
		"https://github.com/org/repo.git//a":                       {"https://github.com/org/repo.git", "a", ""},
		"https://git.example.com/one/two/three.git//a/b?ref=x":     {"https://git.example.com/one/two/three.git", "a/b", "x"},
		"https://git.example.com/one/two/three//a":                 {"https://git.example.com/one/two/three", "a", ""},
		"https://git.example.com:8443/org/repo/a":                  {"https://git.example.com:8443/org/repo", "a", ""},
		"http://git.example.com/org/repo":                          {"http://git.example.com/org/repo", ".", ""},
		"HTTPS://GitHub.com/org/repo":                              {"https://github.com/org/repo", ".", ""},
		"github.com/org/repo":                                      {"https://github.com/org/repo", ".", ""},
		"github.com/org/repo/a?ref=1":                              {"https://github.com/org/repo", "a", "1"},
		"github.com:org/repo":                                      {"https://github.com/org/repo", ".", ""},
		"git@github.com:org/repo":                                  {"git@github.com:org/repo", ".", ""},
		"git@github.com:org/repo.git//a":                           {"git@github.com:org/repo.git", "a", ""},
		"git@github.com/org/repo":                                  {"git@github.com:org/repo", ".", ""},
		"ssh://git@github.com/org/repo//a":                         {"git@github.com:org/repo", "a", ""},
		"ssh://git@example.com:7999/org/repo.git//a?ref=r":         {"ssh://git@example.com:7999/org/repo.git", "a", "r"},
		"git@example.com:org/repo//a":                              {"git@example.com:org/repo", "a", ""},
		"git@example.com:one/two/three.git":                        {"git@example.com:one/two/three.git", ".", ""},
		"user-1@example.com:org/repo":                              {"user-1@example.com:org/repo", ".", ""},
		"git::https://example.com/org/repo.git//a":                 {"https://example.com/org/repo.git", "a", ""},
		"git::git@example.com:org/repo":                            {"git@example.com:org/repo", ".", ""},
		"https://user@dev.azure.com/org/project/_git/repo/a?ref=m": {"https://user@dev.azure.com/org/project/_git/repo", "a", "m"},
		"https://raw.example.com/org/repo/main/x.yaml":             {"https://raw.example.com/org/repo", "main/x.yaml", ""},
		"file:///srv/repo":                                         {"file:///srv/repo", ".", ""},
		"file:///srv/repo//a":                                      {"file:///srv/repo", "a", ""},

		"/github.com/org/repo":                      {url: none},
		"../base":                                   {url: none},
		"base":                                      {url: none},
		"base/github.com/org/repo":                  {url: none},
		"example.com/org/repo":                      {url: none},
		"https://example.com/repo":                  {url: none},
		"https://github.com/org/repo//../../etc":    {url: none},
		"https://github.com/org/repo.git/../../etc": {url: none},
		"git@github.com":                            {url: none},
		"https://":                                  {url: none},
		"s3::https://example.com/bucket/x":          {url: none},
	}
	for entry, want := range tests {
		got, ok := parseGit(entry)
		if !ok {
			got = gitBase{url: none}
		}
		if diff := cmp.Diff(gitBase{url: want.url, dir: want.dir, ref: want.ref}, got, cmp.AllowUnexported(gitBase{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", entry, diff)
		}
	}
}

func TestPinned(t *testing.T) {
	for ref, want := range map[string]bool{
		"": false, "main": false, "release-1.2": false, "HEAD": false, "abcdef1": false, "feature/v2x": false,
		"v1": true, "1.2.3": true, "v1.2.3-rc.1": true, "kustomize/v5.8.2": true, "refs/tags/anything": true,
		"0123456789012345678901234567890123456789": true,
	} {
		if isPinned(ref) != want {
			t.Errorf("%q: pinned is %v", ref, !want)
		}
	}
}

// FuzzParseGit: nothing panics, and what is taken for a repository never names
// a folder outside of it.
func FuzzParseGit(f *testing.F) {
	for _, s := range []string{"https://github.com/org/repo//a?ref=v1", "git@example.com:org/repo", "git::ssh://x/_git/y", "file:///x.git/../y", "github.com:a//..//..", "../x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		base, ok := parseGit(entry)
		if ok && (leaves(base.dir) || base.url == "") {
			t.Errorf("%q leads to %+v", entry, base)
		}
		if ok && !isElsewhere(entry) {
			t.Errorf("%q is taken for a repository, but not for elsewhere", entry)
		}
		_, _ = namesFile(entry)
		_ = printable(entry)
	})
}
