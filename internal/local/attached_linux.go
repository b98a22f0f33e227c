package local

import "syscall"

// attached makes a child that ends with its parent, in a group of its own so
// that Ctrl-C reaches the parent only, which then stops the child in its order.
// SIGTERM and not SIGKILL: an orphan closes its data and removes what is
// ephemeral, and ends itself if that takes too long.
func attached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
