package rutter

import (
	"errors"
	"fmt"
)

// Code classifies an error once, so that each edge (conditions, CLI exit
// codes, HTTP) translates it by a table and not by its text.
type Code string

// The codes, from "the user can fix it" to "we could not look".
const (
	// CodeInvalid means the declaration itself is wrong: a spec, a manifest, a chart.
	CodeInvalid Code = "invalid"
	// CodeNotFound means something that was named does not exist: a path, a ref, a cluster.
	CodeNotFound Code = "not_found"
	// CodeForbidden means a policy or an API server refused it.
	CodeForbidden Code = "forbidden"
	// CodeConflict means the object has changed or belongs to somebody else.
	CodeConflict Code = "conflict"
	// CodeUnavailable means that the other side did not answer; the state is unknown, never absent.
	CodeUnavailable Code = "unavailable"
	// CodeUnsupported means that Rutter does not do this yet and says so.
	CodeUnsupported Code = "unsupported"
	// CodeInternal is everything else.
	CodeInternal Code = "internal"
)

// Error is an error with a code and, where known, the place in the source
// that caused it. Its text is one line, deterministic and free of secrets.
type Error struct {
	Code Code
	// Message says what failed, for which input, and what to do.
	Message string
	// File and Line name the place in the repository, when one is known.
	File string
	Line int
	// Err is the cause; its text is appended to the message.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	s := e.Message
	if e.File != "" {
		if e.Line > 0 {
			s = fmt.Sprintf("%s:%d: %s", e.File, e.Line, s)
		} else {
			s = e.File + ": " + s
		}
	}
	if e.Err != nil {
		if s == "" {
			return e.Err.Error()
		}
		return s + ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error of the given code. A %w verb keeps the cause
// reachable for errors.Is and errors.As.
func Errorf(code Code, format string, args ...any) error {
	wrapped := fmt.Errorf(format, args...) //nolint:err113 // this is the constructor of the project's coded errors
	return &Error{Code: code, Message: "", Err: wrapped}
}

// CodeOf returns the code of the outermost Error in err's chain, CodeInternal
// when there is none, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}
