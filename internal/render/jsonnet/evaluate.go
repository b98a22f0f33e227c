package jsonnet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/ast"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/isolate"
)

const (
	// maxStack is the evaluator's usual limit on calls in calls.
	maxStack = 500
	// maxTraces bounds what std.trace may say in one file, maxMessage an error.
	maxTraces  = 4096
	maxMessage = 500
)

// Task evaluates the files of one request; an isolated process runs it under TaskName.
func Task(files isolate.Files, text []byte) ([]byte, error) {
	var req request
	if err := json.Unmarshal(text, &req); err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "read a request: %w", err)
	}
	imports := newImporter(files, req.Libs)
	vm := machine(req, imports)
	var answers []answer
	for _, file := range req.Files {
		a, err := one(vm, imports, file)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	out, err := json.Marshal(answers)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "write down the output: %w", err)
	}
	return out, nil
}

func one(vm *jsonnet.VM, imports *importer, file string) (answer, error) {
	source, err := imports.contents(file)
	if err != nil {
		return answer{}, cmp.Or(imports.err, err) //nolint:wrapcheck // it chooses between two that say it themselves
	}
	var traces limited
	vm.SetTraceOut(&traces)
	output, err := run(vm, file, source.String())
	if err != nil {
		return answer{}, imports.explain(err, file)
	}
	return answer{Output: output, Traces: lines(traces.Bytes())}, nil
}

func run(vm *jsonnet.VM, file, source string) (string, error) {
	node, err := jsonnet.SnippetToAST(file, source)
	if err != nil {
		return "", err //nolint:wrapcheck // explain makes a sentence of it
	}
	return vm.Evaluate(node) //nolint:wrapcheck // likewise
}

func machine(req request, imports *importer) *jsonnet.VM {
	vm := jsonnet.MakeVM()
	vm.MaxStack = maxStack
	vm.Importer(imports)
	for _, v := range req.ExtVars {
		if v.Code {
			vm.ExtCode(v.Name, v.Value)
		} else {
			vm.ExtVar(v.Name, v.Value)
		}
	}
	for _, v := range req.TLAs {
		if v.Code {
			vm.TLACode(v.Name, v.Value)
		} else {
			vm.TLAVar(v.Name, v.Value)
		}
	}
	return vm
}

// explain gives an evaluator's error the place in the repository that it is about.
func (i *importer) explain(err error, file string) error {
	if i.err != nil {
		return i.err // the repository could not be read; the program is not to blame
	}
	out := &rutter.Error{Code: rutter.CodeInvalid, File: file}
	var located interface{ Loc() ast.LocationRange }
	var runtime jsonnet.RuntimeError
	switch {
	case errors.As(err, &runtime):
		out.Message = "Jsonnet: " + oneLine(runtime.Msg)
		for _, frame := range slices.Backward(runtime.StackTrace) { // the innermost place comes last
			if i.place(out, frame.Loc) {
				break
			}
		}
	case errors.As(err, &located):
		loc := located.Loc()
		out.Message = "is not valid Jsonnet: " + oneLine(strings.TrimPrefix(err.Error(), loc.String()))
		if !i.place(out, loc) && loc.IsSet() {
			out.Message += ", in " + loc.String() // such as <extvar:name>
		}
	default:
		text, _, _ := strings.Cut(err.Error(), "\n") // after a crash the stack follows
		out.Message = "Jsonnet: " + oneLine(text)
	}
	return out
}

// place sets file and line, when the location is in a file of the repository:
// the standard library and variables have places too.
func (i *importer) place(e *rutter.Error, loc ast.LocationRange) bool {
	name := loc.FileName
	if _, known := i.found[name]; !known || loc.Begin.Line == 0 {
		return false
	}
	e.File, e.Line = name, loc.Begin.Line
	return true
}

// oneLine is a message of the evaluator, or of the program, in one line that is not too long.
func oneLine(s string) string {
	if s = strings.Join(strings.Fields(s), " "); len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return s
}

func lines(text []byte) []string {
	var out []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// limited keeps the start of what is written.
type limited struct{ bytes.Buffer }

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if room := maxTraces - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
