package lua

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"github.com/rutterhq/rutter"
)

const (
	// maxInstructions is about what a second allows, the reference's limit.
	maxInstructions = 5_000_000
	// maxBytes bounds the texts that one run makes, all together.
	maxBytes = 16 << 20
	// maxCalls and maxStack bound the depth of calls and what lies on them.
	maxCalls = 200
	maxStack = 64 << 10
	// maxSource bounds a script, and with it how deep its parts may lie in each other.
	maxSource = 128 << 10
)

// Script is a script that can be run any number of times, by many at one time.
type Script struct {
	name  string
	proto *glua.FunctionProto
	open  bool
	// broken is why it cannot be run.
	broken error
}

// Compile reads a script; name is said in errors. openLibs gives it the libraries
// string and math too, as resource.customizations.useOpenLibs does; those that
// reach the machine are never there.
func Compile(name, source string, openLibs bool) (*Script, error) {
	if len(source) > maxSource {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: is longer than %d bytes", name, maxSource)
	}
	chunk, err := parse.Parse(strings.NewReader(source), name)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: %s", name, oneLine(err))
	}
	meterStatements(chunk)
	proto, err := glua.Compile(chunk, name)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: %s", name, oneLine(err))
	}
	return &Script{name: name, proto: proto, open: openLibs}, nil
}

// Broken is a script that could not be compiled: it fails whenever it is run.
func Broken(name string, err error) *Script { return &Script{name: name, broken: err} }

// run runs the script with global values, and returns what it returns.
func (s *Script) run(globals map[string]any, now time.Time) (glua.LValue, error) {
	return s.runFrom(globals, now, nil)
}

// runFrom is run, and notes in from, where it is given, which tables were made from maps.
func (s *Script) runFrom(globals map[string]any, now time.Time, from map[*glua.LTable]bool) (out glua.LValue, err error) {
	if s.broken != nil {
		return glua.LNil, s.broken
	}
	state := glua.NewState(glua.Options{SkipOpenLibs: true, CallStackSize: maxCalls, RegistrySize: 1 << 10, RegistryMaxSize: maxStack, RegistryGrowStep: 1 << 10})
	defer state.Close()
	defer func() {
		if r := recover(); r != nil { // a fault of the interpreter is the script's alone
			out, err = glua.LNil, rutter.Errorf(rutter.CodeInvalid, "%s: %v", s.name, r)
		}
	}()
	m := &meter{left: maxBytes, fuse: &fuse{left: maxInstructions}}
	if err := s.libraries(state, m, now); err != nil {
		return glua.LNil, err
	}
	for name, v := range globals {
		state.SetGlobal(name, toLua(state, v, from))
	}
	state.SetContext(m.fuse)
	state.Push(state.NewFunctionFromProto(s.proto))
	if err := state.PCall(0, 1, nil); err != nil {
		return glua.LNil, s.explain(err)
	}
	out = state.Get(-1)
	state.Pop(1)
	return out, nil
}

// explain words an error of a run.
func (s *Script) explain(err error) error {
	text := oneLine(err)
	if api, ok := errors.AsType[*glua.ApiError](err); ok {
		text = strings.TrimSpace(strings.ReplaceAll(api.Object.String(), "\n", " "))
	}
	if strings.Contains(text, errSpent.Error()) {
		return rutter.Errorf(rutter.CodeInvalid, "%s: runs longer than %d instructions", s.name, maxInstructions)
	}
	return rutter.Errorf(rutter.CodeInvalid, "%s: %s", s.name, strings.TrimPrefix(text, s.name+":"))
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// fuse ends a run after so many instructions. The interpreter asks it before
// each of them whether the run is over.
type fuse struct{ left int }

var (
	errSpent = errors.New("instructions are spent")
	// blown is a channel that is always ready, and whole one that never is.
	blown = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
	whole = make(chan struct{})
)

// Done implements the interpreter's context.
func (f *fuse) Done() <-chan struct{} {
	if f.left--; f.left < 0 {
		return blown
	}
	return whole
}

// Err implements the interpreter's context.
func (f *fuse) Err() error {
	if f.left < 0 {
		return errSpent
	}
	return nil
}

// Deadline implements the interpreter's context.
func (*fuse) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements the interpreter's context.
func (*fuse) Value(any) any { return nil }

// meter counts the bytes of texts, and takes from the fuse what a function of the
// library does for one instruction.
type meter struct {
	left int
	fuse *fuse
}

// charge takes the price of a function in instructions, and ends the run at once
// when they are spent.
func (m *meter) charge(l *glua.LState, instructions int) {
	if m.fuse.left -= instructions; instructions > maxInstructions || m.fuse.left < 0 {
		m.fuse.left = min(m.fuse.left, -1)
		l.RaiseError("%s", errSpent)
	}
}

// take raises an error in the script when it makes too much.
func (m *meter) take(l *glua.LState, n int) {
	if m.left -= n; n > maxBytes || m.left < 0 {
		l.RaiseError("makes more than %d bytes of text", maxBytes)
	}
}

// toLua turns JSON values into Lua's.
func toLua(l *glua.LState, v any, from map[*glua.LTable]bool) glua.LValue {
	switch x := v.(type) {
	case nil:
		return glua.LNil
	case bool:
		return glua.LBool(x)
	case string:
		return glua.LString(x)
	case int64:
		return glua.LNumber(x)
	case int:
		return glua.LNumber(x)
	case float64:
		return glua.LNumber(x)
	case []any:
		t := l.CreateTable(len(x), 0)
		for _, item := range x {
			t.Append(toLua(l, item, from))
		}
		return t
	case map[string]any:
		t := l.CreateTable(0, len(x))
		if from != nil {
			from[t] = true
		}
		for _, k := range slices.Sorted(maps.Keys(x)) { // pairs goes by the order of setting
			t.RawSetString(k, toLua(l, x[k], from))
		}
		return t
	default:
		return glua.LString(fmt.Sprint(x))
	}
}
