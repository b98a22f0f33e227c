package kustomize

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/manifest"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/substitute"
)

// FluxOptions are what a Flux Kustomization adds to a build. Files may be read
// from anywhere in the repository, as Flux lets them.
type FluxOptions struct {
	// TargetNamespace overrides the namespace of all objects.
	TargetNamespace        string
	NamePrefix, NameSuffix string
	// Patches are put behind those of the kustomization; the two older forms are honoured.
	Patches               []rutter.KustomizePatch
	PatchesStrategicMerge []string
	PatchesJSON6902       []rutter.KustomizePatch
	// Components are paths in the repository.
	Components              []string
	IgnoreMissingComponents bool
	Images                  []FluxImage
	// BuildMetadata replaces that of the kustomization, when it is given.
	BuildMetadata []string
	// NoRemoteBases refuses what is in other repositories.
	NoRemoteBases bool
	// CommonLabels and CommonAnnotations are commonMetadata: they are put on
	// every object at last, over what it has, and touch no selector.
	CommonLabels, CommonAnnotations map[string]string
	// PostBuild fills variables in each object; nil leaves them alone.
	PostBuild *substitute.Variables
}

// FluxImage overrides an image by name.
type FluxImage struct {
	Name, NewName, NewTag, Digest string
}

// placeholder is the namespace that a generated kustomization without any
// resource gets, because an empty one is an error.
const placeholder = "_placeholder"

// edit applies the options in Flux's order.
func (o *FluxOptions) edit(repo *record.FS, dir string, k *types.Kustomization) error {
	for _, set := range []struct{ to, value *string }{
		{&k.Namespace, &o.TargetNamespace}, {&k.NamePrefix, &o.NamePrefix}, {&k.NameSuffix, &o.NameSuffix},
	} {
		if *set.value != "" {
			*set.to = *set.value
		}
	}
	if err := editPatches(k, o.Patches); err != nil {
		return err
	}
	for _, p := range o.PatchesStrategicMerge {
		k.PatchesStrategicMerge = append(k.PatchesStrategicMerge, types.PatchStrategicMerge(p))
	}
	for i, p := range o.PatchesJSON6902 {
		patch, err := toPatch(p)
		if err != nil {
			return fmt.Errorf("patchesJson6902[%d]: %w", i, err)
		}
		k.PatchesJson6902 = append(k.PatchesJson6902, patch)
	}
	for i, c := range o.Components {
		switch {
		case isElsewhere(c) || path.IsAbs(c):
			return rutter.Errorf(rutter.CodeInvalid, "components[%d]: %s must be a relative path in the repository", i, printable(c))
		case o.IgnoreMissingComponents && !repo.IsDir(path.Join(dir, c)):
			continue
		}
		k.Components = append(k.Components, c)
	}
	o.editImages(k)
	if len(o.BuildMetadata) > 0 {
		k.BuildMetadata = slices.Clone(o.BuildMetadata)
	}
	return repo.Err()
}

// editImages merges by name. A tag and a digest are one: giving either replaces both.
func (o *FluxOptions) editImages(k *types.Kustomization) {
	for _, img := range o.Images {
		i := slices.IndexFunc(k.Images, func(have types.Image) bool { return have.Name == img.Name })
		if i < 0 {
			k.Images = append(k.Images, types.Image{Name: img.Name, NewName: img.NewName, NewTag: img.NewTag, Digest: img.Digest})
			continue
		}
		have := &k.Images[i]
		if img.NewName != "" {
			have.NewName = img.NewName
		}
		if img.NewTag != "" || img.Digest != "" {
			have.NewTag, have.Digest = img.NewTag, img.Digest
		}
	}
}

// finish fills variables and adds the common metadata.
func (o *FluxOptions) finish(objs []rutter.Object) ([]rutter.Object, error) {
	for i, obj := range objs {
		if o.PostBuild != nil {
			filled, err := o.PostBuild.Object(obj.Unstructured)
			if err != nil {
				return nil, &rutter.Error{Code: rutter.CodeInvalid, File: obj.Origin.File, Line: obj.Origin.Line,
					Message: fmt.Sprintf("postBuild: variables of %s %s", obj.GetKind(), obj.GetName()), Err: err}
			}
			objs[i].Unstructured = filled
		}
		if len(o.CommonLabels) > 0 {
			objs[i].SetLabels(over(objs[i].GetLabels(), o.CommonLabels))
		}
		if len(o.CommonAnnotations) > 0 {
			objs[i].SetAnnotations(over(objs[i].GetAnnotations(), o.CommonAnnotations))
		}
	}
	return objs, nil
}

// over returns have with more put over it.
func over(have, more map[string]string) map[string]string {
	if have == nil {
		have = map[string]string{}
	}
	maps.Copy(have, more)
	return have
}

// Generated returns the resources of the kustomization that Flux makes up for a
// folder that has none: every manifest below it, and instead of what is below a
// folder that has a kustomization of its own, that folder. The paths are those
// of all files, relative to the folder; holdsObjects looks into one of them.
func Generated(files []string, holdsObjects func(file string) (bool, error)) ([]string, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, byPart)
	own := map[string]bool{}
	for _, f := range files {
		if dir := path.Dir(f); dir != "." && slices.Contains(fileNames(), path.Base(f)) {
			own[dir] = true
		}
	}
	var out []string
	added := map[string]bool{}
	for _, f := range files {
		if dir := topmost(f, own); dir != "" {
			if !added[dir] {
				added[dir] = true
				out = append(out, dir)
			}
			continue
		}
		if ext := path.Ext(f); ext != ".yaml" && ext != ".yml" {
			continue
		}
		ok, err := holdsObjects(f)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, f)
		}
	}
	return out, nil
}

// byPart orders paths as a walk meets them: by name in each folder.
func byPart(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

// topmost is the highest folder above file that is in own; "" when there is none.
func topmost(file string, own map[string]bool) string {
	for i, c := range file {
		if c == '/' && own[file[:i]] {
			return file[:i]
		}
	}
	return ""
}

// generate makes up the kustomization of a folder that has none.
func generate(repo *record.FS, dir string) ([]byte, error) {
	files, err := tree(repo, dir)
	if err != nil {
		return nil, err
	}
	k := types.Kustomization{TypeMeta: types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind}}
	k.Resources, err = Generated(files, func(file string) (bool, error) { return holdsObjects(repo, path.Join(dir, file)) })
	if err != nil {
		return nil, err
	}
	if len(k.Resources) == 0 {
		k.Namespace = placeholder
	}
	return encode(dir, &k)
}

// tree lists the files below dir, but not those below a folder that has a
// kustomization of its own, except that.
func tree(repo *record.FS, dir string) ([]string, error) {
	var out []string
	var walk func(rel string) error
	walk = func(rel string) error {
		found, err := repo.ReadDir(path.Join(dir, rel))
		if err != nil {
			return fmt.Errorf("list %s: %w", path.Join(dir, rel), err)
		}
		if i := slices.IndexFunc(found, isKustomization); i >= 0 && rel != "." {
			out = append(out, path.Join(rel, found[i].Name()))
			return nil
		}
		for _, e := range found {
			p := path.Join(rel, e.Name())
			if !e.IsDir() {
				out = append(out, p)
			} else if err := walk(p); err != nil {
				return err
			}
		}
		return nil
	}
	return out, walk(".")
}

func isKustomization(e fs.DirEntry) bool {
	return !e.IsDir() && slices.Contains(fileNames(), e.Name())
}

// holdsObjects reports whether a file holds Kubernetes objects that may be
// applied, as opposed to other YAML.
func holdsObjects(repo *record.FS, file string) (bool, error) {
	data, err := repo.ReadFile(file)
	if record.IsAbsent(err) {
		return false, nil // a link that leads nowhere
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", file, err)
	}
	if err := checkSize(file, data); err != nil {
		return false, err
	}
	holds := false
	for _, doc := range manifest.Split(data) {
		v, err := manifest.Decode(doc, file)
		if err != nil {
			return false, err
		}
		m, _ := v.(map[string]any)
		version, _ := m["apiVersion"].(string)
		switch group, _, _ := strings.Cut(version, "/"); {
		case version == "" || !manifest.IsObject(v):
			return false, nil
		case group == "kustomize.config.k8s.io":
			return false, nil
		}
		holds = true
	}
	return holds, nil
}
