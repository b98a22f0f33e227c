package argo

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

func (t *translation) kustomize(field string, k *v1alpha1.ApplicationSourceKustomize) *rutter.KustomizeOptions {
	out := &rutter.KustomizeOptions{
		NamePrefix: k.NamePrefix, NameSuffix: k.NameSuffix, Images: k.Images, CommonLabels: k.CommonLabels, CommonAnnotations: k.CommonAnnotations,
		ForceCommonLabels: k.ForceCommonLabels, ForceCommonAnnotations: k.ForceCommonAnnotations, CommonAnnotationsEnvsubst: k.CommonAnnotationsEnvsubst,
		LabelWithoutSelector: k.LabelWithoutSelector, LabelIncludeTemplates: k.LabelIncludeTemplates, Namespace: k.Namespace,
		Components: k.Components, IgnoreMissingComponents: k.IgnoreMissingComponents,
		Version: k.Version, KubeVersion: k.KubeVersion, APIVersions: k.APIVersions,
	}
	for i, r := range k.Replicas {
		count, ok := replicaCount(r.Count)
		if !ok {
			t.invalid("%s.replicas[%d].count: %q is not a number of replicas", field, i, r.Count.String())
		}
		out.Replicas = append(out.Replicas, rutter.KustomizeReplica{Name: r.Name, Count: count})
	}
	for i, p := range k.Patches {
		if p.Path == "" && p.Patch == "" {
			t.invalid("%s.patches[%d]: path or patch is required", field, i)
		}
		patch := rutter.KustomizePatch{Path: p.Path, Patch: p.Patch, Options: p.Options}
		if s := p.Target; s != nil {
			patch.Target = &rutter.KustomizeTarget{Group: s.Group, Version: s.Version, Kind: s.Kind, Name: s.Name, Namespace: s.Namespace,
				LabelSelector: s.LabelSelector, AnnotationSelector: s.AnnotationSelector}
		}
		out.Patches = append(out.Patches, patch)
	}
	return out
}

// replicaCount reads a count that may be written as a string. A text that is
// no number must not become 0, which would stop the workload.
func replicaCount(v intstr.IntOrString) (int64, bool) {
	if v.Type == intstr.Int {
		return int64(v.IntVal), v.IntVal >= 0
	}
	n, err := strconv.ParseInt(v.StrVal, 10, 32)
	return n, err == nil && n >= 0
}

func jsonnet(j v1alpha1.ApplicationSourceJsonnet) *rutter.JsonnetOptions {
	if len(j.ExtVars)+len(j.TLAs)+len(j.Libs) == 0 {
		return nil
	}
	return &rutter.JsonnetOptions{ExtVars: jsonnetVars(j.ExtVars), TLAs: jsonnetVars(j.TLAs), Libs: j.Libs}
}

func jsonnetVars(in []v1alpha1.JsonnetVar) []rutter.JsonnetVar {
	var out []rutter.JsonnetVar
	for _, v := range in {
		out = append(out, rutter.JsonnetVar{Name: v.Name, Value: v.Value, Code: v.Code})
	}
	return out
}

func (t *translation) plugin(field string, p *v1alpha1.ApplicationSourcePlugin) *rutter.PluginOptions {
	out := &rutter.PluginOptions{Name: p.Name}
	for i, e := range p.Env {
		if e.Name == "" {
			t.invalid("%s.env[%d].name is required", field, i)
		}
		out.Env = append(out.Env, rutter.PluginEnv{Name: e.Name, Value: e.Value})
	}
	for i, q := range p.Parameters {
		if q.Name == "" {
			t.invalid("%s.parameters[%d].name is required", field, i)
		}
		out.Parameters = append(out.Parameters, rutter.PluginParameter{Name: q.Name, String: q.String, Array: q.Array, Map: q.Map})
	}
	return out
}

func helmOptions(h *v1alpha1.ApplicationSourceHelm) *rutter.HelmOptions {
	out := &rutter.HelmOptions{
		ReleaseName: h.ReleaseName, ValueFiles: h.ValueFiles, Values: h.Values, IgnoreMissingValueFiles: h.IgnoreMissingValueFiles,
		SkipCrds: h.SkipCrds, SkipTests: h.SkipTests, SkipSchemaValidation: h.SkipSchemaValidation,
		Namespace: h.Namespace, KubeVersion: h.KubeVersion, APIVersions: h.APIVersions, PassCredentials: h.PassCredentials,
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
