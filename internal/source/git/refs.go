package git

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/rutterhq/rutter"
)

// refs is a remote's answer to a look-up.
type refs struct {
	at     time.Time
	head   string // what HEAD points to, such as refs/heads/main
	byName map[string]string
	names  []string // in the advertised order
}

func parseRefs(out []byte, at time.Time) refs {
	r := refs{at: at, byName: map[string]string{}}
	for line := range bytes.Lines(out) {
		s := strings.TrimSuffix(string(line), "\n")
		if target, name, ok := strings.Cut(strings.TrimPrefix(s, "ref: "), "\t"); ok && strings.HasPrefix(s, "ref: ") {
			if name == "HEAD" {
				r.head = target
			}
			continue
		}
		id, name, ok := strings.Cut(s, "\t")
		if !ok {
			continue
		}
		if base, peeled := strings.CutSuffix(name, "^{}"); peeled { // an annotated tag: the commit it names
			r.byName[base] = id
			continue
		}
		r.byName[name] = id
		r.names = append(r.names, name)
	}
	return r
}

// specFor is what to ask the remote for to get a commit: the ref that has it, if one does.
func (r refs) specFor(commit string) string {
	for _, name := range r.names {
		if r.byName[name] == commit && name != "HEAD" {
			return "+" + name + ":refs/remote/" + strings.TrimPrefix(name, "refs/")
		}
	}
	return commit
}

var (
	fullCommit  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	shortCommit = regexp.MustCompile(`^[0-9a-f]{7,39}$`)
	refChars    = regexp.MustCompile(`^[^\x00-\x20\x7f~^:?*\[\\]+$`)
)

// resolve returns the commit of a revision (reference 1.2): a full commit as it
// is, HEAD, a range over tags, a ref's exact name, an abbreviated commit.
func (m *mirror) resolve(ctx context.Context, revision string, maxAge time.Duration) (string, error) {
	if fullCommit.MatchString(revision) {
		return revision, nil
	}
	r, err := m.lookup(ctx, maxAge)
	if err != nil {
		return "", err
	}
	if commit := r.find(revision); commit != "" {
		return commit, nil
	}
	if shortCommit.MatchString(revision) {
		return m.abbreviated(ctx, revision)
	}
	if strings.HasPrefix(revision, "-") || !refChars.MatchString(revision) && !isRange(revision) {
		return "", rutter.Errorf(rutter.CodeInvalid, "not a name that a branch, tag or commit can have")
	}
	return "", rutter.Errorf(rutter.CodeNotFound, "no branch, tag or commit of that name")
}

func isRange(s string) bool {
	_, err := semver.NewConstraint(s)
	return err == nil
}

func (r refs) find(revision string) string {
	if revision == "" || revision == "HEAD" {
		if r.head != "" && r.byName[r.head] != "" {
			return r.byName[r.head]
		}
		return r.byName["HEAD"]
	}
	if tag := r.newest(revision); tag != "" {
		return r.byName[tag]
	}
	for _, name := range []string{"refs/heads/" + revision, "refs/tags/" + revision, revision} {
		if id := r.byName[name]; id != "" {
			return id
		}
	}
	return ""
}

// newest returns the tag with the highest version in a range; "" when revision
// is a plain version, no range, or nothing matches. Pre-releases count only
// when the range names one.
func (r refs) newest(revision string) string {
	if _, err := semver.NewVersion(revision); err == nil {
		return ""
	}
	constraint, err := semver.NewConstraint(revision)
	if err != nil {
		return ""
	}
	var best *semver.Version
	var bestName string
	for _, name := range r.names {
		tag, ok := strings.CutPrefix(name, "refs/tags/")
		if !ok {
			continue
		}
		v, err := semver.NewVersion(tag)
		if err == nil && constraint.Check(v) && (best == nil || v.GreaterThan(best)) {
			best, bestName = v, name
		}
	}
	return bestName
}

// abbreviated resolves the beginning of a commit's id in the mirror, with all
// branches fetched, so that it names exactly one.
func (m *mirror) abbreviated(ctx context.Context, short string) (string, error) {
	m.fetching.Lock()
	defer m.fetching.Unlock()
	if err := m.ensure(ctx); err != nil {
		return "", err
	}
	find := func() (string, error) {
		out, err := m.f.run(ctx, m.dir, nil, "rev-parse", "--quiet", "--verify", "--end-of-options", short+"^{commit}")
		return strings.TrimSpace(string(out)), err
	}
	if id, err := find(); err == nil {
		return id, nil
	}
	m.mu.Lock()
	r := m.remote
	m.mu.Unlock()
	env, cleanup, err := r.environment()
	if err != nil {
		return "", err
	}
	defer cleanup()
	m.f.stats.Fetches.Add(1)
	if err := m.fetchWith(ctx, env, r.url, "+refs/*:refs/remote/*"); err != nil {
		return "", err
	}
	id, err := find()
	if err != nil {
		return "", rutter.Errorf(rutter.CodeNotFound, "no commit begins with that, or more than one does")
	}
	return id, nil
}
