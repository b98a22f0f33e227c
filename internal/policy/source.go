package policy

import (
	"net/url"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// CheckSource reports whether the project may read from a repository (6.2).
// Patterns are compared in the normal form of Git URLs; * does not cross /.
func CheckSource(p *v1alpha1.AppProject, repoURL string) error {
	if climbs(repoURL) {
		return rutter.Errorf(rutter.CodeForbidden, "repository %s is refused in project %s: a path with .. in it may lead elsewhere than it says", repoURL, p.Name)
	}
	normal := rutter.NormalizeGitURL(repoURL)
	allowed := false
	for i, rule := range p.Spec.SourceRepos {
		pattern, deny := strings.CutPrefix(rule, "!")
		o := globs(rutter.NormalizeGitURL(pattern), normal, '/')
		if deny && o.denies() {
			return rutter.Errorf(rutter.CodeForbidden, "repository %s is denied by spec.sourceRepos[%d] %q of AppProject %s", repoURL, i, rule, p.Name)
		}
		allowed = allowed || !deny && o.allows()
	}
	if !allowed {
		return rutter.Errorf(rutter.CodeForbidden, "repository %s is not permitted in project %s: no entry of spec.sourceRepos allows it", repoURL, p.Name)
	}
	return nil
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
// a namespace other than the control plane's (6.9).
func CheckSourceNamespace(p *v1alpha1.AppProject, app, namespace, controlPlane string) error {
	if namespace == controlPlane || namespace == "" {
		return nil
	}
	if slices.ContainsFunc(p.Spec.SourceNamespaces, func(s string) bool { return globOrRegexp(s, namespace).allows() }) {
		return nil
	}
	return rutter.Errorf(rutter.CodeForbidden, "application '%s' in namespace '%s' is not permitted to use project '%s': no entry of its spec.sourceNamespaces allows it",
		app, namespace, p.Name)
}
