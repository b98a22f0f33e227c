package kustomize

import (
	"encoding/hex"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// gitBase is a base in another Git repository, as kustomize reads it out of one text.
type gitBase struct {
	// url is what git fetches from, dir the folder of the kustomization in it.
	url, dir string
	// ref is a branch, a tag or a commit; empty is the default branch.
	ref string
}

const (
	schemeHTTP  = "http://"
	schemeHTTPS = "https://"
	schemeSSH   = "ssh://"
	schemeFile  = "file://"
	githubHost  = "github.com"
)

var gitLogin = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*@`)

// parseGit reads an entry in one of the forms that kustomize takes for a Git
// repository; false when it would take it for a path.
func parseGit(entry string) (gitBase, bool) {
	if strings.HasPrefix(entry, "/") {
		return gitBase{}, false
	}
	text, query, _ := strings.Cut(entry, "?")
	host, rest, ok := splitHost(text)
	if !ok {
		return gitBase{}, false
	}
	repo, dir, ok := splitRepository(rest, strings.HasPrefix(host, schemeFile))
	if !ok || repo == "" || leaves(path.Clean(strings.TrimPrefix(dir, "/"))) {
		return gitBase{}, false
	}
	return gitBase{url: host + repo, dir: path.Clean(strings.TrimPrefix(dir, "/")), ref: refOf(query)}, true
}

// splitHost returns the scheme, the login and the host, up to the separator
// behind it, and what follows.
func splitHost(text string) (host, rest string, ok bool) {
	text, _ = cutFold(text, "git::")
	scheme := ""
	for _, s := range []string{schemeSSH, schemeHTTPS, schemeHTTP, schemeFile} {
		if after, found := cutFold(text, s); found {
			scheme, text = s, after
			break
		}
	}
	if scheme == schemeFile {
		return schemeFile, text, true
	}
	login := gitLogin.FindString(text)
	text = text[len(login):]
	lower := strings.ToLower(text)
	github := strings.HasPrefix(lower, githubHost+"/") || strings.HasPrefix(lower, githubHost+":")
	if scheme == "" && login == "" && !github {
		return "", "", false
	}
	end := strings.Index(text, "/")
	if colon := strings.Index(text, ":"); scheme == "" && (end < 0 || colon > 0 && colon < end) {
		end = colon
	}
	host = text
	if end >= 0 {
		host, rest = text[:end+1], text[end+1:]
	}
	switch {
	case host == "":
		return "", "", false
	case github && (scheme == schemeSSH || login != ""):
		return login + githubHost + ":", rest, true
	case github:
		return schemeHTTPS + githubHost + "/", rest, true
	}
	return scheme + login + host, rest, true
}

// splitRepository tells the repository's path from that of the folder in it: by
// _git/, // or .git, else the first two segments are the repository's.
func splitRepository(text string, local bool) (repo, dir string, ok bool) {
	const azure = "_git/"
	if i := strings.Index(text, azure); i >= 0 {
		name, dir, _ := strings.Cut(text[i+len(azure):], "/")
		return text[:i+len(azure)] + name, dir, true
	}
	if repo, dir, found := strings.Cut(text, "//"); found {
		return repo, dir, true
	}
	if repo, dir, found := strings.Cut(text, ".git"); found {
		return repo + ".git", dir, true
	}
	if local {
		return text, "", true
	}
	parts := strings.SplitN(text, "/", 3)
	if len(parts) < 2 {
		return "", "", false
	}
	if len(parts) == 3 {
		dir = parts[2]
	}
	return parts[0] + "/" + parts[1], dir, true
}

func refOf(query string) string {
	values, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	if ref := values.Get("ref"); ref != "" {
		return ref
	}
	return values.Get("version")
}

// cutFold is strings.CutPrefix without regard to case.
func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// isWeb reports whether the library would load an entry over HTTP.
func isWeb(entry string) bool {
	u, err := url.Parse(entry)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// isElsewhere recognises, generously, what is not a path in the repository.
// Text on several lines is an inline object, which may hold addresses, unless it
// begins like one.
func isElsewhere(entry string) bool {
	if strings.Contains(entry, "\n") {
		return beginsElsewhere(entry)
	}
	e := strings.TrimSpace(entry)
	return beginsElsewhere(e) || strings.Contains(e, "://")
}

// beginsElsewhere reports whether the library could take a text for an address.
func beginsElsewhere(text string) bool {
	text, forced := cutFold(text, "git::")
	for _, prefix := range []string{"http:", "https:", schemeSSH, schemeFile, githubHost + "/", githubHost + ":"} {
		if _, ok := cutFold(text, prefix); ok {
			return true
		}
	}
	return forced || gitLogin.MatchString(text) || isWeb(text)
}

// namesFile tells, of an address on the web, whether it can only be a file, or
// only a repository; neither is certain for the rest.
func namesFile(entry string) (file, git bool) {
	u, err := url.Parse(entry)
	if err != nil || !isWeb(entry) {
		return false, true
	}
	_, versioned := u.Query()["ref"]
	rest := strings.TrimPrefix(u.Path, "/")
	switch {
	case versioned || strings.Contains(rest, "//") || strings.Contains(rest, ".git") || strings.Contains(rest, "_git/"):
		return false, true
	case strings.EqualFold(u.Hostname(), githubHost) && !strings.Contains(rest, "/releases/download/") && !strings.Contains(rest, "/raw/"):
		return false, true
	}
	switch path.Ext(rest) {
	case ".yaml", ".yml", ".json":
		return true, false
	}
	return false, false
}

var versionTag = regexp.MustCompile(`^v?\d+(\.\d+)*([-+.].*)?$`)

// isPinned reports whether a ref always names the same content: a commit, or
// what looks like the tag of a version.
func isPinned(ref string) bool {
	if _, err := hex.DecodeString(ref); err == nil && (len(ref) == 40 || len(ref) == 64) {
		return true
	}
	return versionTag.MatchString(path.Base(ref)) || strings.HasPrefix(ref, "refs/tags/")
}

// printable is an address without a password, for messages.
func printable(entry string) string {
	entry = strings.TrimSpace(entry)
	scheme, rest, ok := strings.Cut(entry, "://")
	if !ok {
		return entry
	}
	host, tail, slash := strings.Cut(rest, "/")
	if at := strings.LastIndex(host, "@"); at >= 0 && strings.Contains(host[:at], ":") {
		host = host[at+1:]
	}
	if slash {
		host += "/"
	}
	return scheme + "://" + host + tail
}

// leaves reports whether a cleaned relative path leaves the folder that it starts from.
func leaves(clean string) bool {
	return clean == ".." || strings.HasPrefix(clean, "../") || strings.HasPrefix(clean, "/")
}
