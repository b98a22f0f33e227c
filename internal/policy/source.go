package policy

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
)

// repoRule is an entry of spec.sourceRepos (6.2).
type repoRule struct {
	pattern

	where string
}

// newRepoRule compares in the normal form of Git URLs; * does not cross /.
func newRepoRule(text, where string) repoRule {
	plain, deny := strings.CutPrefix(text, "!")
	r := repoRule{pattern: plainPattern(rutter.NormalizeGitURL(plain), '/'), where: fmt.Sprintf("%s (%q)", where, text)}
	r.deny = deny
	return r
}

// Source reports by which rule the project may read from a repository (6.2),
// or why it may not.
func (p *Project) Source(repoURL string) (rule string, err error) {
	what := "repository " + repoURL
	if climbs(repoURL) {
		return "", p.refuse(what, "a path with .. in it may lead elsewhere than it says")
	}
	normal := rutter.NormalizeGitURL(repoURL)
	for _, r := range p.repos {
		o := r.match(normal)
		if r.deny && o.denies() {
			return "", p.refuse(what, "it is denied by "+r.where)
		}
		if rule == "" && !r.deny && o.allows() {
			rule = r.where
		}
	}
	if rule == "" {
		return "", p.refuse(what, "no entry of spec.sourceRepos allows it")
	}
	return rule, nil
}

// CheckSource is Source for who does not ask for the rule.
func (p *Project) CheckSource(repoURL string) error {
	_, err := p.Source(repoURL)
	return err
}

// climbs reports whether a path of the URL, or of what it decodes to, has a
// segment "..": clients and servers resolve it, so a pattern that allows
// https://host/ours/** would allow https://host/ours/../theirs.
func climbs(repoURL string) bool {
	decoded := repoURL
	for range 3 { // encoded once, twice, …
		if slices.Contains(strings.FieldsFunc(decoded, func(r rune) bool { return r == '/' || r == '\\' || r == ':' }), "..") {
			return true
		}
		next, err := url.PathUnescape(decoded)
		if err != nil || next == decoded {
			return false
		}
		decoded = next
	}
	return false
}

// CheckSourceNamespace reports whether Applications of the project may live in
// a namespace other than the control plane's (6.9). What the project inherits
// does not count.
func (p *Project) CheckSourceNamespace(app, namespace, controlPlane string) error {
	if namespace == controlPlane || namespace == "" || MatchesNamespace(p.own.Spec.SourceNamespaces, namespace) {
		return nil
	}
	return rutter.Errorf(rutter.CodeForbidden, "application '%s' in namespace '%s' is not permitted to use project '%s': no entry of its spec.sourceNamespaces allows it",
		app, namespace, p.Name)
}
