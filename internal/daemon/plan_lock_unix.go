//go:build unix

package daemon

import (
	"os"
	"syscall"
)

// lockFile takes a lock that ends with the process; false when another has it.
func lockFile(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
