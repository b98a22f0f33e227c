package argo

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

var refName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// sources translates spec.source or spec.sources; sources win (reference 1.1).
func (t *translation) sources() []rutter.Source {
	spec := &t.app.Spec
	in := spec.Sources
	if len(in) == 0 && spec.Source != nil {
		in = []v1alpha1.ApplicationSource{*spec.Source}
	}
	if spec.SourceHydrator != nil {
		in = nil // it overrides both, and is refused elsewhere
	}
	refs := map[string]bool{}
	var out []rutter.Source
	for i := range in {
		field := sourceField(t.app, i)
		t.checkSource(field, &in[i], len(spec.Sources) > 0)
		t.checkRef(field, &in[i], refs)
		out = append(out, t.source(field, &in[i]))
	}
	return out
}

// sourceField is the path of source i in the spec.
func sourceField(app *v1alpha1.Application, i int) string {
	if len(app.Spec.Sources) == 0 {
		return "spec.source"
	}
	return fmt.Sprintf("spec.sources[%d]", i)
}

func (t *translation) checkSource(field string, s *v1alpha1.ApplicationSource, multi bool) {
	switch {
	case s.RepoURL == "":
		t.invalid("%s.repoURL is required", field)
	case s.Path == "" && s.Chart == "" && !multi:
		t.invalid("%s: path or chart is required", field)
	case s.Path == "" && s.Chart == "" && s.Ref == "":
		t.invalid("%s: path, chart or ref is required", field)
	case s.Chart != "" && s.TargetRevision == "":
		t.invalid("%s.targetRevision is required for a chart", field)
	case s.Chart != "" && s.Path != "":
		t.invalid("%s: path and chart exclude each other: a chart from a Helm repository has no path", field)
	}
	if strings.HasPrefix(s.Path, "/") {
		t.invalid("%s.path: %q must be relative to the root of the repository", field, s.Path)
	}
	var tools []string
	for _, tool := range []struct {
		name string
		set  bool
	}{{"helm", s.Helm != nil}, {"kustomize", s.Kustomize != nil}, {"directory", s.Directory != nil}, {"plugin", s.Plugin != nil}} {
		if tool.set {
			tools = append(tools, tool.name)
		}
	}
	if len(tools) > 1 {
		t.invalid("%s: only one tool may be set, and %s are", field, strings.Join(tools, ", "))
	}
}

func (t *translation) checkRef(field string, s *v1alpha1.ApplicationSource, refs map[string]bool) {
	if s.Ref == "" {
		return
	}
	switch {
	case !refName.MatchString(s.Ref):
		t.invalid("%s.ref: %q must consist of letters, digits, _ and -", field, s.Ref)
	case refs[s.Ref]:
		t.invalid("%s.ref: %q names another source already", field, s.Ref)
	case s.Chart != "":
		t.invalid("%s.ref: %q cannot name a chart: values are read from Git", field, s.Ref)
	}
	refs[s.Ref] = true
}

func (t *translation) source(field string, s *v1alpha1.ApplicationSource) rutter.Source {
	out := rutter.Source{RepoURL: s.RepoURL, Path: s.Path, TargetRevision: s.TargetRevision, Chart: s.Chart, Ref: s.Ref, Name: s.Name, TagPrefix: s.TagPrefix}
	if d := s.Directory; d != nil {
		out.Directory = &rutter.DirectoryOptions{Recurse: d.Recurse, Include: d.Include, Exclude: d.Exclude,
			DisableExtensionFilter: d.DisableExtensionFilter, Jsonnet: jsonnet(d.Jsonnet)}
	}
	if k := s.Kustomize; k != nil {
		out.Kustomize = t.kustomize(field+".kustomize", k)
	}
	if h := s.Helm; h != nil {
		out.Helm = helmOptions(h)
	}
	if p := s.Plugin; p != nil {
		out.Plugin = t.plugin(field+".plugin", p)
	}
	return out
}
