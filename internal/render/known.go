package render

import (
	"encoding/json"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/store"
)

// generation is raised when the same inputs are to be rendered differently by
// a change in these packages.
const generation = 1

// toolVersions names what renders, so that another version of a tool never
// answers with the results of this one.
func toolVersions() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var out []string
	for _, dep := range info.Deps {
		switch dep.Path {
		case "helm.sh/helm/v4", "sigs.k8s.io/kustomize/api", "sigs.k8s.io/kustomize/kyaml", "github.com/Masterminds/sprig/v3", "sigs.k8s.io/yaml":
			out = append(out, dep.Path+"@"+dep.Version)
		}
	}
	return strings.Join(out, " ")
}

// key names a declaration: everything beside the repository's content that
// the result depends on. Where it is read from is no part of it, and what only
// Helm uses is a part for Helm only, so that equal renders are shared.
func key(j job, req rutter.RenderRequest, tools string, refs []string) string {
	src := j.source
	src.RepoURL, src.TargetRevision, src.Ref, src.Name, src.Unsupported, src.Path = "", "", "", "", nil, j.path
	parts := []any{generation, tools, j.tool, src}
	if j.tool == toolHelm {
		parts = append(parts, req.AppName, req.Namespace, req.KubeVersion, req.APIVersions, refs)
	}
	text, err := json.Marshal(parts)
	if err != nil {
		// A values object that is no JSON: the render itself will say so.
		return j.tool + "\x00" + string(src.Helm.ValuesObject)
	}
	return store.Digest(text)
}

// flight names a render of one moment: who asks for the same waits for it.
func (j job) flight(req rutter.RenderRequest, refs refs) string {
	parts := []string{j.key, req.Snapshot.Revision(), req.Instance, req.Namespace, req.Project, req.Source.RepoURL, req.Source.TargetRevision}
	for _, snap := range refs.snaps {
		parts = append(parts, snap.Revision())
	}
	return strings.Join(parts, "\x00")
}

// refs are the other sources of a render in the order of their names; the
// inputs of the n-th carry the number n+1.
type refs struct {
	names []string
	snaps []rutter.Snapshot
}

func newRefs(m map[string]rutter.Snapshot) refs {
	r := refs{names: slices.Sorted(maps.Keys(m))}
	for _, n := range r.names {
		r.snaps = append(r.snaps, m[n])
	}
	return r
}

// known looks for a render whose inputs are all as they were.
func (r *Renderer) known(j job, snap rutter.Snapshot, refs refs, env *buildenv.Env) (rutter.Manifests, bool) {
	if r.opts.Store == nil {
		return rutter.Manifests{}, false
	}
	for _, k := range r.opts.Store.Renders(j.key) {
		if !env.Same(k.Env) || !unchanged(k.Inputs, snap, refs) {
			continue
		}
		objs, err := r.objects(k.Digest)
		if err != nil {
			continue // no longer kept: render again
		}
		return rutter.Manifests{Objects: objs, Inputs: k.Inputs, SourceType: k.SourceType,
			Warnings: slices.Concat(j.warnings, k.Warnings), Digest: k.Digest}, true
	}
	return rutter.Manifests{}, false
}

func unchanged(inputs []rutter.Input, snap rutter.Snapshot, refs refs) bool {
	for _, in := range inputs {
		s := snap
		if in.Source > 0 {
			if in.Source > len(refs.snaps) {
				return false
			}
			s = refs.snaps[in.Source-1]
		}
		if hash, err := s.Hash(in.Kind, in.Path); err != nil || hash != in.Hash {
			return false
		}
	}
	return true
}
