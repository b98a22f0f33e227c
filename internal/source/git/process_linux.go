package git

import "syscall"

// groupAttributes start a process group that the kernel ends with us, so that
// a kill -9 leaves no git behind that still writes to a mirror.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
