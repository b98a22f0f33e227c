// Package isolate evaluates programs that somebody else wrote, Jsonnet and CUE,
// where they can do no harm: in a child process that may use only so much
// memory, that is killed when its time is up, and that can open nothing. It
// sees files by asking the parent, one by one, so that whatever the parent
// records and limits stays in force.
//
// Neither evaluator can be stopped from outside, and none can bound what it
// allocates; a process can. The child is the program itself, started once more
// (Serve), and is used again as long as it behaves.
//
// Ring: adapter (render).
package isolate

import (
	"io/fs"
	"time"

	"github.com/rutterhq/rutter"
)

// Command is the one argument with which a program should call Serve at once,
// before it does anything else.
const Command = "evaluate-isolated"

// Files is what a task sees of the repository. *record.FS is one.
type Files interface {
	ReadFile(name string) ([]byte, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
}

// Task turns a request into an answer. It depends on nothing else than the
// request and the files, and it keeps nothing.
type Task func(files Files, request []byte) (answer []byte, err error)

// Pool options have defaults for the zero value.
const (
	defaultMemory = 512 << 20
	defaultOutput = 64 << 20
	defaultIdle   = 2
	// A child takes about 100 ms to start and some 40 MiB of its own.
	defaultIdleTime = time.Minute
	// maxUses is how many tasks one child does: what a library leaves behind in
	// its caches goes away with it.
	maxUses = 200
	// maxQuestion bounds a path that a child asks for.
	maxQuestion = 64 << 10
	// maxFailure bounds the text of a task's error.
	maxFailure = 4 << 10
)

// exitMemory is the exit code of a child that has used all of its memory.
const exitMemory = 86

// muchMemory is what a child says while it uses more than half of its memory.
// Where memory runs out within Go's runtime, it dies of anything; with this
// said before, memory was the reason.
const muchMemory = "isolate: more than half of the memory is in use"

func tooMuchMemory(task string, limit int64) error {
	return rutter.Errorf(rutter.CodeInvalid, "%s needs more than %d MiB of memory: make what it evaluates smaller", task, limit>>20)
}
