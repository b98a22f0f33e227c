// Package directory renders a folder of plain manifests (reference 1.4): YAML,
// JSON and Jsonnet, several documents in a file, recursively where asked for,
// selected by include and exclude patterns.
//
// Ring: adapter (render).
package directory

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/isolate"
	"github.com/rutterhq/rutter/internal/render/jsonnet"
	"github.com/rutterhq/rutter/internal/render/record"
)

// Input is one folder to render.
type Input struct {
	Repo *record.FS
	// Path is relative to the root of the repository.
	Path    string
	Options rutter.DirectoryOptions
	// Env replaces variables in the values that Jsonnet is given.
	Env *buildenv.Env
	// MaxBytes bounds the combined size of the files, Jsonnet aside; zero means no limit.
	MaxBytes int64
	// JsonnetDisabled passes .jsonnet files over.
	JsonnetDisabled bool
	// Pool evaluates Jsonnet in child processes; nil evaluates in this one.
	Pool *isolate.Pool
}

// skipMark in a file's text, anywhere, takes the file out of the render.
var skipMark = []byte("+argocd:skip-file-rendering")

// Render returns the objects in the files of the folder, in the lexical order
// of their paths.
func Render(in Input) ([]rutter.Object, []string, error) {
	r := &renderer{in: in}
	var err error
	if r.include, err = pattern("include", in.Options.Include); err != nil {
		return nil, nil, err
	}
	if r.exclude, err = pattern("exclude", in.Options.Exclude); err != nil {
		return nil, nil, err
	}
	if err := r.folder("."); err != nil {
		return nil, nil, err
	}
	if err := r.evaluate(); err != nil {
		return nil, nil, err
	}
	return slices.Concat(r.objects...), r.warnings, nil
}

type renderer struct {
	in               Input
	include, exclude *regexp.Regexp
	size             int64

	objects  [][]rutter.Object // by file
	programs []program         // evaluated at the end, together
	warnings []string
}

// program is a Jsonnet file whose objects have their place among the others'.
type program struct {
	file string
	at   int // in objects
}

// folder renders one folder; rel is relative to the source's path.
func (r *renderer) folder(rel string) error {
	full := path.Join(r.in.Path, rel)
	entries, err := r.in.Repo.ReadDir(full)
	if err != nil {
		return fmt.Errorf("list %s: %w", full, err)
	}
	for _, e := range entries {
		if ctx := r.in.Repo.Context(); ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name := path.Join(rel, e.Name())
		switch {
		case e.IsDir():
			if r.in.Options.Recurse {
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
	case ".yaml", ".yml", ".json":
	case ".jsonnet":
		if r.in.JsonnetDisabled {
			return false
		}
	default:
		if !r.in.Options.DisableExtensionFilter {
			return false
		}
	}
	if r.exclude != nil && r.exclude.MatchString(rel) {
		return false
	}
	return r.include == nil || r.include.MatchString(rel)
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
	full := path.Join(r.in.Path, rel)
	info, err := r.in.Repo.Stat(full)
	if err != nil {
		r.warnings = append(r.warnings, full+": the symbolic link leads to nothing inside the repository and was skipped")
		return false
	}
	return info.Mode().IsRegular()
}

func (r *renderer) file(rel string) error {
	full := path.Join(r.in.Path, rel)
	data, err := r.in.Repo.ReadFile(full)
	if err != nil {
		return fmt.Errorf("read %s: %w", full, err)
	}
	if bytes.Contains(data, skipMark) {
		return nil
	}
	ext := path.Ext(rel)
	if ext == ".jsonnet" {
		r.programs = append(r.programs, program{full, len(r.objects)})
		r.objects = append(r.objects, nil)
		return nil
	}
	if r.size += int64(len(data)); r.in.MaxBytes > 0 && r.size > r.in.MaxBytes {
		return rutter.Errorf(rutter.CodeInvalid, "%s: the manifests are larger than %d bytes together: narrow them with directory.include or split the application", r.in.Path, r.in.MaxBytes)
	}
	if ext == ".json" {
		return r.json(full, data)
	}
	return r.yaml(full, data)
}

// evaluate renders the Jsonnet files.
func (r *renderer) evaluate() error {
	if len(r.programs) == 0 {
		return nil
	}
	in := jsonnet.Input{Repo: r.in.Repo, Dir: r.in.Path, Env: r.in.Env, Pool: r.in.Pool}
	if o := r.in.Options.Jsonnet; o != nil {
		in.Options = *o
	}
	for _, p := range r.programs {
		in.Files = append(in.Files, p.file)
	}
	results, err := jsonnet.Render(in)
	if err != nil {
		return err
	}
	for i, res := range results {
		r.objects[r.programs[i].at] = res.Objects
		for _, w := range res.Warnings {
			r.warnings = append(r.warnings, res.File+": "+strings.TrimPrefix(w, "TRACE: "))
		}
	}
	return nil
}
