package render

import (
	"context"
	"encoding/json"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/store"
)

// generation is raised when the same inputs are to be rendered differently by
// a change in these packages.
const generation = 3

// remoteAge is how old an answer about something that the source names
// elsewhere may be. What is pinned never changes; a branch or a range is looked
// at again after this time, when its unit is.
const remoteAge = 3 * time.Minute

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
		case "helm.sh/helm/v4", "sigs.k8s.io/kustomize/api", "sigs.k8s.io/kustomize/kyaml", "github.com/Masterminds/sprig/v3", "sigs.k8s.io/yaml",
			"github.com/google/go-jsonnet", "cuelang.org/go", "github.com/getsops/sops/v3":
			out = append(out, dep.Path+"@"+dep.Version)
		}
	}
	return strings.Join(out, " ")
}

// key names a declaration: everything beside the repository's content that
// the result depends on. Where it is read from is no part of it, and what only
// one tool uses is a part for that tool only, so that equal renders are shared.
//
// own names the declaration together with who makes it: the last renders of an
// application are found by it, however many others have the same declaration
// with other inputs or variables.
func (r *Renderer) key(j job) (key, own string) {
	src := j.source
	src.RepoURL, src.TargetRevision, src.Ref, src.Name, src.TagPrefix, src.Unsupported, src.Path = "", "", "", "", "", nil, j.path
	parts := []any{generation, r.tools, j.tool, src}
	switch j.tool {
	case toolHelm:
		parts = append(parts, j.req.AppName, j.req.Namespace, j.refs.names, j.settings.ValuesFileSchemes)
	case toolKustomize:
		parts = append(parts, j.settings.Kustomize[j.version()])
	case toolDirectory:
		parts = append(parts, j.settings.JsonnetDisabled, r.directoryLimit(j))
	case toolPlugin:
		parts = append(parts, r.opts.Plugins.Fingerprint(j.plugin))
	}
	text, err := json.Marshal(parts)
	if err != nil {
		// A values object that is no JSON: the render itself will say so.
		text = []byte(j.tool + "\x00" + string(src.Helm.ValuesObject))
	}
	key = store.Digest(text)
	who := []string{key, j.req.Source.RepoURL, j.req.Project, j.req.Instance, j.req.Namespace, j.req.Cluster}
	return key, store.Digest([]byte(strings.Join(who, "\x00")))
}

// directoryLimit bounds the files of a plain directory together.
func (r *Renderer) directoryLimit(j job) int64 {
	if j.settings.MaxDirectoryBytes != 0 {
		return j.settings.MaxDirectoryBytes
	}
	return r.opts.MaxDirectoryBytes
}

// version selects the operator's build options for kustomize.
func (j job) version() string {
	if j.source.Kustomize == nil {
		return ""
	}
	return j.source.Kustomize.Version
}

// flight names a render of one moment: who asks for the same waits for it.
func (j job) flight(r *Renderer) string {
	req := j.req
	parts := []string{j.key, req.Snapshot.Revision(), req.Instance, req.Namespace, req.Project, req.Source.RepoURL, req.Source.TargetRevision,
		r.capabilities.of(req.KubeVersion, req.APIVersions)}
	if req.Lookup != nil {
		parts = append(parts, req.Cluster)
	}
	for _, snap := range j.refs.snaps {
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
func (r *Renderer) known(ctx context.Context, j job) (rutter.Manifests, bool) {
	if r.opts.Store == nil {
		return rutter.Manifests{}, false
	}
	for _, k := range append(slices.Clip(r.opts.Store.Renders(j.key)), r.opts.Store.Renders(j.own)...) {
		if !j.env.Same(k.Env) || !r.unchanged(ctx, j, k.Inputs) {
			continue
		}
		var objs []rutter.Object
		if !j.req.Lazy {
			var err error
			if objs, err = r.objects(k.Digest); err != nil {
				continue // no longer kept: render again
			}
		}
		return rutter.Manifests{Objects: objs, Inputs: k.Inputs, SourceType: k.SourceType, Warnings: k.Warnings, Digest: k.Digest}, true
	}
	return rutter.Manifests{}, false
}

// unchanged compares recorded inputs with what is there now: first what costs
// nothing, then what may ask somebody.
func (r *Renderer) unchanged(ctx context.Context, j job, inputs []rutter.Input) bool {
	elsewhere := false
	for _, in := range inputs {
		if in.Repo != "" || in.Kind == rutter.InputRemote || in.Kind == rutter.InputLive {
			elsewhere = true
			continue
		}
		snap := j.req.Snapshot
		if in.Source > 0 {
			if in.Source > len(j.refs.snaps) {
				return false
			}
			snap = j.refs.snaps[in.Source-1]
		}
		if hash, err := snap.Hash(in.Kind, in.Path); err != nil || hash != in.Hash {
			return false
		}
	}
	return !elsewhere || r.unchangedElsewhere(ctx, j, inputs)
}

// unchangedElsewhere looks again at what lies outside of the sources. What
// can't be looked at, or must not be any more, counts as changed: the render
// then says why.
func (r *Renderer) unchangedElsewhere(ctx context.Context, j job, inputs []rutter.Input) bool {
	fetch, snaps := r.fetcher(j.req), map[string]rutter.Snapshot{}
	for _, in := range inputs {
		name := in.Repo
		switch in.Kind {
		case rutter.InputLive:
			if !r.sameLive(ctx, j.req.Lookup, in) {
				return false
			}
			continue
		case rutter.InputRemote:
			name = in.Path
		case rutter.InputFile, rutter.InputList, rutter.InputStat:
			if name == "" {
				continue // of the sources, and looked at before
			}
		}
		snap := snaps[name]
		if snap == nil {
			repo, err := rutter.RepoOfKey(name)
			if err == nil {
				snap, err = fetch(ctx, repo)
			}
			if err != nil {
				return false
			}
			snaps[name] = snap
		}
		if in.Kind == rutter.InputRemote {
			continue // what was read of it counts
		}
		if hash, err := snap.Hash(in.Kind, in.Path); err != nil || hash != in.Hash {
			return false
		}
	}
	return true
}

// sameLive looks an object up once more.
func (r *Renderer) sameLive(ctx context.Context, lookup rutter.Lookup, in rutter.Input) bool {
	if lookup == nil || in.Hash == record.LookupOff {
		return lookup == nil && in.Hash == record.LookupOff
	}
	var n [4]string
	if json.Unmarshal([]byte(in.Path), &n) != nil {
		return false
	}
	obj, err := lookup(ctx, n[0], n[1], n[2], n[3])
	if err != nil {
		return false
	}
	_, hash, err := record.LiveInput(r.digestKey, n[0], n[1], n[2], n[3], obj)
	return err == nil && hash == in.Hash
}

// fetcher finds what a request's source names elsewhere, as its project may.
func (r *Renderer) fetcher(req rutter.RenderRequest) func(context.Context, rutter.Repo) (rutter.Snapshot, error) {
	return func(ctx context.Context, repo rutter.Repo) (rutter.Snapshot, error) {
		repo.Project = req.Project
		if byName, ok := r.opts.Sources.(interface {
			Resolve(repo rutter.Repo) (rutter.Repo, error)
		}); ok { // a name stands for a URL, and that is what may be allowed
			var err error
			if repo, err = byName.Resolve(repo); err != nil {
				return nil, err
			}
		}
		if req.Permit != nil {
			if err := req.Permit(repo); err != nil {
				return nil, err //nolint:wrapcheck // it says who may not use what
			}
		}
		if r.opts.Sources == nil {
			return nil, rutter.Errorf(rutter.CodeUnsupported, "%s lies elsewhere, and nothing is fetched here", repo.Key())
		}
		return r.opts.Sources.Snapshot(ctx, repo, rutter.ResolveOptions{MaxAge: int64(remoteAge)})
	}
}
