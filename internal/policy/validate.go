package policy

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gobwas/glob"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// Validate lists what is wrong with an AppProject, each problem by its field. A
// rule that is wrong is in force nevertheless, in the safe reading: what denies
// denies, what allows does not.
func Validate(p *v1alpha1.AppProject) []error {
	v := &validation{}
	v.sources(p.Spec)
	v.destinations(p.Spec)
	v.kinds(p.Spec)
	v.accounts(p.Spec)
	v.windows(p.Spec)
	v.patterns("spec.sourceNamespaces", p.Spec.SourceNamespaces)
	if o := p.Spec.OrphanedResources; o != nil {
		for i, k := range o.Ignore {
			for name, text := range map[string]string{"group": k.Group, "kind": k.Kind, "name": k.Name} {
				v.glob(fmt.Sprintf("spec.orphanedResources.ignore[%d].%s", i, name), text)
			}
		}
	}
	v.integrity(p)
	_, problems := Roles(p)
	problems = append(problems, v.problems...)
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return problems
}

type validation struct{ problems []error }

func (v *validation) problem(format string, args ...any) {
	v.problems = append(v.problems, rutter.Errorf(rutter.CodeInvalid, format, args...))
}

// glob checks that a glob can be read.
func (v *validation) glob(field, text string, separators ...rune) {
	if _, err := glob.Compile(strings.TrimPrefix(text, "!"), separators...); err != nil {
		v.problem("%s %q: the pattern cannot be read: %v", field, text, err)
	}
}

// negation refuses !*, which would deny everything.
func (v *validation) negation(field, text string) {
	if text == "!*" {
		v.problem("%s: !* denies everything: take it out, or name what is to be denied", field)
	}
}

// repeated reports the first place of what is there twice.
func (v *validation) repeated(seen map[string]string, field, key, what string) {
	if first, ok := seen[key]; ok {
		v.problem("%s: %s is there already, as %s: take one out", field, what, first)
		return
	}
	seen[key] = field
}

func (v *validation) patterns(list string, texts []string) {
	seen := map[string]string{}
	for i, text := range texts {
		field := fmt.Sprintf("%s[%d]", list, i)
		v.repeated(seen, field, text, fmt.Sprintf("%q", text))
		expression, ok := asRegexp(text)
		if !ok {
			v.glob(field, text)
			continue
		}
		if _, err := regexp.Compile(expression); err != nil {
			v.problem("%s %q: the regular expression cannot be read: %v", field, text, err)
		}
	}
}

func (v *validation) sources(s v1alpha1.AppProjectSpec) {
	seen := map[string]string{}
	for i, r := range s.SourceRepos {
		field := fmt.Sprintf("spec.sourceRepos[%d]", i)
		v.negation(field, r)
		v.glob(field, r, '/')
		v.repeated(seen, field, r, fmt.Sprintf("source repository %q", r))
	}
	const limit = 255
	if len([]rune(s.Description)) > limit {
		v.problem("spec.description: it has %d characters: %d are allowed", len([]rune(s.Description)), limit)
	}
}

func (v *validation) destinations(s v1alpha1.AppProjectSpec) {
	seen := map[string]string{}
	for i, d := range s.Destinations {
		field := fmt.Sprintf("spec.destinations[%d]", i)
		for _, f := range []struct{ name, text string }{{"server", d.Server}, {"name", d.Name}, {"namespace", d.Namespace}} {
			v.negation(field+"."+f.name, f.text)
			v.glob(field+"."+f.name, f.text)
		}
		v.repeated(seen, field, d.Server+"\x00"+d.Name+"\x00"+d.Namespace, fmt.Sprintf("destination %s%s, namespace %s", d.Server, d.Name, d.Namespace))
	}
}

func (v *validation) kinds(s v1alpha1.AppProjectSpec) {
	check := func(field string, patterns ...string) {
		for _, text := range patterns {
			if _, err := path.Match(text, ""); err != nil {
				v.problem("%s: pattern %q cannot be read: %v", field, text, err)
			}
		}
	}
	for list, entries := range map[string][]v1alpha1.ClusterResourceRestriction{"clusterResourceWhitelist": s.ClusterResourceWhitelist, "clusterResourceBlacklist": s.ClusterResourceBlacklist} {
		for i, r := range entries {
			check(fmt.Sprintf("spec.%s[%d]", list, i), r.Group, r.Kind, r.Name)
		}
	}
	namespaced := map[string][]v1alpha1.GroupKind{"namespaceResourceBlacklist": s.NamespaceResourceBlacklist}
	if s.NamespaceResourceWhitelist != nil {
		namespaced["namespaceResourceWhitelist"] = *s.NamespaceResourceWhitelist
	}
	for list, entries := range namespaced {
		for i, r := range entries {
			check(fmt.Sprintf("spec.%s[%d]", list, i), r.Group, r.Kind)
		}
	}
}

// accounts checks spec.destinationServiceAccounts (6.8): globs, and a name
// without any.
func (v *validation) accounts(s v1alpha1.AppProjectSpec) {
	seen := map[string]string{}
	for i, a := range s.DestinationServiceAccounts {
		field := fmt.Sprintf("spec.destinationServiceAccounts[%d]", i)
		for _, f := range []struct{ name, text string }{{"server", a.Server}, {"namespace", a.Namespace}} {
			if strings.HasPrefix(f.text, "!") {
				v.problem("%s.%s %q: a negation has no meaning here: the first entry that matches counts", field, f.name, f.text)
			}
			v.glob(field+"."+f.name, f.text)
		}
		_, name, qualified := strings.Cut(a.DefaultServiceAccount, ":")
		if !qualified {
			name = a.DefaultServiceAccount
		}
		switch {
		case a.Server == "":
			v.problem("%s.server: it is empty and matches no cluster: write a URL or a glob", field)
		case strings.TrimSpace(name) == "" || strings.HasPrefix(a.DefaultServiceAccount, ":"):
			v.problem("%s.defaultServiceAccount %q: write NAME or NAMESPACE:NAME", field, a.DefaultServiceAccount)
		case strings.ContainsAny(a.DefaultServiceAccount, "!*[]{}\\/ ") || strings.Contains(name, ":"):
			v.problem("%s.defaultServiceAccount %q: it is one account, without patterns: write NAME or NAMESPACE:NAME", field, a.DefaultServiceAccount)
		}
		v.repeated(seen, field, a.Server+"\x00"+a.Namespace, fmt.Sprintf("server %q with namespace %q", a.Server, a.Namespace))
	}
}

// windows checks spec.syncWindows (2.13). Of two that are the same but for
// manualSync one would be without effect.
func (v *validation) windows(s v1alpha1.AppProjectSpec) {
	seen := map[string]string{}
	for i, w := range s.SyncWindows {
		field := fmt.Sprintf("spec.syncWindows[%d]", i)
		if _, _, err := readWindow(w); err != nil {
			v.problem("%s: %w", field, err)
		}
		if _, err := zoneOf(w.TimeZone); err != nil {
			v.problem("%s.timeZone: %w; it counts as UTC", field, err)
		}
		if len(w.Applications)+len(w.Namespaces)+len(w.Clusters) == 0 {
			v.problem("%s: it concerns no application: list applications, namespaces or clusters, with * for all", field)
		}
		for name, list := range map[string][]string{"applications": w.Applications, "namespaces": w.Namespaces, "clusters": w.Clusters} {
			for j, text := range list {
				if _, err := glob.Compile(text); err != nil {
					v.problem("%s.%s[%d] %q: the pattern cannot be read: %v", field, name, j, text, err)
				}
			}
		}
		key := fmt.Sprintf("%q", []any{w.Kind, w.Schedule, w.Duration, w.Applications, w.Namespaces, w.Clusters, w.TimeZone, w.UseAndOperator})
		v.repeated(seen, field, key, "the same window")
	}
}

// integrity checks that the rules on signatures can be followed (6.7).
func (v *validation) integrity(p *v1alpha1.AppProject) {
	for i, k := range p.Spec.SignatureKeys {
		if strings.TrimSpace(k.KeyID) == "" {
			v.problem("spec.signatureKeys[%d].keyID: it is empty", i)
		}
	}
	if p.Spec.SourceIntegrity == nil || p.Spec.SourceIntegrity.Git == nil {
		return
	}
	if len(p.Spec.SignatureKeys) > 0 {
		v.problem("spec.signatureKeys: it has no effect beside spec.sourceIntegrity.git: take one out")
	}
	for i, policy := range p.Spec.SourceIntegrity.Git.Policies {
		field := fmt.Sprintf("spec.sourceIntegrity.git.policies[%d]", i)
		if len(policy.Repos) == 0 {
			v.problem("%s.repos: it is empty and concerns no repository", field)
		}
		for j, r := range policy.Repos {
			v.glob(fmt.Sprintf("%s.repos[%d].url", field, j), r.URL, '/')
		}
		mode, err := readPolicy(policy)
		switch {
		case err != nil:
			v.problem("%s: %w", field, err)
		case mode != SignatureNone && len(policy.GPG.Keys) == 0:
			v.problem("%s.gpg.keys: it is empty: no signature counts", field)
		}
	}
}
