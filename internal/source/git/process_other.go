//go:build !linux

package git

import "syscall"

// groupAttributes start a process group of its own.
func groupAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
