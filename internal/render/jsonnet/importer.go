package jsonnet

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/google/go-jsonnet"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/isolate"
)

// importer finds what import, importstr and importbin name: beside the file
// that imports, then in the libraries, the last one first, then in the source's
// path. It reads the repository and nothing else.
type importer struct {
	files isolate.Files
	libs  []string
	// found are the files that were read, by path; nil contents for none.
	found map[string]*jsonnet.Contents
	// err is why the repository could not be read.
	err error
}

func newImporter(files isolate.Files, libs []string) *importer {
	return &importer{files: files, libs: libs, found: map[string]*jsonnet.Contents{}}
}

var errAbsent = errors.New("no such file")

// Import implements jsonnet.Importer.
func (i *importer) Import(from, name string) (jsonnet.Contents, string, error) {
	if path.IsAbs(name) {
		return jsonnet.Contents{}, "", fmt.Errorf("import %q: an absolute path leaves the repository: use a path relative to this file or to one of directory.jsonnet.libs", name)
	}
	for _, dir := range i.places(from) {
		file := path.Join(dir, name)
		if outside(file) {
			continue
		}
		c, err := i.contents(file)
		if errors.Is(err, errAbsent) {
			continue
		}
		return c, file, err
	}
	return jsonnet.Contents{}, "", fmt.Errorf("import %q: there is no such file beside this one or in %v, inside the repository: add the folder to directory.jsonnet.libs", name, i.libs)
}

// places are the folders to look in, in order. A variable with code has no file.
func (i *importer) places(from string) []string {
	var out []string
	if from != "" {
		out = append(out, path.Dir(from))
	}
	for _, lib := range slices.Backward(i.libs) {
		out = append(out, lib)
	}
	return out
}

// outside reports whether a cleaned path leads out of the root.
func outside(file string) bool {
	return !fs.ValidPath(file)
}

// contents reads a file once: the evaluator compares by identity.
func (i *importer) contents(file string) (jsonnet.Contents, error) {
	if c, seen := i.found[file]; seen {
		if c == nil {
			return jsonnet.Contents{}, errAbsent
		}
		return *c, nil
	}
	data, err := i.files.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		i.found[file] = nil
		return jsonnet.Contents{}, errAbsent
	}
	if err != nil {
		info, statErr := i.files.Stat(file)
		if statErr == nil && info.IsDir() {
			return jsonnet.Contents{}, fmt.Errorf("%s is a folder", file)
		}
		i.err = rutter.Errorf(rutter.CodeOf(err), "read %s: %w", file, err)
		return jsonnet.Contents{}, i.err
	}
	c := jsonnet.MakeContentsRaw(data)
	i.found[file] = &c
	return c, nil
}
