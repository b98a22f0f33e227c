package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Document is one document of a YAML or JSON stream.
type Document struct {
	// Number counts the documents that hold something, from 1; zero when unknown.
	Number int
	// Line is the first line with content, 1-based.
	Line int
	// Data starts at line First of the stream; the offset of line numbers in
	// errors about Data is First-1.
	Data  []byte
	First int
}

// Documents cuts a stream into its documents: YAML at its markers, JSON values
// one after the other. Documents that hold only comments and blank lines are
// left out. A text in UTF-16 is read where a byte order mark says so, as YAML
// wants it. The error names the line of what is no text, and a stream that
// holds more than a render may read.
func Documents(stream []byte, file string) ([]Document, error) {
	text, err := toUTF8(stream, file)
	if err != nil {
		return nil, err
	}
	docs := split(text)
	if len(docs) > maxDocuments {
		last := docs[maxDocuments]
		return nil, invalidAt(file, last.Line, "the file holds more than %d documents: split it into several files", maxDocuments)
	}
	return docs, nil
}

// Split is Documents for a stream whose limits its maker has checked. What is
// no text is one document, which Decode refuses.
func Split(stream []byte) []Document {
	text, err := toUTF8(stream, "")
	if err != nil {
		text = stream
	}
	return split(text)
}

func split(stream []byte) []Document {
	var docs []Document
	var cur bytes.Buffer
	first, line, blank := 1, 0, true
	flush := func(next int) {
		if at := firstContent(cur.Bytes()); at >= 0 {
			docs = values(docs, Document{Line: first + at, First: first, Data: bytes.Clone(cur.Bytes())})
		}
		cur.Reset()
		first, blank = next, true
	}
	for len(stream) > 0 {
		line++
		var text []byte
		if i := bytes.IndexByte(stream, '\n'); i >= 0 {
			text, stream = stream[:i+1], stream[i+1:]
		} else {
			text, stream = stream, nil
		}
		switch rest, kind := marker(bytes.TrimPrefix(text, bomUTF8)); kind {
		case markStart:
			if onlyDirectives(cur.Bytes()) {
				cur.Reset()
			}
			flush(line)
			if blank = len(bytes.TrimSpace(rest)) == 0; blank {
				rest = rest[len(rest)-min(len(rest), 1):] // a tab there is nothing, at the start of a document it is an error
			}
			cur.Write(rest)
		case markEnd:
			flush(line + 1)
		default:
			if blank {
				// A file that was put together of several has their marks in it.
				text = bytes.TrimPrefix(text, bomUTF8)
				blank = len(bytes.TrimSpace(text)) == 0
			}
			cur.Write(text)
		}
	}
	flush(line + 1)
	return docs
}

// values appends a document, or its values when it is several JSON objects one
// after the other: no YAML, but what kubectl reads as well.
func values(docs []Document, d Document) []Document {
	add := func(v Document) {
		v.Number = len(docs) + 1
		docs = append(docs, v)
	}
	parts := jsonValues(d)
	if len(parts) < 2 {
		add(d)
		return docs
	}
	for _, p := range parts {
		add(p)
	}
	return docs
}

func jsonValues(d Document) []Document {
	body := bytes.TrimLeft(d.Data, " \t\r\n")
	if len(body) == 0 || body[0] != '{' {
		return nil
	}
	var out []Document
	dec := json.NewDecoder(bytes.NewReader(d.Data))
	line, at := d.First, 0
	for {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			if errors.Is(err, io.EOF) {
				return out
			}
			return nil // no JSON: YAML's parser will say what it is
		}
		end := int(dec.InputOffset())
		start := end - len(raw)
		line += bytes.Count(d.Data[at:start], []byte("\n"))
		out = append(out, Document{Line: line, First: line, Data: raw})
		line += bytes.Count(raw, []byte("\n"))
		at = end
	}
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
		if t := bytes.TrimSpace(bytes.TrimPrefix(text, bomUTF8)); len(t) > 0 && t[0] != '#' {
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
