package rutter

import (
	"context"
	"encoding/json"
	"io/fs"
	"strings"
)

// InputKind says what a render read at a path.
type InputKind string

// The kinds of input. A render that looked for something that was not there
// depends on its absence; that is recorded too, with an empty Hash.
const (
	// InputFile is the content of a file.
	InputFile InputKind = "file"
	// InputList is the names and types of the entries of a directory.
	InputList InputKind = "list"
	// InputStat is the existence and type of a path.
	InputStat InputKind = "stat"
	// InputRemote is something fetched from elsewhere: a chart that another
	// depends on, a remote base, a remote values file. Path is Repo.Key; Hash, the
	// revision that was used, is for people: the inputs in it are recorded by themselves.
	InputRemote InputKind = "remote"
	// InputLive is an object of the target cluster that a template looked up;
	// Hash is that of its content.
	InputLive InputKind = "live"
)

// Input is one recorded input of a render. Source is the index of the source
// within a multi-source unit that the path belongs to.
type Input struct {
	Source int `json:"source,omitempty"`
	// Repo names the repository elsewhere that the path belongs to (Repo.Key);
	// empty for the unit's own sources.
	Repo string    `json:"repo,omitempty"`
	Kind InputKind `json:"kind"`
	Path string    `json:"path"`
	Hash string    `json:"hash"`
}

// Snapshot is a commit and a read-only view of its files. Reading never
// touches a work tree: content comes from the repository's object store, and
// paths use slashes and are relative to the root ("." is the root), as io/fs
// wants them. A symbolic link that leaves the tree reads as not existing.
// Safe for concurrent use.
type Snapshot interface {
	fs.ReadFileFS
	fs.ReadDirFS
	fs.StatFS
	// Revision names the content for good: a commit id (40 hex digits), the
	// version of a chart, the digest of an artifact or of a file.
	Revision() string
	// Hash returns the content hash of what kind means at path: the blob id of
	// a file, a hash of the names and types in a directory, "file" or "dir" for
	// a stat, and "" when there is nothing. It does no I/O beyond the store.
	Hash(kind InputKind, path string) (string, error)
}

// Repo names a repository and what to read of it: a Git repository, a chart of
// a Helm repository or registry, an OCI artifact, or one file on the web.
// Its text in JSON is a part of what renders remember: see Key.
type Repo struct {
	// URL as the user wrote it. Git: https://, http://, ssh://, file:// or scp
	// form. Charts: https:// of an index, oci:// or a registry without a scheme
	// (host/path); @NAME is the Helm repository registered by that name.
	URL string `json:"URL"`
	// Revision is a branch, a tag, a commit, a version or a constraint on
	// versions; empty for HEAD, or for the newest version of a chart.
	Revision string `json:"Revision"`
	// Project restricts which credentials may be used; empty means unscoped only.
	Project string `json:"Project"`
	// Chart names a chart of a Helm repository or registry (reference 1.2).
	Chart string `json:"Chart"`
	// TagPrefix is put before versions when tags of Git are looked for.
	TagPrefix string `json:"TagPrefix"`
	// File says that URL names one file, to be read over HTTP(S).
	File bool `json:"File"`
	// PassCredentials sends a Helm repository's credentials to other hosts that
	// its index names, too (reference 1.6).
	PassCredentials bool `json:"PassCredentials"`
}

// The kinds of repository.
const (
	RepoGit  = "git"
	RepoHelm = "helm" // a chart: from an index, or from a registry
	RepoOCI  = "oci"  // an OCI artifact
	RepoFile = "file" // one file over HTTP(S)
)

// Kind classifies a repository (reference 1.2): RepoGit, RepoHelm, RepoOCI or RepoFile.
func (r Repo) Kind() string {
	switch {
	case r.File:
		return RepoFile
	case r.Chart != "":
		return RepoHelm
	case strings.HasPrefix(strings.ToLower(strings.TrimSpace(r.URL)), "oci://"):
		return RepoOCI
	}
	return RepoGit
}

// Key is a text that names r among the inputs of a render. It holds no password.
func (r Repo) Key() string {
	r.URL = withoutPassword(r.URL)
	text, err := json.Marshal(r)
	if err != nil {
		return r.URL // strings and booleans always encode
	}
	return string(text)
}

// RepoOfKey returns the repository that Key named.
func RepoOfKey(key string) (Repo, error) {
	var r Repo
	if err := json.Unmarshal([]byte(key), &r); err != nil {
		return r, Errorf(CodeInternal, "read the name of a repository: %w", err)
	}
	return r, nil
}

// withoutPassword drops user:password@ of a URL; user@ stays, it names an SSH login.
func withoutPassword(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	host, path, slash := strings.Cut(rest, "/")
	if i := strings.LastIndex(host, "@"); i >= 0 && strings.Contains(host[:i], ":") {
		host = host[i+1:]
	}
	if !slash {
		return scheme + "://" + host
	}
	return scheme + "://" + host + "/" + path
}

// ResolveOptions adjusts one look-up.
type ResolveOptions struct {
	// MaxAge is how old a cached answer for the ref may be, in nanoseconds
	// (time.Duration); 0 asks the remote, together with all who ask now.
	MaxAge int64
}

// Sources turns a repository and a revision into a Snapshot. All who ask for
// the same repository at the same time share one look-up and one fetch.
// Errors: CodeNotFound (repository or revision), CodeForbidden (credentials),
// CodeUnavailable (did not answer), CodeInvalid (URL).
type Sources interface {
	Snapshot(ctx context.Context, repo Repo, opts ResolveOptions) (Snapshot, error)
}
