// Package directory renders a folder of plain manifests (reference 1.4): YAML
// and JSON, several documents in a file, recursively where asked for, selected
// by include and exclude patterns.
//
// Ring: adapter (render).
package directory

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/gobwas/glob"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/manifest"
	"github.com/rutterhq/rutter/internal/render/record"
)

// Options are the declared options and the operator's limit.
type Options struct {
	rutter.DirectoryOptions

	// MaxBytes bounds the combined size of the files; zero means no limit.
	MaxBytes int64
}

// skipMark in a file's text, anywhere, takes the file out of the render.
var skipMark = []byte("+argocd:skip-file-rendering")

// Render returns the objects in the files of dir, in the lexical order of
// their paths.
func Render(repo *record.FS, dir string, opts Options) ([]rutter.Object, []string, error) {
	r := &renderer{repo: repo, dir: dir, opts: opts}
	var err error
	if r.include, err = pattern("include", opts.Include); err != nil {
		return nil, nil, err
	}
	if r.exclude, err = pattern("exclude", opts.Exclude); err != nil {
		return nil, nil, err
	}
	if err := r.folder("."); err != nil {
		return nil, nil, err
	}
	return r.objects, r.warnings, nil
}

type renderer struct {
	repo             *record.FS
	dir              string
	opts             Options
	include, exclude glob.Glob
	size             int64

	objects  []rutter.Object
	warnings []string
}

func pattern(field, text string) (glob.Glob, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no pattern
	}
	g, err := glob.Compile(text)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "directory.%s: %q is not a pattern: %w", field, text, err)
	}
	return g, nil
}

// folder renders one folder; rel is relative to the source's path.
func (r *renderer) folder(rel string) error {
	entries, err := r.repo.ReadDir(path.Join(r.dir, rel))
	if err != nil {
		return fmt.Errorf("list %s: %w", path.Join(r.dir, rel), err)
	}
	for _, e := range entries {
		name := path.Join(rel, e.Name())
		switch {
		case e.IsDir():
			if r.opts.Recurse {
				if err := r.folder(name); err != nil {
					return err
				}
			}
		case r.wanted(name) && r.regular(e, name):
			if err := r.file(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// wanted applies the extension filter, then exclude, then include.
func (r *renderer) wanted(rel string) bool {
	switch path.Ext(rel) {
	case ".yaml", ".yml", ".json", ".jsonnet":
	default:
		return false
	}
	if r.exclude != nil && r.exclude.Match(rel) {
		return false
	}
	return r.include == nil || r.include.Match(rel)
}

// regular follows symbolic links to files; a link that leads nowhere, or out
// of the repository, is skipped with a warning.
func (r *renderer) regular(e fs.DirEntry, rel string) bool {
	if e.Type().IsRegular() {
		return true
	}
	if e.Type()&fs.ModeSymlink == 0 {
		return false
	}
	full := path.Join(r.dir, rel)
	info, err := r.repo.Stat(full)
	if err != nil {
		r.warnings = append(r.warnings, full+": the symbolic link leads to nothing inside the repository and was skipped")
		return false
	}
	return info.Mode().IsRegular()
}

func (r *renderer) file(rel string) error {
	full := path.Join(r.dir, rel)
	data, err := r.repo.ReadFile(full)
	if err != nil {
		return fmt.Errorf("read %s: %w", full, err)
	}
	if bytes.Contains(data, skipMark) {
		return nil
	}
	if path.Ext(rel) == ".jsonnet" {
		return &rutter.Error{Code: rutter.CodeUnsupported, File: full,
			Message: "Jsonnet is not rendered yet: commit the manifests that it makes, or leave the file out with directory.exclude"}
	}
	if r.size += int64(len(data)); r.opts.MaxBytes > 0 && r.size > r.opts.MaxBytes {
		return rutter.Errorf(rutter.CodeInvalid, "%s: the manifests are larger than %d bytes together: narrow them with directory.include or split the application", r.dir, r.opts.MaxBytes)
	}
	if path.Ext(rel) == ".json" {
		return r.json(full, data)
	}
	return r.yaml(full, data)
}

// json reads a file that must hold exactly one object.
func (r *renderer) json(file string, data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	v, err := manifest.DecodeJSON(data, file)
	if err != nil {
		return err
	}
	if isImageManifest(v) {
		return nil
	}
	return r.add(v, rutter.Origin{File: file, Line: 1})
}

// isImageManifest recognises the description of an OCI artifact that lies
// beside the manifests it was pulled with.
func isImageManifest(v any) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	media, _ := m["mediaType"].(string)
	return m["kind"] == nil && strings.HasPrefix(media, "application/vnd.oci.image.manifest")
}

// yaml reads a file of any number of documents. A file that does not even look
// like manifests, such as a values file, is passed over.
func (r *renderer) yaml(file string, data []byte) error {
	none := true
	for _, doc := range manifest.Split(data) {
		v, err := manifest.Decode(doc, file)
		if err == nil && v != nil && !manifest.IsObject(v) {
			_, err = manifest.Objects(v, rutter.Origin{File: file, Line: doc.Line})
		}
		if err != nil {
			if none && !looksLikeManifests(data) {
				return nil
			}
			return err
		}
		if v == nil {
			continue
		}
		none = false
		if err := r.add(v, rutter.Origin{File: file, Line: doc.Line}); err != nil {
			return err
		}
	}
	return nil
}

func looksLikeManifests(data []byte) bool {
	return bytes.Contains(data, []byte("apiVersion:")) && bytes.Contains(data, []byte("kind:")) && bytes.Contains(data, []byte("metadata:"))
}

func (r *renderer) add(v any, origin rutter.Origin) error {
	objs, err := manifest.Objects(v, origin)
	if err != nil {
		return err
	}
	r.objects = append(r.objects, objs...)
	return nil
}
