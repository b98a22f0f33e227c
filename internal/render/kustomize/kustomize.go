// Package kustomize renders a kustomization with kustomize's own library, on a
// recording view of the repository (reference 1.5). The declared options are
// applied as edits of the kustomization in memory; nothing is ever written.
//
// The library never reaches anything itself. What a kustomization names in
// other repositories is fetched through record.FS.Remote, which asks the
// project and takes note, and is mounted beside the repository; charts are
// rendered by a function that is handed in. Programs and containers are refused.
//
// Ring: adapter (render).
package kustomize

import (
	"context"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/manifest"
	"github.com/rutterhq/rutter/internal/render/record"
)

// Version is the release of kustomize whose library is linked. Objects say so
// where a kustomization asks for buildMetadata: [managedByLabel].
const Version = "v5.8.2"

const managedByLabel = "app.kubernetes.io/managed-by"

// Renderer runs kustomize. It is safe for concurrent use; there should be one
// in a process, because of the library's schema.
type Renderer struct {
	schema schemaLock
	// known holds what was found in files before, for the many kustomizations
	// that share a base.
	known *known
}

// New returns a Renderer.
func New() *Renderer { return &Renderer{known: newKnown()} }

// Render returns the objects of the kustomization, with warnings.
func (r *Renderer) Render(ctx context.Context, in Input) ([]rutter.Object, []string, error) {
	root, err := r.prepare(&in)
	if err != nil {
		return nil, nil, err
	}
	brought := newBrought(&in)
	for {
		res, fsys, err := r.build(ctx, &in, root, brought)
		if err != nil {
			return nil, nil, err
		}
		objs, certain, err := objects(res, fsys)
		if err != nil {
			return nil, nil, err
		}
		if certain || root.noted() {
			if in.Flux != nil {
				objs, err = in.Flux.finish(objs)
			}
			return objs, slices.Sorted(maps.Keys(fsys.warnings)), err
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
	// text is what the repository holds, data what the library sees.
	text, data []byte
	k          types.Kustomization
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

func (e *edited) encode() (err error) {
	e.data, err = encode(e.file, &e.k)
	return err
}

// prepare reads the kustomization, or makes one up for Flux, and applies the options.
func (r *Renderer) prepare(in *Input) (*edited, error) {
	file, data, err := rootFile(in.Repo, in.Path)
	if err != nil {
		return nil, err
	}
	if file == "" && in.Flux == nil {
		return nil, rutter.Errorf(rutter.CodeNotFound, "%s holds no kustomization.yaml, and without one there is nothing that kustomize could build: add one, or take the kustomize options off the source", in.Path)
	}
	if file == "" {
		file = path.Join(in.Path, konfig.DefaultKustomizationFileName())
		if data, err = generate(in.Repo, in.Path); err != nil {
			return nil, err
		}
	}
	k, err := decode(file, data)
	if err != nil {
		return nil, err
	}
	out := &edited{file: file, text: data, data: data, k: *k}
	changed := in.Flux != nil || !reflect.ValueOf(in.Options).IsZero()
	if changed {
		if err := out.edit(in); err != nil {
			return nil, err
		}
	}
	out.keepNotes = out.noted()
	if quiet(&out.k) || changed {
		err = out.encode()
	}
	return out, err
}

func (e *edited) edit(in *Input) error {
	e.k.FixKustomization()
	what := "the options of source.kustomize do not fit"
	var err error
	if in.Flux != nil {
		what, err = "the options of the Kustomization do not fit", in.Flux.edit(in.Repo, in.Path, &e.k)
	} else {
		err = edit(in, &e.k)
	}
	if err != nil {
		return &rutter.Error{Code: rutter.CodeInvalid, File: e.file, Message: what, Err: err}
	}
	return nil
}

// rootFile reads the kustomization of dir, whichever of its names it has; "" when
// there is none.
func rootFile(repo *record.FS, dir string) (string, []byte, error) {
	var found []string
	for _, name := range fileNames() {
		if repo.IsFile(path.Join(dir, name)) {
			found = append(found, path.Join(dir, name))
		}
	}
	switch len(found) {
	case 0:
		return "", nil, repo.Err()
	case 1:
		data, err := repo.ReadFile(found[0])
		if err != nil {
			return "", nil, fmt.Errorf("read %s: %w", found[0], err)
		}
		return found[0], data, nil
	}
	return "", nil, rutter.Errorf(rutter.CodeInvalid, "%s holds several kustomizations (%s): keep one", dir, strings.Join(found, ", "))
}

// build runs the library, alone where it has to be. It stops where something has
// to be brought in, and begins anew when that is there: nobody waits for the
// network while it holds the schema.
func (r *Renderer) build(ctx context.Context, in *Input, root *edited, brought *brought) (resmap.ResMap, *snapshotFS, error) {
	alone := false
	for {
		fsys := newFS(in, root, r.known, brought)
		fsys.alone = alone
		var res resmap.ResMap
		var err error
		run := func() error { res, err = runRoot(fsys); return nil }
		lock := r.schema.together
		if alone {
			lock = r.schema.alone
		}
		if err := lock(ctx, run); err != nil {
			return nil, nil, err
		}
		switch stop := in.Repo.Err(); {
		case stop != nil:
			return nil, nil, stop // what the library made of it is of no interest
		case brought.wanting():
			brought.bring(ctx)
		case fsys.needsAlone && !alone:
			alone = true
		case fsys.refused != nil:
			return nil, nil, fsys.refused
		case err != nil:
			return nil, nil, fsys.failure(err)
		default:
			return res, fsys, nil
		}
	}
}

// run builds a kustomization. Whatever the operator has switched on, the library
// runs no program: charts and plugins are not its business here.
func run(fsys *snapshotFS, dir string, reorder krusty.ReorderOption) (resmap.ResMap, error) {
	opts := krusty.MakeDefaultOptions()
	opts.Reorder = reorder
	if fsys.in.Build.LoadRestrictorNone || fsys.in.Flux != nil {
		opts.LoadRestrictions = types.LoadRestrictionsNone
	}
	res, err := krusty.MakeKustomizer(opts).Run(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	return res, nil
}

// runRoot builds the root. Its objects come by kind where the kustomization says
// nothing of their order, which is what the program does with Build.LegacyOrder
// and without; Flux keeps the order of the kustomization.
func runRoot(fsys *snapshotFS) (resmap.ResMap, error) {
	reorder := krusty.ReorderOptionUnspecified
	if fsys.in.Flux != nil && fsys.root.k.SortOptions == nil {
		reorder = krusty.ReorderOptionNone
	}
	return run(fsys, path.Dir(fsys.rootFile()), reorder)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// objects reads the result; certain says that each origin is known for sure.
func objects(res resmap.ResMap, fsys *snapshotFS) (out []rutter.Object, certain bool, err error) {
	find := fsys.origins()
	certain = true
	for _, each := range res.Resources() {
		m, err := plain(each)
		if err != nil {
			return nil, false, fsys.unreadable(each.CurId(), find, err)
		}
		file := fsys.takeNote(m, fsys.root.keepNotes)
		from, sure := find.origin(each.CurId(), file)
		if !sure && file != "" {
			if at, ok := fsys.place(file); ok {
				from = at.m.origin(at.path, 0)
			}
		}
		certain = certain && sure
		objs, err := manifest.Objects(m, from)
		if err != nil {
			return nil, false, err
		}
		if slices.Contains(fsys.root.k.BuildMetadata, types.ManagedByLabelOption) {
			for _, o := range objs {
				o.SetLabels(over(o.GetLabels(), map[string]string{managedByLabel: "kustomize-" + Version}))
			}
		}
		out = append(out, objs...)
	}
	return out, certain, nil
}
