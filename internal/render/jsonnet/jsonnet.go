// Package jsonnet renders Jsonnet files (reference 1.4): with external
// variables and top-level arguments, importing from the repository only.
//
// The evaluator cannot be interrupted, and nothing bounds what it allocates:
// std.range(1, 1e10) is one call. So an evaluation runs in a child process
// where a pool is given; without one it runs here, and a program without end
// keeps its goroutine for good.
//
// Ring: adapter (render).
package jsonnet

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/isolate"
	"github.com/rutterhq/rutter/internal/render/manifest"
	"github.com/rutterhq/rutter/internal/render/record"
)

// TaskName is the name of Task among the tasks of an isolated process.
const TaskName = "Jsonnet"

// Input are the files to evaluate, each by itself. They share what they import,
// so that a library is read and parsed once.
type Input struct {
	Repo *record.FS
	// Files are relative to the root of the repository.
	Files []string
	// Dir is the source's path, the last place in which imports are looked for.
	Dir     string
	Options rutter.JsonnetOptions
	// Env replaces variables in the values of extVars and tlas.
	Env *buildenv.Env
	// Pool evaluates in a child process; nil evaluates in this one.
	Pool *isolate.Pool
}

// Result is what one file came to.
type Result struct {
	File    string
	Objects []rutter.Object
	// Warnings are what std.trace said.
	Warnings []string
}

// request is what the evaluation depends on beside the files.
type request struct {
	Files   []string            `json:"files"`
	Libs    []string            `json:"libs"`
	ExtVars []rutter.JsonnetVar `json:"extVars"`
	TLAs    []rutter.JsonnetVar `json:"tlas"`
}

// answer is what one file came to.
type answer struct {
	Output string   `json:"output"`
	Traces []string `json:"traces,omitempty"`
}

// Render evaluates the files and returns the objects of each: the output is
// one, or an array of them, in which null stands for none.
func Render(in Input) ([]Result, error) {
	req, err := prepare(in)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(req)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "write down what %v depend on: %w", in.Files, err)
	}
	out, err := evaluate(in, text)
	if err != nil {
		if in.Repo.IsSecret() {
			err = withheld(err)
		}
		if e, ok := errors.AsType[*rutter.Error](err); ok && e.File == "" && len(in.Files) == 1 {
			err = &rutter.Error{Code: e.Code, File: in.Files[0], Message: "is not rendered", Err: err}
		}
		return nil, err
	}
	var answers []answer
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(in.Files) {
		return nil, rutter.Errorf(rutter.CodeInternal, "read what %d files came to: %d answers: %w", len(in.Files), len(answers), err)
	}
	results := make([]Result, len(answers))
	for i, a := range answers {
		objs, err := objects(a.Output, in.Files[i])
		if err != nil {
			return nil, err
		}
		results[i] = Result{File: in.Files[i], Objects: objs}
		if !in.Repo.IsSecret() {
			results[i].Warnings = a.Traces
		}
	}
	return results, nil
}

// withheld is an error without its text, which a program that has read a
// decrypted file may have put anything into.
func withheld(err error) error {
	e, ok := errors.AsType[*rutter.Error](err)
	if !ok || e.File == "" || e.Code != rutter.CodeInvalid {
		return err // it is not the program's
	}
	return &rutter.Error{Code: e.Code, File: e.File, Line: e.Line,
		Message: "Jsonnet fails here; what it says is withheld, because the render has read decrypted values: evaluate it where you may see them"}
}

func evaluate(in Input, text []byte) ([]byte, error) {
	if in.Pool == nil {
		return Task(in.Repo, text)
	}
	return in.Pool.Evaluate(in.Repo.Context(), TaskName, in.Repo, text)
}

// prepare replaces variables and checks the folders that imports are looked for in.
func prepare(in Input) (request, error) {
	req := request{Files: in.Files, Libs: []string{in.Dir}}
	for i, lib := range in.Options.Libs {
		dir, err := record.Clean(lib)
		if err != nil {
			return req, rutter.Errorf(rutter.CodeInvalid, "directory.jsonnet.libs[%d]: %w", i, err)
		}
		req.Libs = append(req.Libs, dir)
	}
	var err error
	if req.ExtVars, err = variables("extVars", in.Options.ExtVars, in.Env); err != nil {
		return req, err
	}
	req.TLAs, err = variables("tlas", in.Options.TLAs, in.Env)
	return req, err
}

func variables(field string, in []rutter.JsonnetVar, env *buildenv.Env) ([]rutter.JsonnetVar, error) {
	out := make([]rutter.JsonnetVar, len(in))
	for i, v := range in {
		if v.Name == "" {
			return nil, rutter.Errorf(rutter.CodeInvalid, "directory.jsonnet.%s[%d] has no name", field, i)
		}
		if env != nil {
			v.Value = env.Expand(v.Value)
		}
		out[i] = v
	}
	return out, nil
}

// objects reads the output of an evaluation.
func objects(output, file string) ([]rutter.Object, error) {
	v, err := manifest.DecodeJSON([]byte(output), file)
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		if v == nil {
			return nil, &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "evaluates to null: an object or an array of objects is wanted"}
		}
		return manifest.Objects(v, rutter.Origin{File: file})
	}
	var out []rutter.Object
	for i, item := range list {
		where := fmt.Sprintf("item [%d] of the output", i)
		if _, nested := item.([]any); nested {
			return nil, &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: where + " is an array itself: flatten the output with std.flattenArrays"}
		}
		objs, err := manifest.Objects(item, rutter.Origin{File: file})
		if err != nil {
			if e, ok := errors.AsType[*rutter.Error](err); ok {
				e.Message = where + ": " + e.Message
			}
			return nil, err
		}
		out = append(out, objs...)
	}
	return out, nil
}
