//go:build linux || darwin

package isolate

import (
	"syscall"

	"github.com/rutterhq/rutter"
)

// confine takes from this process what an evaluation has no use for: memory
// beyond the limit and, from here on, every new file and socket.
func confine(memory int64) error {
	limits := []struct {
		name  string
		which int
		value uint64
	}{
		// The runtime reserves in steps of 64 MiB, and needs some to report with.
		{"memory", syscall.RLIMIT_DATA, uint64(memory) + uint64(memory)/2 + 128<<20}, //nolint:gosec // a limit is positive
		{"file size", syscall.RLIMIT_FSIZE, 0},
		{"core", syscall.RLIMIT_CORE, 0},
		{"open files", syscall.RLIMIT_NOFILE, 0},
	}
	for _, l := range limits {
		if err := syscall.Setrlimit(l.which, &syscall.Rlimit{Cur: l.value, Max: l.value}); err != nil {
			return rutter.Errorf(rutter.CodeInternal, "limit the %s of an evaluation: %w", l.name, err)
		}
	}
	return nil
}
