package cue

import (
	"fmt"
	"path"
	"strings"

	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"

	"github.com/rutterhq/rutter"
)

// maxMessage bounds what cue says: of a value that is not concrete it writes
// all that it could be.
const maxMessage = 500

// explain makes one error of what cue reports: the first, with its place and
// path, and how many more there are.
func (p places) explain(err error, dir string) error {
	all := errors.Errors(errors.Sanitize(errors.Promote(err, "")))
	if len(all) == 0 {
		return rutter.Errorf(rutter.CodeInvalid, "%s: %w", dir, err)
	}
	first := all[0]
	out := &rutter.Error{Code: rutter.CodeInvalid, Message: clip(strings.Join(strings.Fields(first.Error()), " "))}
	out.File, out.Line = p.blame(first)
	if where := strings.Join(first.Path(), "."); where != "" && !strings.Contains(out.Message, where) {
		out.Message = where + ": " + out.Message
	}
	if strings.Contains(out.Message, "incomplete value") {
		out.Message += ": give it a value or a default; where it has a tag, set the plugin parameter of that name"
	}
	if n := len(all) - 1; n > 0 {
		out.Message += fmt.Sprintf(" (and %d more)", n)
	}
	return out
}

// blame is the place of an error: one that cue knows, else that of the field,
// or of the nearest one above it that a file names.
func (p places) blame(err errors.Error) (string, int) {
	for _, pos := range errors.Positions(err) {
		if file, line := place(pos); file != "" {
			return file, line
		}
	}
	for names := err.Path(); len(names) > 0; names = names[:len(names)-1] {
		if pos, ok := p["\x00"+strings.Join(names, "\x00")]; ok {
			return place(pos)
		}
	}
	return "", 0
}

func clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + "…"
}

// place is a position's file and line, when it is in the repository.
func place(pos token.Pos) (string, int) {
	if !pos.IsValid() || pos.Filename() == "" {
		return "", 0
	}
	return inRepo(pos.Filename()), pos.Line()
}

// inRepo is a name of cue's loader as the repository has it.
func inRepo(name string) string { return path.Clean(strings.TrimPrefix(name, "/")) }
