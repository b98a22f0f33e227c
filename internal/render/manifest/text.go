package manifest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rutterhq/rutter"
)

// Byte order marks, at the start of a text.
var (
	bomUTF8    = []byte{0xEF, 0xBB, 0xBF}
	bomUTF16LE = []byte{0xFF, 0xFE}
	bomUTF16BE = []byte{0xFE, 0xFF}
	bomUTF32LE = []byte{0xFF, 0xFE, 0, 0}
	bomUTF32BE = []byte{0, 0, 0xFE, 0xFF}
)

// toUTF8 returns the text of a stream without its byte order mark. The parser
// below reads UTF-16 too, but markers of documents must be found before it.
func toUTF8(stream []byte, file string) ([]byte, error) {
	switch {
	case bytes.HasPrefix(stream, bomUTF32LE), bytes.HasPrefix(stream, bomUTF32BE):
		return nil, invalidAt(file, 1, "the text is in UTF-32, which Kubernetes does not read: save it as UTF-8")
	case bytes.HasPrefix(stream, bomUTF16LE):
		return fromUTF16(stream[2:], binary.LittleEndian, file)
	case bytes.HasPrefix(stream, bomUTF16BE):
		return fromUTF16(stream[2:], binary.BigEndian, file)
	}
	text := bytes.TrimPrefix(stream, bomUTF8)
	if line := invalidLine(text); line > 0 {
		return nil, notUTF8(file, line)
	}
	return text, nil
}

func fromUTF16(data []byte, order binary.ByteOrder, file string) ([]byte, error) {
	out := make([]byte, 0, len(data))
	line := 1
	for len(data) >= 2 {
		r := rune(order.Uint16(data))
		data = data[2:]
		if utf16.IsSurrogate(r) {
			low := rune(utf8.RuneError)
			if len(data) >= 2 {
				low = rune(order.Uint16(data))
				data = data[2:]
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				return nil, invalidAt(file, line, "the text is no valid UTF-16, half a character is missing: save it as UTF-8")
			}
		}
		if r == '\n' {
			line++
		}
		out = utf8.AppendRune(out, r)
	}
	if len(data) > 0 {
		return nil, invalidAt(file, line, "the text is no valid UTF-16, it ends in half a character: save it as UTF-8")
	}
	return out, nil
}

// invalidLine returns the line of the first byte that is no UTF-8, or zero.
func invalidLine(text []byte) int {
	if utf8.Valid(text) {
		return 0
	}
	line := 1
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n < 2 {
			return line
		}
		if r == '\n' {
			line++
		}
		text = text[n:]
	}
	return 0
}

// controlLine returns the line of the first character that YAML does not allow, or zero.
func controlLine(text []byte) (line int, char rune) {
	line = 1
	for _, r := range string(text) {
		switch {
		case r == '\n':
			line++
		case r < 0x20 && r != '\t' && r != '\r', r >= 0x7F && r < 0xA0 && r != 0x85, r == 0xFFFE, r == 0xFFFF:
			return line, r
		}
	}
	return 0, 0
}

func notUTF8(file string, line int) error {
	return invalidAt(file, line, "the text is not UTF-8: save the file as UTF-8, or take it out of the render")
}

func invalidAt(file string, line int, format string, args ...any) error {
	return &rutter.Error{Code: rutter.CodeInvalid, File: file, Line: line, Message: fmt.Sprintf(format, args...)}
}
