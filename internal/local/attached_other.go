//go:build !linux

package local

import "syscall"

// attached makes a child in a group of its own, so that Ctrl-C reaches the
// parent only. That the parent has ended it learns from its standard input.
func attached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
