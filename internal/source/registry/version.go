package registry

import (
	"iter"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/rutterhq/rutter"
)

// Wish is which version of something is wanted: exactly one, or the newest
// within a constraint.
type Wish struct {
	text string
	// exact is set for a whole version, constraint for what can be read as one.
	exact      *semver.Version
	constraint *semver.Constraints
}

// maxWish bounds what is parsed as a constraint.
const maxWish = 256

// ParseWish reads a version or a constraint (reference 1.2); empty is the
// newest stable version.
func ParseWish(text string) (Wish, error) {
	w := Wish{text: strings.TrimSpace(text)}
	if len(w.text) > maxWish {
		return w, rutter.Errorf(rutter.CodeInvalid, "the version has %d characters, more than %d", len(w.text), maxWish)
	}
	rule := w.text
	if rule == "" {
		rule = "*"
	}
	if v, err := semver.StrictNewVersion(strings.TrimPrefix(rule, "v")); err == nil {
		w.exact = v
	}
	c, err := semver.NewConstraint(rule)
	if err != nil && w.exact == nil {
		return w, rutter.Errorf(rutter.CodeInvalid, "%q is neither a version nor a constraint on versions (such as 1.2.3, 1.2.x, ^1.2, or >=1.2 <2)", w.text)
	}
	w.constraint = c
	return w, nil
}

// Exact returns the spellings of the one version that is wished for, with and
// without a leading v; none for a constraint.
func (w Wish) Exact() []string {
	if w.exact == nil {
		return nil
	}
	if bare, ok := strings.CutPrefix(w.text, "v"); ok {
		return []string{w.text, bare}
	}
	return []string{w.text, "v" + w.text}
}

// Choose returns the index of the version that is wished for, -1 for none. What
// is no version is passed over. Of versions that differ in build metadata only
// the greatest text wins, so that the order of a list decides nothing.
func (w Wish) Choose(versions iter.Seq2[int, string]) int {
	best, exact := -1, -1
	var newest *semver.Version
	bestText := ""
	for i, text := range versions {
		v, err := semver.NewVersion(text)
		if err != nil {
			continue
		}
		if w.exact != nil && v.Equal(w.exact) && v.Metadata() == w.exact.Metadata() && (exact < 0 || text == w.text) {
			exact = i
		}
		if w.constraint == nil || !w.constraint.Check(v) {
			continue
		}
		if newest == nil || v.GreaterThan(newest) || v.Equal(newest) && text > bestText {
			best, newest, bestText = i, v, text
		}
	}
	if exact >= 0 {
		return exact
	}
	return best
}

// String is the wish as it was written.
func (w Wish) String() string {
	if w.text == "" {
		return "the newest stable version"
	}
	return w.text
}

// TagOf is the tag for a version: tags have no plus.
func TagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// VersionOf is the version that a tag stands for.
func VersionOf(tag string) string {
	if _, err := semver.NewVersion(tag); err == nil {
		return tag
	}
	return strings.Replace(tag, "_", "+", 1)
}
