package kustomize

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/pkg/util"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/record"
)

// keep, as a part of an image, leaves what the kustomization says.
const keep = "*"

// edit applies the options in the reference's order (1.5).
func edit(in *Input, k *types.Kustomization) error {
	opts := in.Options
	if opts.NamePrefix != "" {
		k.NamePrefix = opts.NamePrefix
	}
	if opts.NameSuffix != "" {
		k.NameSuffix = opts.NameSuffix
	}
	if err := editImages(k, opts.Images, in.Env); err != nil {
		return err
	}
	editReplicas(k, opts.Replicas)
	if err := editLabels(k, opts, in.Env); err != nil {
		return err
	}
	if err := editAnnotations(k, opts, in.Env); err != nil {
		return err
	}
	if opts.Namespace != "" {
		k.Namespace = opts.Namespace
	}
	if err := editPatches(k, opts.Patches); err != nil {
		return err
	}
	return editComponents(in, k)
}

func editPatches(k *types.Kustomization, patches []rutter.KustomizePatch) error {
	for i, p := range patches {
		patch, err := toPatch(p)
		if err != nil {
			return fmt.Errorf("patches[%d]: %w", i, err)
		}
		k.Patches = append(k.Patches, patch)
	}
	return nil
}

// editComponents adds components; a local one may be a pattern.
func editComponents(in *Input, k *types.Kustomization) error {
	for _, c := range in.Options.Components {
		found, err := localComponents(in, c)
		if err != nil {
			return err
		}
		for _, one := range found {
			if !slices.Contains(k.Components, one) {
				k.Components = append(k.Components, one)
			}
		}
	}
	return nil
}

func localComponents(in *Input, pattern string) ([]string, error) {
	if isElsewhere(pattern) || !strings.ContainsAny(pattern, `*?[\`) {
		if in.Options.IgnoreMissingComponents && !isElsewhere(pattern) && !in.Repo.IsDir(path.Join(in.Path, pattern)) {
			return nil, in.Repo.Err()
		}
		return []string{pattern}, nil
	}
	dir, last := path.Split(pattern)
	found, err := in.Repo.ReadDir(path.Join(in.Path, dir))
	if err != nil && !record.IsAbsent(err) {
		return nil, fmt.Errorf("components: list %s: %w", dir, err)
	}
	var out []string
	for _, e := range found {
		ok, err := path.Match(last, e.Name())
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "components: %q is no pattern: %w", pattern, err)
		}
		if ok {
			out = append(out, dir+e.Name())
		}
	}
	if len(out) == 0 && !in.Options.IgnoreMissingComponents {
		return nil, rutter.Errorf(rutter.CodeInvalid, "components: %s has no match", pattern)
	}
	return out, nil
}

// editImages merges image overrides by name; the result is ordered by name.
func editImages(k *types.Kustomization, images []string, env *buildenv.Env) error {
	if len(images) == 0 {
		return nil
	}
	merged := map[string]types.Image{}
	for i, text := range images {
		img, err := parseImage(env.Expand(text))
		if err != nil {
			return fmt.Errorf("images[%d]: %w", i, err)
		}
		merged[img.Name] = img
	}
	for _, have := range k.Images {
		want, ok := merged[have.Name]
		if !ok {
			merged[have.Name] = have
			continue
		}
		for _, part := range []struct{ want, have *string }{
			{&want.NewName, &have.NewName}, {&want.NewTag, &have.NewTag}, {&want.Digest, &have.Digest},
		} {
			if *part.want == keep {
				*part.want = *part.have
			}
		}
		merged[have.Name] = want
	}
	k.Images = nil
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		img := merged[name]
		for _, part := range []*string{&img.NewName, &img.NewTag, &img.Digest} {
			if *part == keep {
				*part = ""
			}
		}
		k.Images = append(k.Images, img)
	}
	return nil
}

// parseImage reads [old=]name[:tag][@digest].
func parseImage(text string) (types.Image, error) {
	old, full, renamed := strings.Cut(text, "=")
	if !renamed {
		old, full = "", text
	}
	name, tag, digest := util.SplitImageName(full)
	switch {
	case !renamed && (name == "" || tag == "" && digest == ""):
		return types.Image{}, rutter.Errorf(rutter.CodeInvalid, "%q has not the form [old=]name[:tag|@digest]", text)
	case old == "":
		return types.Image{Name: name, NewTag: tag, Digest: digest}, nil
	}
	return types.Image{Name: old, NewName: name, NewTag: tag, Digest: digest}, nil
}

// editReplicas merges replicas by name; the result is ordered by name.
func editReplicas(k *types.Kustomization, replicas []rutter.KustomizeReplica) {
	if len(replicas) == 0 {
		return
	}
	merged := map[string]types.Replica{}
	for _, r := range k.Replicas {
		merged[r.Name] = r
	}
	for _, r := range replicas {
		merged[r.Name] = types.Replica{Name: r.Name, Count: r.Count}
	}
	k.Replicas = nil
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		k.Replicas = append(k.Replicas, merged[name])
	}
}

func editLabels(k *types.Kustomization, opts rutter.KustomizeOptions, env *buildenv.Env) error {
	if opts.LabelIncludeTemplates && !opts.LabelWithoutSelector {
		return rutter.Errorf(rutter.CodeInvalid, "labelIncludeTemplates needs labelWithoutSelector")
	}
	if len(opts.CommonLabels) == 0 {
		return nil
	}
	into := k.CommonLabels
	if opts.LabelWithoutSelector {
		into = plainLabels(k, opts.LabelIncludeTemplates)
	} else if into == nil {
		into = map[string]string{}
		k.CommonLabels = into
	}
	return put("commonLabels", "forceCommonLabels", into, opts.CommonLabels, opts.ForceCommonLabels, env.Expand)
}

// plainLabels returns the labels entry that touches no selector, made when there is none.
func plainLabels(k *types.Kustomization, templates bool) map[string]string {
	for i := range k.Labels {
		l := &k.Labels[i]
		if !l.IncludeSelectors && l.IncludeTemplates == templates {
			if l.Pairs == nil {
				l.Pairs = map[string]string{}
			}
			return l.Pairs
		}
	}
	l := types.Label{Pairs: map[string]string{}, IncludeTemplates: templates}
	k.Labels = append(k.Labels, l)
	return l.Pairs
}

func editAnnotations(k *types.Kustomization, opts rutter.KustomizeOptions, env *buildenv.Env) error {
	if len(opts.CommonAnnotations) == 0 {
		return nil
	}
	if k.CommonAnnotations == nil {
		k.CommonAnnotations = map[string]string{}
	}
	expand := func(s string) string { return s }
	if opts.CommonAnnotationsEnvsubst {
		expand = env.Expand
	}
	return put("commonAnnotations", "forceCommonAnnotations", k.CommonAnnotations, opts.CommonAnnotations, opts.ForceCommonAnnotations, expand)
}

// put adds pairs; one that is there already is a conflict unless forced.
func put(field, forceField string, into, pairs map[string]string, force bool, expand func(string) string) error {
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		if _, taken := into[key]; taken && !force {
			return rutter.Errorf(rutter.CodeInvalid, "%s: %q is already set in the kustomization: set %s to replace it", field, key, forceField)
		}
		into[key] = unquote(expand(pairs[key]))
	}
	return nil
}

// unquote takes double quotes off a value, as kustomize edit does.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

func toPatch(p rutter.KustomizePatch) (types.Patch, error) {
	out := types.Patch{Path: p.Path, Patch: p.Patch}
	if t := p.Target; t != nil {
		out.Target = &types.Selector{
			ResId:         resid.ResId{Gvk: resid.Gvk{Group: t.Group, Version: t.Version, Kind: t.Kind}, Name: t.Name, Namespace: t.Namespace},
			LabelSelector: t.LabelSelector, AnnotationSelector: t.AnnotationSelector,
		}
	}
	if len(p.Options) > 0 {
		out.Options = &types.PatchArgs{}
		for _, key := range slices.Sorted(maps.Keys(p.Options)) {
			switch key {
			case "allowNameChange":
				out.Options.AllowNameChange = p.Options[key]
			case "allowKindChange":
				out.Options.AllowKindChange = p.Options[key]
			default:
				return out, rutter.Errorf(rutter.CodeInvalid, "options.%s is unknown: allowNameChange and allowKindChange are known", key)
			}
		}
	}
	return out, nil
}
