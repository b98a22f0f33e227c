package kustomize

import (
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/rutterhq/rutter"
)

// maxNested bounds plugins that are built by kustomizations with plugins.
const maxNested = 8

// pluginFolders looks at the folders in a list of generators, transformers or
// validators. One that only lists resources is left to the library, and its
// files are checked as they are read. Another could change a configuration
// after that, so it is built first, and what comes out is checked and named
// instead of the folder.
func (b bringer) pluginFolders(list []string) error {
	for i, entry := range list {
		full := path.Join(path.Dir(b.full), entry)
		if strings.Contains(entry, "\n") || !b.IsDir(full) {
			continue
		}
		at, ok := b.place(full)
		if !ok {
			continue
		}
		plain, err := listsOnly(at)
		if err != nil {
			return err
		}
		if plain {
			continue
		}
		data, err := b.nested(full, at)
		if err != nil {
			return err
		}
		list[i] = b.put(path.Dir(b.full), "plugins.yaml", &virtualFile{data: data, entry: at.display(), at: b.origin(entry)})
	}
	return nil
}

// listsOnly reports whether a folder's kustomization only lists files.
func listsOnly(at place) (bool, error) {
	file, data, err := rootFile(at.m.repo, at.path)
	if err != nil || file == "" {
		return true, err // the library says what is wrong
	}
	k, err := decode(at.m.display(file), data)
	if err != nil {
		return false, err
	}
	for _, entry := range k.Resources {
		if isElsewhere(entry) || at.m.repo.IsDir(path.Join(at.path, entry)) {
			return false, nil
		}
	}
	k.TypeMeta, k.MetaData, k.Resources, k.BuildMetadata = types.TypeMeta{}, nil, nil, nil
	return k.CheckEmpty() != nil, nil
}

// nested builds a folder within a build.
func (f *snapshotFS) nested(full string, at place) ([]byte, error) {
	if f.alone {
		return nil, &rutter.Error{Code: rutter.CodeUnsupported, File: at.display(),
			Message: "a kustomization that is used as a generator, transformer or validator may only list files where an openapi field is used: list the configurations one by one"}
	}
	if f.depth++; f.depth > maxNested {
		return nil, &rutter.Error{Code: rutter.CodeInvalid, File: at.display(), Message: "generators, transformers and validators are nested too deeply, or name themselves"}
	}
	layers := f.layers
	f.layers = nil
	defer func() { f.layers, f.depth = layers, f.depth-1 }()
	res, err := run(f, full, krusty.ReorderOptionNone)
	if f.refused != nil {
		return nil, f.refused
	}
	if err != nil {
		return nil, &rutter.Error{Code: rutter.CodeInvalid, File: at.display(), Message: "cannot be built", Err: f.failure(err)}
	}
	data, err := res.AsYaml()
	if err != nil {
		return nil, &rutter.Error{Code: rutter.CodeInvalid, File: at.display(), Message: f.readable(err.Error())}
	}
	return data, nil
}
