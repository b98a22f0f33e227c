package rutter

import (
	"context"
	"io/fs"
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
)

// Input is one recorded input of a render. Source is the index of the source
// within a multi-source unit that the path belongs to.
type Input struct {
	Source int       `json:"source,omitempty"`
	Kind   InputKind `json:"kind"`
	Path   string    `json:"path"`
	Hash   string    `json:"hash"`
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
	// Revision is the commit id (40 hex digits).
	Revision() string
	// Hash returns the content hash of what kind means at path: the blob id of
	// a file, a hash of the names and types in a directory, "file" or "dir" for
	// a stat, and "" when there is nothing. It does no I/O beyond the store.
	Hash(kind InputKind, path string) (string, error)
}

// Repo names a Git repository and what to read of it.
type Repo struct {
	// URL as the user wrote it: https://, http://, ssh://, file:// or scp form.
	URL string
	// Revision is a branch, a tag, a commit or empty for HEAD.
	Revision string
	// Project restricts which credentials may be used; empty means unscoped only.
	Project string
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
