// Package manifest turns the text that a render tool read or wrote into
// objects: it splits YAML streams, decodes documents, expands lists and refuses
// what is no Kubernetes object, naming the file and the line.
//
// Ring: adapter (render); it does no I/O. Directory, kustomize and Helm all end here, so that an object is
// checked in one way whatever made it.
package manifest

import "bytes"

// Document is one document of a YAML stream.
type Document struct {
	// Line is the first line with content, 1-based.
	Line int
	// Data starts at line First of the stream; the offset of line numbers in
	// errors about Data is First-1.
	Data  []byte
	First int
}

var bom = []byte{0xEF, 0xBB, 0xBF}

// Split cuts a YAML stream at its document markers. Documents that hold only
// comments and blank lines are left out.
func Split(stream []byte) []Document {
	stream = bytes.TrimPrefix(stream, bom)
	var docs []Document
	var cur bytes.Buffer
	first, line := 1, 0
	flush := func(next int) {
		if at := firstContent(cur.Bytes()); at >= 0 {
			docs = append(docs, Document{Line: first + at, First: first, Data: bytes.Clone(cur.Bytes())})
		}
		cur.Reset()
		first = next
	}
	for len(stream) > 0 {
		line++
		var text []byte
		if i := bytes.IndexByte(stream, '\n'); i >= 0 {
			text, stream = stream[:i+1], stream[i+1:]
		} else {
			text, stream = stream, nil
		}
		switch rest, kind := marker(text); kind {
		case markStart:
			if onlyDirectives(cur.Bytes()) {
				cur.Reset()
			}
			flush(line)
			cur.Write(rest)
		case markEnd:
			flush(line + 1)
		default:
			cur.Write(text)
		}
	}
	flush(line + 1)
	return docs
}

type mark int

const (
	markNone mark = iota
	markStart
	markEnd
)

// marker recognises "---" and "...", which must be followed by white space.
// What follows "---" on its line belongs to the new document.
func marker(text []byte) ([]byte, mark) {
	kind := markStart
	rest, ok := bytes.CutPrefix(text, []byte("---"))
	if !ok {
		kind = markEnd
		if rest, ok = bytes.CutPrefix(text, []byte("...")); !ok {
			return nil, markNone
		}
	}
	if len(bytes.TrimSpace(rest)) == 0 || rest[0] == ' ' || rest[0] == '\t' {
		return rest, kind
	}
	return nil, markNone
}

// firstContent returns the index of the first line that is neither blank nor a
// comment, or -1.
func firstContent(data []byte) int {
	n := 0
	for text := range bytes.Lines(data) {
		if t := bytes.TrimSpace(text); len(t) > 0 && t[0] != '#' {
			return n
		}
		n++
	}
	return -1
}

// onlyDirectives reports whether data has %YAML or %TAG lines and nothing else.
func onlyDirectives(data []byte) bool {
	for text := range bytes.Lines(data) {
		if t := bytes.TrimSpace(text); len(t) > 0 && t[0] != '#' && text[0] != '%' {
			return false
		}
	}
	return true
}
