package unpack

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rutterhq/rutter"
)

// cleanName is the path of an entry of an archive: relative, below the root and
// without anything that another program could read differently. The root
// itself is ".".
func cleanName(raw string, l Limits) (string, error) {
	switch {
	case raw == "":
		return "", rutter.Errorf(rutter.CodeInvalid, "the archive has an entry without a name")
	case len(raw) > l.PathBytes:
		return "", rutter.Errorf(rutter.CodeInvalid, "the archive has an entry whose name has %d bytes, more than %d", len(raw), l.PathBytes)
	case !utf8.ValidString(raw):
		return "", rutter.Errorf(rutter.CodeInvalid, "the archive's entry %q has a name that is not UTF-8", raw)
	case strings.ContainsFunc(raw, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }):
		return "", rutter.Errorf(rutter.CodeInvalid, "the archive's entry %q has a backslash or a control character in its name", raw)
	case path.IsAbs(raw):
		return "", rutter.Errorf(rutter.CodeInvalid, "the archive's entry %q has an absolute name", raw)
	}
	for part := range strings.SplitSeq(raw, "/") {
		if part == ".." {
			return "", rutter.Errorf(rutter.CodeInvalid, "the archive's entry %q has .. in its name", raw)
		}
	}
	name := path.Clean(raw)
	if depth := strings.Count(name, "/") + 1; depth > l.Depth {
		return "", rutter.Errorf(rutter.CodeInvalid, "the archive's entry %q lies %d folders deep, more than %d", raw, depth, l.Depth)
	}
	return name, nil
}

// checkTarget refuses a symbolic link at name that is absolute or leads out of
// the tree. What leads out by way of other links leads to nothing when it is read.
func checkTarget(name, target string, l Limits) error {
	switch {
	case target == "" || len(target) > l.PathBytes:
		return rutter.Errorf(rutter.CodeInvalid, "the archive's symbolic link %q has a target of %d bytes", name, len(target))
	case !utf8.ValidString(target), strings.ContainsFunc(target, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }):
		return rutter.Errorf(rutter.CodeInvalid, "the archive's symbolic link %q has a target with a backslash or a control character", name)
	}
	to := path.Join(path.Dir(name), target)
	if path.IsAbs(target) || to == ".." || strings.HasPrefix(to, "../") {
		return rutter.Errorf(rutter.CodeInvalid, "the archive's symbolic link %q leads out of it, to %q", name, target)
	}
	return nil
}
