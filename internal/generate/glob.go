package generate

import (
	"errors"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// filePattern selects files. By default it is a git pathspec: * and ? also
// match slashes, and the name of a directory selects all that is in it.
type filePattern struct {
	pattern string
	// segments makes * stay within a segment and ** cross them.
	segments bool
	// base is the directory below which all matches are, "." for the root.
	base string
}

// Why git would refuse a pattern too, or give it a meaning that is not acted on.
var (
	errPatternEmpty  = errors.New("is empty")
	errPatternRooted = errors.New("begins with a slash; patterns are relative to the root of the repository")
	errPathspecMagic = errors.New("pathspec magic (a leading ':') is not acted on; use exclude: true or a plain pattern")
)

// newFilePattern compiles a pattern; segments chooses the newer globbing.
func newFilePattern(pattern string, segments bool) (filePattern, error) {
	if segments {
		if !doublestar.ValidatePattern(pattern) {
			return filePattern{}, doublestar.ErrBadPattern
		}
		base, _ := doublestar.SplitPattern(pattern)
		return filePattern{pattern: pattern, segments: true, base: path.Clean(base)}, nil
	}
	switch {
	case pattern == "":
		return filePattern{}, errPatternEmpty
	case pattern[0] == '/':
		return filePattern{}, errPatternRooted
	case pattern[0] == ':':
		return filePattern{}, errPathspecMagic
	}
	clean := path.Clean(pattern)
	if strings.HasSuffix(pattern, "/") && clean != "." {
		clean += "/"
	}
	return filePattern{pattern: clean, base: pathspecBase(clean)}, nil
}

// pathspecBase is the longest directory that the pattern names literally.
func pathspecBase(pattern string) string {
	literal := pattern
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		literal = pattern[:i]
	}
	i := strings.LastIndexByte(literal, '/')
	if i < 0 {
		return "."
	}
	return literal[:i]
}

// AnnotationFileGlobbing on a set says how * is meant in files of its git
// generators: "segments" keeps it within a path segment (** crosses them),
// "pathspec" lets it cross, as git does. It wins over Options.NewFileGlobbing.
const AnnotationFileGlobbing = "rutter.dev/file-globbing"

// segmentsOf reads what the set declares, or else the operator.
func segmentsOf(set *v1alpha1.ApplicationSet, opts Options) (bool, error) {
	declared, ok := set.Annotations[AnnotationFileGlobbing]
	switch {
	case !ok:
		return opts.NewFileGlobbing, nil
	case declared == "segments", declared == "pathspec":
		return declared == "segments", nil
	default:
		return false, rutter.Errorf(rutter.CodeInvalid, "metadata.annotations[%s]: %q is not segments or pathspec", AnnotationFileGlobbing, declared)
	}
}

// crossing are the files that match only because * crosses segments.
func (p filePattern) crossing(files []string) []string {
	if p.segments || !strings.ContainsAny(p.pattern, "*?") || !doublestar.ValidatePattern(p.pattern) {
		return nil
	}
	var found []string
	for _, file := range files {
		if ok, err := doublestar.Match(p.pattern, file); !ok && err == nil && p.matches(file) {
			found = append(found, file)
		}
	}
	return found
}

// leads reports whether files below dir may match.
func (p filePattern) leads(dir string) bool {
	return p.base == "." || dir == p.base ||
		strings.HasPrefix(p.base, dir+"/") || strings.HasPrefix(dir, p.base+"/")
}

// matches reports whether the pattern selects the file.
func (p filePattern) matches(file string) bool {
	if p.segments {
		ok, err := doublestar.Match(p.pattern, file)
		return ok && err == nil
	}
	dir := strings.TrimSuffix(p.pattern, "/")
	return dir == "." || file == p.pattern || strings.HasPrefix(file, dir+"/") || wildmatch(p.pattern, file)
}

// wildmatch matches as git does for pathspecs: * is any text and ? any
// character, slashes included; [a-z], [!a-z] and [[:alpha:]] are classes and
// \ quotes. It takes time in the product of the lengths at worst.
func wildmatch(pattern, name string) bool {
	// star is where to go on in the pattern after the last *, and next the
	// place in the name to try it at.
	star, next := -1, 0
	p, n := 0, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			star, next = p, n
			continue
		}
		r, size := utf8.DecodeRuneInString(name[n:])
		if width, ok := matchOne(pattern[p:], r); ok {
			p += width
			n += size
			continue
		}
		if star < 0 {
			return false
		}
		_, size = utf8.DecodeRuneInString(name[next:])
		next += size
		p, n = star, next
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchOne matches one character and returns how much of the pattern it took.
func matchOne(pattern string, r rune) (width int, ok bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		return matchClass(pattern, r)
	case '\\':
		if len(pattern) > 1 {
			want, size := utf8.DecodeRuneInString(pattern[1:])
			return 1 + size, want == r
		}
		return 1, false
	}
	want, size := utf8.DecodeRuneInString(pattern)
	return size, want == r
}

// matchClass matches a bracket expression; one that does not end matches nothing.
func matchClass(pattern string, r rune) (width int, ok bool) {
	i := 1
	negated := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negated {
		i++
	}
	found := false
	for first := true; i < len(pattern); first = false {
		if pattern[i] == ']' && !first {
			return i + 1, found != negated
		}
		if name, end, isName := className(pattern[i:]); isName {
			found = found || inClass(name, r)
			i += end
			continue
		}
		low, size := classRune(pattern[i:])
		i += size
		high := low
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			high, size = classRune(pattern[i+1:])
			i += 1 + size
		}
		found = found || low <= r && r <= high
	}
	return 0, false
}

// classRune reads one character of a class, quoted or not.
func classRune(pattern string) (r rune, size int) {
	if pattern[0] == '\\' && len(pattern) > 1 {
		r, size = utf8.DecodeRuneInString(pattern[1:])
		return r, size + 1
	}
	return utf8.DecodeRuneInString(pattern)
}

// className reads [:name:] within a class.
func className(pattern string) (name string, end int, ok bool) {
	if !strings.HasPrefix(pattern, "[:") {
		return "", 0, false
	}
	i := strings.Index(pattern, ":]")
	if i < 2 {
		return "", 0, false
	}
	return pattern[2:i], i + 2, true
}

func inClass(name string, r rune) bool {
	lower, upper, digit := r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9'
	switch name {
	case "lower":
		return lower
	case "upper":
		return upper
	case "digit":
		return digit
	case "alpha":
		return lower || upper
	case "alnum":
		return lower || upper || digit
	case "xdigit":
		return digit || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F'
	case "space":
		return strings.ContainsRune(" \t\n\v\f\r", r)
	case "blank":
		return r == ' ' || r == '\t'
	case "punct":
		return r > ' ' && r < 0x7f && !lower && !upper && !digit
	default:
		return false
	}
}
