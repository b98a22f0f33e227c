// Package sandbox runs a foreign program so that it can harm nobody: in a
// folder of its own, without a network, without privileges, for a limited time
// and with limited memory, and with nothing left of it afterwards.
//
// Ring: beside the adapters. It knows the vocabulary and the operating system,
// and nothing of what is run in it; adapters, render and cmd may import it.
//
// Three processes take part in a run. The first is ours: it starts the second,
// our own binary again, in namespaces of its own (user, process, mount, network,
// IPC). That one, the warden, builds a root that holds the system's programs
// read-only and the workspace, and starts the third, the cell. The cell gives
// up what is left of its rights (limits, capabilities, Landlock, a filter of
// system calls) and becomes the program. The warden waits for it, watches how
// much memory and disk everything in there uses, and takes all of it along when
// it ends. When the first process dies, however that may be, so does the warden.
package sandbox

import (
	"log/slog"
	"time"
)

// Require says how strong the protection must be.
type Require int

const (
	// Everything wants namespaces, Landlock and the filter of system calls; a kernel
	// that does not allow them all gets an error. It is the default.
	Everything Require = iota
	// EitherWall is content with one of the two walls: namespaces with a root of
	// their own, or Landlock together with the filter of system calls. There
	// never is less. Without namespaces a program sees the names of the machine's files
	// and processes, and its processes are found by their parents.
	EitherWall
)

// Options adjusts a Sandbox.
type Options struct {
	Require Require
	// TempDir is where workspaces are; default os.TempDir. When we are root
	// everybody must be able to pass through it (mode o+x), because programs run
	// as a user of their own.
	TempDir string
	// Tools are folders with programs that may be read and run, beside those of
	// the system; they come first in PATH. They must be absolute.
	Tools []string
	// Files are further files and folders that may be read, such as a bundle of
	// certificates. They must be absolute.
	Files  []string
	Logger *slog.Logger
}

// Limits bound one run. Zero values mean the defaults.
type Limits struct {
	// Time is by the clock on the wall; default 90 s. Then everything is asked to
	// end, and killed after Grace; default 5 s.
	Time  time.Duration
	Grace time.Duration
	// Memory is what all processes may use together; default 1 GiB.
	Memory int64
	// Disk is what may be written, and the size of one file; default 1 GiB.
	Disk int64
	// Output is what may come out of standard output; default 64 MiB.
	Output int64
	// Processes counts threads, too; default 256.
	Processes int
	// OpenFiles is how many each process may have open; default 1024.
	OpenFiles int
}

func (l Limits) filled() Limits {
	or(&l.Time, 90*time.Second)
	or(&l.Grace, 5*time.Second)
	or(&l.Memory, 1<<30)
	or(&l.Disk, 1<<30)
	or(&l.Output, 64<<20)
	or(&l.Processes, 256)
	or(&l.OpenFiles, 1024)
	return l
}

func or[T int | int64 | time.Duration](v *T, fallback T) {
	if *v <= 0 {
		*v = fallback
	}
}

// Command is one program to run.
type Command struct {
	// Args are the program, looked for in PATH unless it holds a slash, and its arguments.
	Args []string
	// Dir is where it starts, relative to the workspace's tree.
	Dir string
	// Env is all of the environment that it gets beside PATH, HOME and TMPDIR.
	Env []string
	// Network lets it use the machine's network.
	Network bool
	// Secrets are texts that must not show in what is returned of its messages.
	Secrets []string

	Limits
}

// Result is what a program that ended by itself left behind.
type Result struct {
	Stdout []byte
	// Stderr is the end of what it said, without secrets.
	Stderr string
	// ExitCode is its status; 128 and the number of the signal that ended it.
	ExitCode int
	// Signal is the name of that signal, empty when there was none.
	Signal string
}
