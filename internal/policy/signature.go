package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// SignatureMode is how much of a history has to be signed (6.7).
type SignatureMode string

// The modes: nothing, the commit (or the tag) that is deployed, or every commit
// back to the root or to a signed seal.
const (
	SignatureNone   SignatureMode = "none"
	SignatureHead   SignatureMode = "head"
	SignatureStrict SignatureMode = "strict"
)

// SignatureRule is what a project demands of the commits of a repository.
type SignatureRule struct {
	Mode SignatureMode
	// Keys are the ids or fingerprints of those whose signatures count.
	Keys []string
	// Where is the rule, for messages.
	Where string
}

// SignatureRule is what the project demands of a Git repository. More than one
// policy for it is an error, as is one that cannot be read: nothing may be
// deployed from there until it is mended.
func (p *Project) SignatureRule(repoURL string) (SignatureRule, error) {
	spec := p.own.Spec
	if spec.SourceIntegrity == nil || spec.SourceIntegrity.Git == nil {
		if len(spec.SignatureKeys) == 0 {
			return SignatureRule{Mode: SignatureNone}, nil
		}
		rule := SignatureRule{Mode: SignatureHead, Where: "spec.signatureKeys of AppProject " + p.Name}
		for _, k := range spec.SignatureKeys {
			rule.Keys = append(rule.Keys, k.KeyID)
		}
		return rule, nil
	}
	rule := SignatureRule{Mode: SignatureNone}
	for i, policy := range spec.SourceIntegrity.Git.Policies {
		if !concernsRepo(policy.Repos, repoURL) {
			continue
		}
		where := fmt.Sprintf("spec.sourceIntegrity.git.policies[%d] of AppProject %s", i, p.Name)
		if rule.Where != "" {
			return rule, rutter.Errorf(rutter.CodeInvalid, "%s and %s both concern %s: let one of them", rule.Where, where, repoURL)
		}
		mode, err := readPolicy(policy)
		if err != nil {
			return rule, rutter.Errorf(rutter.CodeInvalid, "%s: %w", where, err)
		}
		rule = SignatureRule{Mode: mode, Keys: policy.GPG.Keys, Where: where}
	}
	return rule, nil
}

// readPolicy reads what a policy demands.
func readPolicy(policy v1alpha1.SourceIntegrityGitPolicy) (SignatureMode, error) {
	if policy.GPG == nil {
		return "", rutter.Errorf(rutter.CodeInvalid, "it has no gpg: say which mode, and which keys")
	}
	mode := SignatureMode(policy.GPG.Mode)
	switch mode {
	case SignatureNone, SignatureHead, SignatureStrict:
		return mode, nil
	}
	return "", rutter.Errorf(rutter.CodeInvalid, "gpg.mode %q is none of none, head and strict", mode)
}

// concernsRepo: a glob of the list hits and none with "!" does. What cannot be
// read hits, so that a mistake does not switch the rule off.
func concernsRepo(repos []v1alpha1.SourceIntegrityGitRepo, repoURL string) bool {
	found := false
	for i, r := range repos {
		rule := newRepoRule(r.URL, fmt.Sprintf("repos[%d]", i))
		o := rule.match(rutter.NormalizeGitURL(repoURL))
		if rule.deny && o.allows() {
			return false
		}
		found = found || !rule.deny && o.denies()
	}
	return found
}

// Demands reports whether signatures are asked for.
func (r SignatureRule) Demands() bool { return r.Mode != SignatureNone && r.Mode != "" }

// Check holds the signature of what is deployed against the rule.
func (r SignatureRule) Check(s rutter.Signature) error {
	allowed := strings.Join(r.Keys, ", ")
	switch {
	case !r.Demands():
		return nil
	case r.Mode != SignatureHead:
		return rutter.Errorf(rutter.CodeUnsupported, "%s: mode %s is not acted on yet: nothing is synced while it is set; use mode head", r.Where, r.Mode)
	case len(s.Keys) == 0:
		return rutter.Errorf(rutter.CodeForbidden, "%s is not signed, and %s demands it: sign it with one of the keys %s", s.Object, r.Where, allowed)
	case !slices.ContainsFunc(r.Keys, func(k string) bool {
		return slices.ContainsFunc(s.Keys, func(by string) bool { return sameKey(k, by) })
	}):
		return rutter.Errorf(rutter.CodeForbidden, "%s is signed with key %s, which is none of the keys %s of %s", s.Object, s.Keys[0], allowed, r.Where)
	case s.Invalid != "":
		return rutter.Errorf(rutter.CodeForbidden, "the signature of %s by key %s does not hold: %s (%s demands one of the keys %s)", s.Object, s.Keys[0], s.Invalid, r.Where, allowed)
	}
	return nil
}

// sameKey compares two names of a key. A GPG fingerprint ends with the long id;
// the short ids of 8 digits can be forged and match nothing but themselves. The
// fingerprints of SSH keys (SHA256:…) are compared as they are.
func sameKey(a, b string) bool {
	if strings.Contains(a+b, ":") {
		return a == b
	}
	a, b = strings.ToUpper(strings.TrimPrefix(a, "0x")), strings.ToUpper(strings.TrimPrefix(b, "0x"))
	const long = 16
	if len(a) < long || len(b) < long {
		return a != "" && a == b
	}
	return strings.HasSuffix(a, b) || strings.HasSuffix(b, a)
}
