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
	"reflect"
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
	// known holds what was found in files before, for the many kustomizations
	// that share a base.
	known *known
}

// New returns a Renderer.
func New() *Renderer { return &Renderer{known: newKnown()} }

// Render returns the objects of the kustomization in dir, with warnings.
func (r *Renderer) Render(repo *record.FS, dir string, opts rutter.KustomizeOptions, env *buildenv.Env) ([]rutter.Object, []string, error) {
	root, err := r.prepare(repo, dir, opts, env)
	if err != nil {
		return nil, nil, err
	}
	for {
		res, fsys, err := r.build(repo, dir, root)
		if err != nil {
			return nil, nil, err
		}
		objs, certain, err := r.objects(res, fsys, root)
		if err != nil || certain || root.noted() {
			return objs, nil, err
		}
		// Two files declare the same object before they are renamed: only the
		// library can tell them apart, and notes are not free.
		if err := root.note(); err != nil {
			return nil, nil, err
		}
	}
}

// edited is the kustomization at the root, as the options change it.
type edited struct {
	file string
	data []byte
	k    types.Kustomization
	// keepNotes says that the user wants the library's notes on origins.
	keepNotes bool
}

// noted reports whether the library writes notes on origins.
func (e *edited) noted() bool { return slices.Contains(e.k.BuildMetadata, types.OriginAnnotations) }

// note asks for notes on origins.
func (e *edited) note() error {
	e.k.BuildMetadata = append(slices.Clone(e.k.BuildMetadata), types.OriginAnnotations)
	return e.encode()
}

func (e *edited) encode() error {
	data, err := yaml.Marshal(e.k)
	if err != nil {
		return fmt.Errorf("encode the kustomization %s: %w", e.file, err)
	}
	e.data = data
	return nil
}

// prepare reads the kustomization and applies the options.
func (r *Renderer) prepare(repo *record.FS, dir string, opts rutter.KustomizeOptions, env *buildenv.Env) (*edited, error) {
	file, data, err := rootFile(repo, dir)
	if err != nil {
		return nil, err
	}
	out := &edited{file: file, data: data}
	if err := out.k.Unmarshal(data); err != nil {
		return nil, &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "is no valid kustomization: " + oneLine(err.Error())}
	}
	out.keepNotes = out.noted()
	changed := !reflect.ValueOf(opts).IsZero()
	if changed {
		out.k.FixKustomization()
		if err := edit(repo, dir, &out.k, opts, env); err != nil {
			return nil, &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "the options of source.kustomize do not fit", Err: err}
		}
	}
	if quiet(&out.k) || changed {
		err = out.encode()
	}
	return out, err
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
func (r *Renderer) build(repo *record.FS, dir string, root *edited) (resmap.ResMap, *snapshotFS, error) {
	fsys := newFS(repo, root, r.known)
	res, err := r.shared(fsys, dir)
	if fsys.needsAlone {
		fsys = newFS(repo, root, r.known)
		fsys.alone = true
		res, err = r.exclusive(fsys, dir)
	}
	switch {
	case fsys.refused != nil:
		return nil, nil, fsys.refused
	case err != nil:
		return nil, nil, rutter.Errorf(rutter.CodeInvalid, "kustomize build %s: %s", dir, readable(err))
	}
	return res, fsys, nil
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

// objects reads the result; certain says that each origin is known for sure.
func (r *Renderer) objects(res resmap.ResMap, fsys *snapshotFS, root *edited) (out []rutter.Object, certain bool, err error) {
	find := fsys.origins()
	certain = true
	for _, each := range res.Resources() {
		js, err := each.MarshalJSON()
		if err != nil {
			return nil, false, rutter.Errorf(rutter.CodeInvalid, "read %s: %w", each.CurId(), err)
		}
		var m map[string]any
		if err := utiljson.Unmarshal(js, &m); err != nil {
			return nil, false, rutter.Errorf(rutter.CodeInvalid, "read %s: %w", each.CurId(), err)
		}
		file := takeNote(m, path.Dir(root.file), root.keepNotes)
		from, sure := find.origin(each.CurId(), file)
		certain = certain && sure
		objs, err := manifest.Objects(m, from)
		if err != nil {
			return nil, false, err
		}
		out = append(out, objs...)
	}
	return out, certain, nil
}
