package git

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/rutterhq/rutter"
)

// refs is everything that a remote advertises, in its order.
type refs struct {
	names []string
	// commits are by full name; for an annotated tag, what it finally points to.
	commits map[string]string
	// digest tells whether anything has changed since another answer.
	digest string
}

var (
	fullID  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	shortID = regexp.MustCompile(`^[0-9a-fA-F]{7,40}$`)
	longID  = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
)

// parseRefs reads the output of ls-remote. A line that is none of its own is
// an error: half an answer must not look like a repository without that ref.
func parseRefs(out []byte) (refs, error) {
	r := refs{commits: map[string]string{}}
	sum := sha256.Sum256(out)
	r.digest = hex.EncodeToString(sum[:])
	for line := range bytes.Lines(out) {
		id, name, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\t")
		if !ok || !fullID.MatchString(id) {
			if len(id) == sha256.Size*2 && ok {
				return refs{}, rutter.Errorf(rutter.CodeUnsupported, "its objects are named by SHA-256, which is not supported yet; use a SHA-1 repository")
			}
			return refs{}, rutter.Errorf(rutter.CodeUnavailable, "its answer to the look-up of refs is not understood")
		}
		if tag, peeled := strings.CutSuffix(name, "^{}"); peeled {
			r.commits[tag] = id
			continue
		}
		r.names = append(r.names, name)
		r.commits[name] = id
	}
	return r, nil
}

// find returns the commit of a revision by the rules of reference 1.2: HEAD, a
// version or a version range over the tags that have prefix, or the exact name
// of a ref, full or short. The prefix belongs to versions: a version with one
// is the tag of both and no other, since the plain tag is another component's;
// a range that no tag matches may still be the name of a branch ("1.x").
func (r refs) find(revision, prefix string) (string, bool) {
	if revision == "" {
		revision = "HEAD"
	}
	if _, err := semver.NewVersion(revision); err == nil {
		return r.named(prefix + revision)
	}
	if name, ok := r.highest(revision, prefix); ok {
		return r.commits[name], true
	}
	return r.named(revision)
}

// named returns the commit of the first ref, in the remote's order, that is
// called so.
func (r refs) named(revision string) (string, bool) {
	for _, name := range r.names {
		if name == revision || shortName(name, revision) {
			return r.commits[name], true
		}
	}
	return "", false
}

// shortName reports whether revision is name without the part that says what
// kind of ref it is.
func shortName(name, revision string) bool {
	for _, kind := range []string{"refs/heads/", "refs/tags/", "refs/remotes/", "refs/"} {
		if short, ok := strings.CutPrefix(name, kind); ok {
			return short == revision
		}
	}
	return false
}

// highest returns the tag with the highest version that a range allows; tags
// without the prefix, and those that are no version without it, don't count.
// Of two tags of one version the later in the remote's order wins, so that the
// answer is stable.
func (r refs) highest(revision, prefix string) (string, bool) {
	allowed, err := semver.NewConstraint(revision)
	if err != nil {
		return "", false
	}
	var best *semver.Version
	found := ""
	for _, name := range r.names {
		tag, ok := strings.CutPrefix(name, "refs/tags/"+prefix)
		if !ok {
			continue
		}
		v, err := semver.NewVersion(tag)
		if err != nil || !allowed.Check(v) {
			continue
		}
		if best == nil || !v.LessThan(best) {
			best, found = v, name
		}
	}
	return found, found != ""
}

const maxRevision = 1024

// checkRevision refuses what can be neither a ref's name, a commit nor a range.
func checkRevision(l location, revision, prefix string) error {
	switch {
	case len(revision) > maxRevision || strings.HasPrefix(revision, "-") || strings.ContainsFunc(revision, unsafeRune):
		return rutter.Errorf(rutter.CodeInvalid, "repository %q: revision %q is not a branch, tag, commit or version range", l.display(), cut(printable(revision)))
	case len(prefix) > maxRevision || strings.ContainsFunc(prefix, unsafeRune):
		return rutter.Errorf(rutter.CodeInvalid, "repository %q: tagPrefix %q cannot begin the name of a tag", l.display(), cut(printable(prefix)))
	case longID.MatchString(revision):
		return rutter.Errorf(rutter.CodeUnsupported, "repository %q: revision %q is a commit of a SHA-256 repository, which is not supported; use a SHA-1 repository", l.display(), revision)
	}
	return nil
}
