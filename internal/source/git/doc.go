// Package git is the adapter that reads Git repositories (ADAPTER ring): it
// turns a URL and a revision into a commit and a read-only file system over
// that commit's objects. It implements rutter.Sources.
//
// Git itself does the transport: the git binary fetches single commits into
// bare mirrors (one for each repository and credential), and one long-lived
// "git cat-file" process for each mirror serves their objects. There is no work
// tree, so there is nothing to check out, no hook to run and no symbolic link
// to follow out of it.
//
// The work is proportional to what changed and not to who asks: everybody who
// asks for a repository at the same moment shares one ref look-up and one
// fetch, and a commit that is already in the mirror is never fetched again.
//
// A fetch is one commit deep, since nothing reads history: RepoCredential.Depth
// asks for no more than that. It is not partial. Measured by
// BenchmarkFirstFetch (6,000 manifests, 300 commits), leaving out blobs saves
// nothing in a repository of manifests (0.1 s and 0.7 MiB either way), and 1.1 s
// and 120 MiB once in one that holds 60 binaries of 2 MiB; later fetches bring
// only what changed in any case. For that, a mirror would have holes: reading
// would need the remote to be there, a hole could not be told from damage, and
// git would fill holes behind our back, without the login. What is large belongs
// in LFS, where it is fetched when it is read, by its name, and verified. Only
// the history for abbreviated commits is partial (commits alone), beside the mirror.
//
// What lies elsewhere is fetched when it is read: content of LFS, where the
// credential has EnableLFS, by the batch API (a .lfsconfig is not followed: a
// commit does not say where a login goes); and submodules, where
// Options.Submodules is set, as repositories of their own with their own
// credential and the permission of Options.Permit.
//
// A symbolic link that is absolute, or leads out of the tree, reads as absent,
// and harms only who reads it. (The reference fails every application of a
// repository that has one anywhere; here nothing could follow it.)
//
// What a tenant writes (URLs, revisions) and what a server answers is hostile
// until shown otherwise. URLs are parsed against an allow-list of forms; a
// revision never reaches a command line, only commit ids do; git runs without
// system or user configuration, with its protocols restricted and in a process
// group of its own; credentials are bound to scheme, host and path and are
// never on a command line, in a log or in an error. Objects are compared with
// their names when they are read, so that a mirror which was damaged or forged
// serves nothing under a wrong commit, and is fetched anew. Hosts that are
// link-local addresses or metadata services (the list is that of package remote)
// are refused as they are written, and where this package connects itself also
// by what a name resolves to. What git resolves, and where a first answer
// redirects it to, is seen by git alone, so that a network policy has the last
// word on it.
package git
