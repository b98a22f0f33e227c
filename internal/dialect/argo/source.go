package argo

import (
	"fmt"
	"regexp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

var refName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// sources translates spec.source or spec.sources; sources win (reference 1.1).
func (t *translation) sources() []rutter.Source {
	multi := len(t.app.Spec.Sources) > 0
	in := t.app.Spec.Sources
	if !multi && t.app.Spec.Source != nil {
		in = []v1alpha1.ApplicationSource{*t.app.Spec.Source}
	}
	refs := map[string]bool{}
	var out []rutter.Source
	for i := range in {
		field := "spec.source"
		if multi {
			field = fmt.Sprintf("spec.sources[%d]", i)
		}
		t.checkSource(field, &in[i], multi, refs)
		out = append(out, t.source(field, &in[i]))
	}
	return out
}

func (t *translation) checkSource(field string, s *v1alpha1.ApplicationSource, multi bool, refs map[string]bool) {
	switch {
	case s.RepoURL == "":
		t.problem("%s.repoURL is required", field)
	case s.Path == "" && s.Chart == "" && (!multi || s.Ref == ""):
		t.problem("%s: path or chart is required", field)
	case s.Chart != "" && s.TargetRevision == "":
		t.problem("%s.targetRevision is required for a chart", field)
	}
	if s.Ref != "" {
		if !refName.MatchString(s.Ref) {
			t.problem("%s.ref: %q must consist of letters, digits, _ and -", field, s.Ref)
		}
		if refs[s.Ref] {
			t.problem("%s.ref: %q is used twice", field, s.Ref)
		}
		refs[s.Ref] = true
	}
	var tools []string
	for name, set := range map[string]bool{"helm": s.Helm != nil, "kustomize": s.Kustomize != nil, "directory": s.Directory != nil, "plugin": s.Plugin != nil} {
		if set {
			tools = append(tools, name)
		}
	}
	if len(tools) > 1 {
		t.problem("%s: only one of helm, kustomize, directory and plugin may be set, and %d are", field, len(tools))
	}
}

func (t *translation) source(field string, s *v1alpha1.ApplicationSource) rutter.Source {
	out := rutter.Source{RepoURL: s.RepoURL, Path: s.Path, TargetRevision: s.TargetRevision, Chart: s.Chart, Ref: s.Ref, Name: s.Name}
	note := func(set bool, name string) {
		if set {
			out.Unsupported = append(out.Unsupported, field+"."+name)
		}
	}
	note(s.Plugin != nil, "plugin")
	note(s.TagPrefix != "", "tagPrefix")
	if d := s.Directory; d != nil {
		out.Directory = &rutter.DirectoryOptions{Recurse: d.Recurse, Include: d.Include, Exclude: d.Exclude}
		note(len(d.Jsonnet.ExtVars)+len(d.Jsonnet.TLAs)+len(d.Jsonnet.Libs) > 0, "directory.jsonnet")
		note(d.DisableExtensionFilter, "directory.disableExtensionFilter")
	}
	if k := s.Kustomize; k != nil {
		out.Kustomize = kustomizeOptions(k)
		note(k.Version != "", "kustomize.version")
		note(k.KubeVersion != "", "kustomize.kubeVersion")
		note(len(k.APIVersions) > 0, "kustomize.apiVersions")
	}
	if h := s.Helm; h != nil {
		out.Helm = helmOptions(h)
		note(h.PassCredentials, "helm.passCredentials")
	}
	return out
}

func kustomizeOptions(k *v1alpha1.ApplicationSourceKustomize) *rutter.KustomizeOptions {
	out := &rutter.KustomizeOptions{
		NamePrefix: k.NamePrefix, NameSuffix: k.NameSuffix, Images: k.Images, CommonLabels: k.CommonLabels, CommonAnnotations: k.CommonAnnotations,
		ForceCommonLabels: k.ForceCommonLabels, ForceCommonAnnotations: k.ForceCommonAnnotations, CommonAnnotationsEnvsubst: k.CommonAnnotationsEnvsubst,
		LabelWithoutSelector: k.LabelWithoutSelector, LabelIncludeTemplates: k.LabelIncludeTemplates, Namespace: k.Namespace,
		Components: k.Components, IgnoreMissingComponents: k.IgnoreMissingComponents,
	}
	for _, r := range k.Replicas {
		out.Replicas = append(out.Replicas, rutter.KustomizeReplica{Name: r.Name, Count: int64(r.Count.IntValue())})
	}
	for _, p := range k.Patches {
		patch := rutter.KustomizePatch{Path: p.Path, Patch: p.Patch, Options: p.Options}
		if s := p.Target; s != nil {
			patch.Target = &rutter.KustomizeTarget{Group: s.Group, Version: s.Version, Kind: s.Kind, Name: s.Name, Namespace: s.Namespace,
				LabelSelector: s.LabelSelector, AnnotationSelector: s.AnnotationSelector}
		}
		out.Patches = append(out.Patches, patch)
	}
	return out
}

func helmOptions(h *v1alpha1.ApplicationSourceHelm) *rutter.HelmOptions {
	out := &rutter.HelmOptions{
		ReleaseName: h.ReleaseName, ValueFiles: h.ValueFiles, Values: h.Values, IgnoreMissingValueFiles: h.IgnoreMissingValueFiles,
		SkipCrds: h.SkipCrds, SkipTests: h.SkipTests, SkipSchemaValidation: h.SkipSchemaValidation, Namespace: h.Namespace,
		KubeVersion: h.KubeVersion, APIVersions: h.APIVersions,
	}
	if h.ValuesObject != nil {
		out.ValuesObject = h.ValuesObject.Raw
	}
	for _, p := range h.Parameters {
		out.Parameters = append(out.Parameters, rutter.HelmParameter{Name: p.Name, Value: p.Value, ForceString: p.ForceString})
	}
	for _, f := range h.FileParameters {
		out.FileParameters = append(out.FileParameters, rutter.HelmFile{Name: f.Name, Path: f.Path})
	}
	return out
}
