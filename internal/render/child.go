package render

import (
	"os"

	"github.com/rutterhq/rutter/internal/render/cue"
	"github.com/rutterhq/rutter/internal/render/isolate"
	"github.com/rutterhq/rutter/internal/render/jsonnet"
)

// MaybeChild must be called first in main, and in TestMain where tests render
// with a pool of Isolated. In a process that was started to evaluate somebody's
// program it does that and never returns; else it does nothing.
func MaybeChild() {
	if len(os.Args) == 2 && os.Args[1] == isolate.Command {
		isolate.Serve(map[string]isolate.Task{jsonnet.TaskName: jsonnet.Task, cue.TaskName: cue.Task})
	}
}

// Isolated returns a pool of children of this program, for Options.
func Isolated() (*isolate.Pool, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return isolate.New(isolate.Options{Command: []string{self, isolate.Command}}), nil
}
