package decrypt

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/rutterhq/rutter"
)

// place is what an error is about: a file, or an object after a build.
type place struct {
	file   string
	object string
}

// errorf returns an error about the place.
func (p place) errorf(code rutter.Code, format string, args ...any) error {
	return p.errorAt(code, 0, format, args...)
}

func (p place) errorAt(code rutter.Code, line int, format string, args ...any) error {
	msg := fmt.Sprintf(format, args...)
	if p.object != "" {
		msg = p.object + " " + msg
	}
	return &rutter.Error{Code: code, File: p.file, Line: line, Message: msg}
}

// lineNumber finds the line in a parser's error, whose other text may quote the file.
var lineNumber = regexp.MustCompile(`\bline (\d{1,9})\b`)

// lineOf returns the line that a parser complains about, 0 when it names none.
func lineOf(err error) int {
	if m := lineNumber.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1]) // up to nine digits
		return n
	}
	return 0
}
