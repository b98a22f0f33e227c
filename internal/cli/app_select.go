package cli

import (
	"slices"
	"strings"

	"github.com/gobwas/glob"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// resourcePattern is one --resource: GROUP:KIND:[NAMESPACE/]NAME, where * stands for
// any text and a ! in front excludes.
type resourcePattern struct {
	exclude                      bool
	group, kind, namespace, name string
}

// parsePattern reads one.
func parsePattern(s string) (resourcePattern, error) {
	var p resourcePattern
	text, exclude := strings.CutPrefix(s, "!")
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return p, rutter.Errorf(rutter.CodeInvalid, "--resource %q: write GROUP:KIND:[NAMESPACE/]NAME, such as apps:Deployment:web, :Service:shop/web, *:ConfigMap:* or !apps:*:*", s)
	}
	p = resourcePattern{exclude: exclude, group: parts[0], kind: parts[1], name: parts[2]}
	if ns, name, ok := strings.Cut(parts[2], "/"); ok {
		p.namespace, p.name = ns, name
	}
	for _, part := range []string{p.group, p.kind, p.namespace, p.name} {
		if _, err := glob.Compile(part); err != nil {
			return p, rutter.Errorf(rutter.CodeInvalid, "--resource %q: %q is no pattern: %w", s, part, err)
		}
	}
	return p, nil
}

// literal reports whether the pattern stands for one resource only.
func (p resourcePattern) literal() bool {
	return !p.exclude && !strings.ContainsAny(p.group+p.kind+p.namespace+p.name, "*?[{\\")
}

func (p resourcePattern) matches(r v1alpha1.ResourceStatus) bool {
	return matches(p.group, r.Group) && matches(p.kind, r.Kind) && matches(p.name, r.Name) && (p.namespace == "" || matches(p.namespace, r.Namespace))
}

func matches(pattern, text string) bool {
	g, err := glob.Compile(pattern)
	return err == nil && g.Match(text)
}

// selectResources resolves patterns against the resources of an Application:
// exclusions win, and nothing but exclusions leaves all others (reference 2.6).
func selectResources(app *v1alpha1.Application, texts []string) ([]v1alpha1.SyncOperationResource, error) {
	var in, out []resourcePattern
	var chosen []v1alpha1.SyncOperationResource
	for _, s := range texts {
		p, err := parsePattern(s)
		switch {
		case err != nil:
			return nil, err
		case p.exclude:
			out = append(out, p)
		default:
			in = append(in, p)
		}
	}
	if len(out) == 0 && !slices.ContainsFunc(in, func(p resourcePattern) bool { return !p.literal() }) {
		for _, p := range in { // what is named need not be known yet
			chosen = append(chosen, v1alpha1.SyncOperationResource{Group: p.group, Kind: p.kind, Namespace: p.namespace, Name: p.name})
		}
		return chosen, nil
	}
	for _, r := range app.Status.Resources {
		matching := func(p resourcePattern) bool { return p.matches(r) }
		if (len(in) == 0 || slices.ContainsFunc(in, matching)) && !slices.ContainsFunc(out, matching) {
			chosen = append(chosen, v1alpha1.SyncOperationResource{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
		}
	}
	if len(chosen) == 0 {
		return nil, rutter.Errorf(rutter.CodeNotFound, "application %q: none of its resources is selected by %s", app.Name, strings.Join(texts, " "))
	}
	return chosen, nil
}
