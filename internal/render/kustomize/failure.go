package kustomize

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/manifest"
)

// redactions take off the library's errors what may be secret, such as the
// literals of a secretGenerator or the text of a patch, and what differs from run
// to run, such as addresses in memory.
var redactions = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile("(?s) with config: `.*?\n?`:"), ":"},
	{regexp.MustCompile(`(?s)literal sources \[.*?\]: invalid literal source .*?, expected key=value`), "a literal has not the form key=value"},
	{regexp.MustCompile(`(?s)invalid utf8 bytes : .*`), "invalid UTF-8"},
	{regexp.MustCompile(`(?s): nodes unequal: .*`), ""},
	{regexp.MustCompile(`(?s)\[patch: ".*"\]`), "an inline patch"},
	{regexp.MustCompile("(!!\\w+) `[^`]*`"), "$1"},
	{regexp.MustCompile(`(?s)(: node contents:|: value: \{).*`), ""},
	{regexp.MustCompile(`generator &\{[^}]*\}`), "a generator"},
	{regexp.MustCompile(`0x[0-9a-f]{6,}`), "..."},
}

// listed is where the library has an entry of resources in mind.
var listed = regexp.MustCompile(`(?s).*(?:accumulating|merging) resources from '([^']*)': (.*)`)

// malformed is what the library says of a file that is no YAML.
const malformed = "MalformedYAMLError: "

// failure makes an error of the library one of ours, which names the file where
// the text tells which it is.
func (f *snapshotFS) failure(err error) error {
	text := strings.TrimPrefix(err.Error(), "build: ")
	for _, r := range redactions {
		text = r.what.ReplaceAllString(text, r.with)
	}
	out := &rutter.Error{Code: rutter.CodeInvalid, Message: "kustomize build " + f.in.Path + ": " + f.readable(text)}
	m := listed.FindStringSubmatch(text)
	if m == nil {
		return out
	}
	entry, rest := m[1], m[2]
	// The library tries an entry as a file, then as a folder, and tells of both.
	asFile, asFolder, both := strings.Cut(rest, "': ")
	if strings.HasSuffix(asFile, "' must resolve to a file") && both {
		asFile = asFolder
	}
	i := f.asking(entry)
	if i < 0 {
		return out
	}
	l := f.layers[i]
	full := path.Join(l.dir, entry)
	if at, ok := f.place(full); ok && f.read[full] != nil {
		out.File, out.Message = f.show(full, at), f.readable(asFile)
		if strings.HasPrefix(asFile, malformed) {
			if err := syntax(out.File, f.read[full]); err != nil {
				return err
			}
		}
		return out
	}
	if at, ok := f.place(l.file); ok {
		out.File, out.Line = f.show(l.file, at), lineOf(f.read[l.file], entry)
		out.Message = "resources: " + entry + ": " + f.readable(asFile)
		if strings.HasSuffix(asFile, "file does not exist") {
			out.Message = "resources: there is no file or folder " + f.readable(full) + ": add it, or take " + entry + " off the list"
		}
	}
	return out
}

// unreadable says which object of the result cannot be written as JSON. The
// library takes files that no cluster takes, such as those with repeated keys, so
// the file is asked first.
func (f *snapshotFS) unreadable(id resid.ResId, find originIndex, err error) error {
	for _, full := range slices.Sorted(maps.Keys(f.resources)) {
		at, ok := f.place(full)
		if !ok || at.m.label != "" || f.virtual[full] != nil {
			continue
		}
		if err := syntax(at.display(), f.read[full]); err != nil {
			return err
		}
	}
	at, _ := find.origin(id, "")
	return &rutter.Error{Code: rutter.CodeInvalid, File: at.File, Line: at.Line, Message: fmt.Sprintf("%s %s: %s", id.Kind, id.Name, oneLine(err.Error()))}
}

// syntax returns what is wrong with the text of a file, with the line.
func syntax(file string, data []byte) error {
	for _, doc := range manifest.Split(data) {
		if _, err := manifest.Decode(doc, file); err != nil {
			return err
		}
	}
	return nil
}

// asking is the innermost layer that still asks for an entry, -1 for none.
func (f *snapshotFS) asking(entry string) int {
	for i, v := range slices.Backward(f.layers) {
		if slices.Contains(v.asks, path.Join(v.dir, entry)) {
			return i
		}
	}
	return -1
}

// lineOf finds where a text names something; 0 when it is not written so.
func lineOf(text []byte, what string) int {
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if strings.Contains(line, what) {
			return n
		}
	}
	return 0
}
