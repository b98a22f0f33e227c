// Package kustomize renders a kustomization with kustomize's own library, on a
// recording view of the repository (reference 1.5). The declared options are
// applied as edits of the kustomization in memory; nothing is ever written.
//
// Ring: adapter (render). Nothing outside the repository is reachable: remote
// bases, plugins, functions and chart inflation are refused before kustomize
// sees them.
package kustomize

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/manifest"
	"github.com/rutterhq/rutter/internal/render/record"
)

// Renderer runs kustomize. It is safe for concurrent use; there should be one
// in a process, because of schema.
type Renderer struct {
	// schema guards the library's global OpenAPI schema. A kustomization with
	// an openapi field replaces it for everybody, so such a one renders alone
	// and the schema is put back afterwards; all others render together.
	schema sync.RWMutex
}

// New returns a Renderer.
func New() *Renderer { return &Renderer{} }

// Render returns the objects of the kustomization in dir, with warnings.
func (r *Renderer) Render(repo *record.FS, dir string, opts rutter.KustomizeOptions, env *buildenv.Env) ([]rutter.Object, []string, error) {
	keepOrigin, edited, err := r.prepare(repo, dir, opts, env)
	if err != nil {
		return nil, nil, err
	}
	res, err := r.build(repo, dir, edited)
	if err != nil {
		return nil, nil, err
	}
	objs, err := objects(res, dir, keepOrigin)
	return objs, nil, err
}

// edited is the kustomization at the root, as the options change it.
type edited struct {
	file string
	data []byte
}

// prepare applies the options, and asks for origin annotations.
func (r *Renderer) prepare(repo *record.FS, dir string, opts rutter.KustomizeOptions, env *buildenv.Env) (keepOrigin bool, out edited, err error) {
	file, data, err := rootFile(repo, dir)
	if err != nil {
		return false, out, err
	}
	var k types.Kustomization
	if err := k.Unmarshal(data); err != nil {
		return false, out, &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "is no valid kustomization: " + oneLine(err.Error())}
	}
	k.FixKustomization()
	if err := edit(repo, dir, &k, opts, env); err != nil {
		return false, out, &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "the options of source.kustomize do not fit", Err: err}
	}
	empty := k
	empty.BuildMetadata = nil
	if err := empty.CheckEmpty(); err != nil {
		return false, out, &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "the kustomization is empty: list at least one resource"}
	}
	keepOrigin = slices.Contains(k.BuildMetadata, types.OriginAnnotations)
	if !keepOrigin {
		k.BuildMetadata = append(slices.Clone(k.BuildMetadata), types.OriginAnnotations)
	}
	quiet(&k)
	out.file = file
	if out.data, err = yaml.Marshal(k); err != nil {
		return false, out, fmt.Errorf("encode the kustomization %s: %w", file, err)
	}
	return keepOrigin, out, nil
}

// rootFile reads the kustomization of dir, whichever of its names it has.
func rootFile(repo *record.FS, dir string) (string, []byte, error) {
	var found []string
	for _, name := range fileNames() {
		if repo.IsFile(path.Join(dir, name)) {
			found = append(found, path.Join(dir, name))
		}
	}
	switch len(found) {
	case 0:
		return "", nil, rutter.Errorf(rutter.CodeNotFound, "%s holds no kustomization.yaml", dir)
	case 1:
		data, err := repo.ReadFile(found[0])
		if err != nil {
			return "", nil, fmt.Errorf("read %s: %w", found[0], err)
		}
		return found[0], data, nil
	}
	return "", nil, rutter.Errorf(rutter.CodeInvalid, "%s holds several kustomizations (%s): keep one", dir, strings.Join(found, ", "))
}

// build runs the library, alone where it has to be.
func (r *Renderer) build(repo *record.FS, dir string, root edited) (resmap.ResMap, error) {
	fsys := newFS(repo, root)
	res, err := r.shared(fsys, dir)
	if fsys.needsAlone {
		fsys = newFS(repo, root)
		fsys.alone = true
		res, err = r.exclusive(fsys, dir)
	}
	switch {
	case fsys.refused != nil:
		return nil, fsys.refused
	case err != nil:
		return nil, rutter.Errorf(rutter.CodeInvalid, "kustomize build %s: %s", dir, readable(err))
	}
	return res, nil
}

func (r *Renderer) shared(fsys *snapshotFS, dir string) (resmap.ResMap, error) {
	r.schema.RLock()
	defer r.schema.RUnlock()
	return run(fsys, dir)
}

func (r *Renderer) exclusive(fsys *snapshotFS, dir string) (resmap.ResMap, error) {
	r.schema.Lock()
	defer r.schema.Unlock()
	defer openapi.ResetOpenAPI()
	return run(fsys, dir)
}

func run(fsys *snapshotFS, dir string) (resmap.ResMap, error) {
	res, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fsys, path.Join(mount, dir))
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	return res, nil
}

// readable is a library error without the place where we show it the repository.
func readable(err error) string {
	s := strings.TrimPrefix(err.Error(), "build: ")
	s = strings.ReplaceAll(s, mount+"/", "")
	return oneLine(strings.ReplaceAll(s, mount, "."))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// originAnnotation is where the library notes where an object comes from.
const originAnnotation = "config.kubernetes.io/origin"

func objects(res resmap.ResMap, dir string, keepOrigin bool) ([]rutter.Object, error) {
	var out []rutter.Object
	for _, r := range res.Resources() {
		js, err := r.MarshalJSON()
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "read %s: %w", r.CurId(), err)
		}
		var m map[string]any
		if err := utiljson.Unmarshal(js, &m); err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "read %s: %w", r.CurId(), err)
		}
		objs, err := manifest.Objects(m, rutter.Origin{File: origin(m, dir, keepOrigin)})
		if err != nil {
			return nil, err
		}
		out = append(out, objs...)
	}
	return out, nil
}

// origin takes the library's note of the origin off an object.
func origin(m map[string]any, dir string, keep bool) string {
	meta, _ := m["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	note, ok := annotations[originAnnotation].(string)
	if !ok {
		return ""
	}
	if !keep {
		delete(annotations, originAnnotation)
		if len(annotations) == 0 {
			delete(meta, "annotations")
		}
	}
	var where struct {
		Path         string `json:"path"`
		ConfiguredIn string `json:"configuredIn"`
	}
	if err := yaml.Unmarshal([]byte(note), &where); err != nil {
		return ""
	}
	if where.Path == "" {
		where.Path = where.ConfiguredIn
	}
	if where.Path == "" {
		return ""
	}
	return path.Join(dir, where.Path)
}
