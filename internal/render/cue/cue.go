// Package cue renders a CUE package: what it exports and looks like a
// Kubernetes object is one.
//
// The package must export, as cue export means it: every regular field has a
// concrete value; what stays open belongs into definitions (#name) and hidden
// fields (_name). Of what is exported, each struct that has the fields
// apiVersion and kind is an object, wherever it lies in structs and lists; other
// values are passed over. Two that are equal in every field count once, because
// packages list their objects a second time for cue's own commands.
//
// Modules come from the repository: the package's own module, and what is
// vendored below cue.mod. Nothing is fetched, and nothing outside is read.
//
// Ring: adapter (render).
package cue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/isolate"
	"github.com/rutterhq/rutter/internal/render/manifest"
	"github.com/rutterhq/rutter/internal/render/record"
)

// TaskName is the name of Task among the tasks of an isolated process.
const TaskName = "CUE"

// tagsParameter is the parameter whose items are tags themselves.
const tagsParameter = "tags"

// Input is one package to render.
type Input struct {
	Repo *record.FS
	// Path is the folder of the package, relative to the root of the repository.
	Path string
	// Options hold the tags: each environment variable and each string parameter
	// is the value of the tag of its name, and the array parameter "tags" holds
	// tags as cue export -t takes them.
	Options rutter.PluginOptions
	// Env replaces variables in the values of Options.Env.
	Env *buildenv.Env
	// Pool evaluates in a child process; nil evaluates in this one.
	Pool *isolate.Pool
}

// request is what the evaluation depends on beside the files.
type request struct {
	Dir  string   `json:"dir"`
	Tags []string `json:"tags,omitempty"`
}

// found is one object of the package.
type found struct {
	Path string          `json:"path"`
	File string          `json:"file,omitempty"`
	Line int             `json:"line,omitempty"`
	JSON json.RawMessage `json:"json"`
}

// Detect reports whether a folder is to be rendered by CUE when nobody says
// so: it holds a package's files and no manifests of another kind.
func Detect(repo *record.FS, dir string) bool {
	entries, err := repo.ReadDir(dir)
	if err != nil {
		return false
	}
	any := false
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasPrefix(name, ".") {
			continue
		}
		switch path.Ext(name) {
		case ".cue":
			any = any || inPackage(name)
		case ".yaml", ".yml", ".json", ".jsonnet":
			return false
		}
		if name == "Kustomization" {
			return false
		}
	}
	return any
}

// inPackage reports whether cue's loader takes a file for a part of the package.
func inPackage(name string) bool {
	return path.Ext(name) == ".cue" && !strings.HasSuffix(name, "_tool.cue") && !strings.HasSuffix(name, "_test.cue") &&
		!strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "_")
}

// Render returns the objects that the package exports.
func Render(in Input) ([]rutter.Object, []string, error) {
	dir, err := record.Clean(in.Path)
	if err != nil {
		return nil, nil, err
	}
	tags, err := tags(in.Options, in.Env)
	if err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal(request{Dir: dir, Tags: tags})
	if err != nil {
		return nil, nil, rutter.Errorf(rutter.CodeInternal, "write down what %s depends on: %w", dir, err)
	}
	out, err := evaluate(in, text)
	if err != nil {
		return nil, nil, withheld(in.Repo, err)
	}
	var all []found
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, nil, rutter.Errorf(rutter.CodeInternal, "read what %s came to: %w", dir, err)
	}
	objs, err := objects(all)
	if err != nil {
		return nil, nil, err
	}
	var warnings []string
	if len(objs) == 0 {
		warnings = append(warnings, dir+": the CUE package exports nothing that has the fields apiVersion and kind")
	}
	return objs, warnings, nil
}

func evaluate(in Input, text []byte) ([]byte, error) {
	if in.Pool == nil {
		return Task(in.Repo, text)
	}
	return in.Pool.Evaluate(in.Repo.Context(), TaskName, in.Repo, text)
}

// withheld is an error without its text where a decrypted file was embedded:
// cue writes the values that are in conflict.
func withheld(repo *record.FS, err error) error {
	e, ok := errors.AsType[*rutter.Error](err)
	if !ok || e.File == "" || e.Code != rutter.CodeInvalid || !repo.IsSecret() {
		return err
	}
	return &rutter.Error{Code: e.Code, File: e.File, Line: e.Line,
		Message: "CUE fails here; what it says is withheld, because the render has read decrypted values: evaluate it where you may see them"}
}

// tags are what cue export -t would be given.
func tags(opts rutter.PluginOptions, env *buildenv.Env) ([]string, error) {
	values := map[string]string{}
	var names, bare []string
	set := func(where, name, value string) error {
		if name == "" || strings.ContainsAny(name, "= \t\n") {
			return rutter.Errorf(rutter.CodeInvalid, "spec.source.plugin.%s: %q cannot be the name of a tag", where, name)
		}
		if _, again := values[name]; !again {
			names = append(names, name)
		}
		values[name] = value
		return nil
	}
	for _, e := range opts.Env {
		if env != nil {
			e.Value = env.Expand(e.Value)
		}
		if err := set("env", e.Name, e.Value); err != nil {
			return nil, err
		}
	}
	for _, p := range opts.Parameters {
		switch {
		case p.String != nil:
			if err := set("parameters", p.Name, *p.String); err != nil {
				return nil, err
			}
		case p.Name == tagsParameter && p.Map == nil:
			bare = append(bare, p.Array...)
		default:
			return nil, rutter.Errorf(rutter.CodeInvalid, "spec.source.plugin.parameters: %q must be a string: it is the value of the tag @tag(%s); a list of tags is named %q", p.Name, p.Name, tagsParameter)
		}
	}
	out := make([]string, 0, len(names)+len(bare))
	for _, name := range names {
		out = append(out, name+"="+values[name])
	}
	return append(out, bare...), nil
}

// objects reads what was found, each of it once.
func objects(all []found) ([]rutter.Object, error) {
	var out []rutter.Object
	seen := map[rutter.Ref][][]byte{}
	for _, f := range all {
		v, err := manifest.DecodeJSON(f.JSON, f.File)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f.Path, err)
		}
		objs, err := manifest.Objects(v, rutter.Origin{File: f.File, Line: f.Line})
		if err != nil {
			if e, ok := errors.AsType[*rutter.Error](err); ok {
				e.Message = f.Path + ": " + e.Message
			}
			return nil, err
		}
		for _, o := range objs {
			text, err := o.MarshalJSON()
			if err != nil {
				return nil, fmt.Errorf("compare %s: %w", f.Path, err)
			}
			ref := o.Ref()
			if ref.Name != "" && slices.ContainsFunc(seen[ref], func(b []byte) bool { return bytes.Equal(b, text) }) {
				continue
			}
			seen[ref] = append(seen[ref], text)
			out = append(out, o)
		}
	}
	return out, nil
}
