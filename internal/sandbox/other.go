//go:build !linux

package sandbox

import (
	"context"

	"github.com/rutterhq/rutter"
)

var errSystem = &rutter.Error{Code: rutter.CodeUnsupported, Message: "programs run in a sandbox that only Linux has: run rutter on Linux, or in a container"}

// MaybeChild does nothing: there are no children on this system.
func MaybeChild() {}

// Sandbox is not available on this system.
type Sandbox struct{}

// New returns a Sandbox in which nothing runs.
func New(Options) (*Sandbox, error) { return &Sandbox{}, nil }

// Close does nothing.
func (s *Sandbox) Close() error { return nil }

// Tools returns nothing.
func (s *Sandbox) Tools() []string { return nil }

// Path returns nothing.
func (s *Sandbox) Path() []string { return nil }

// Check returns CodeUnsupported.
func (s *Sandbox) Check(context.Context) error { return errSystem }

// Workspace returns CodeUnsupported.
func (s *Sandbox) Workspace() (*Workspace, error) { return nil, errSystem }

// Workspace is never made on this system.
type Workspace struct{}

// Mkdir returns CodeUnsupported.
func (w *Workspace) Mkdir(string) error { return errSystem }

// WriteFile returns CodeUnsupported.
func (w *Workspace) WriteFile(string, []byte, bool) error { return errSystem }

// Symlink returns CodeUnsupported.
func (w *Workspace) Symlink(string, string) error { return errSystem }

// Close does nothing.
func (w *Workspace) Close() error { return nil }

// Run returns CodeUnsupported.
func (w *Workspace) Run(context.Context, Command) (Result, error) { return Result{}, errSystem }
