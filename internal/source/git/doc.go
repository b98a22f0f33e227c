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
// What a tenant writes (URLs, revisions) and what a server answers is hostile
// until shown otherwise. URLs are parsed against an allow-list of forms; a
// revision never reaches a command line, only commit ids do; git runs without
// system or user configuration, with its protocols restricted and in a process
// group of its own; credentials are bound to scheme, host and path and are
// never on a command line, in a log or in an error.
package git
