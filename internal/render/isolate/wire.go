package isolate

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
)

// The kinds of message. A conversation is: task, then any number of questions
// and their answers, then done.
const (
	msgTask = "task"
	msgRead = "read"
	msgList = "list"
	msgStat = "stat"
	msgDone = "done"
)

// message is one step of the conversation between parent and child.
type message struct {
	Kind string `json:"kind"`
	// Name is the task's, or the path that is asked for.
	Name string `json:"name,omitempty"`
	// Memory is the child's limit, told with each task.
	Memory  int64    `json:"memory,omitempty"`
	Entries []entry  `json:"entries,omitempty"`
	Failure *failure `json:"failure,omitempty"`
	body    []byte   // what is read, requested or answered
}

// entry is a file's name and type, as a directory lists it and as stat tells it.
type entry struct {
	Base string      `json:"name"`
	Kind fs.FileMode `json:"mode,omitempty"`
	Len  int64       `json:"size,omitempty"`
}

func (e entry) Name() string               { return e.Base }
func (e entry) Size() int64                { return e.Len }
func (e entry) Mode() fs.FileMode          { return e.Kind }
func (e entry) Type() fs.FileMode          { return e.Kind.Type() }
func (e entry) ModTime() time.Time         { return time.Time{} }
func (e entry) IsDir() bool                { return e.Kind.IsDir() }
func (e entry) Sys() any                   { return nil }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }

func entryOf(info fs.FileInfo) entry {
	return entry{Base: info.Name(), Kind: info.Mode(), Len: info.Size()}
}

// failure is an error that crosses the border between the processes.
type failure struct {
	Absent bool        `json:"absent,omitempty"`
	Code   rutter.Code `json:"code,omitempty"`
	Text   string      `json:"text,omitempty"`
	File   string      `json:"file,omitempty"`
	Line   int         `json:"line,omitempty"`
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Absent: errors.Is(err, fs.ErrNotExist), Code: rutter.CodeOf(err), Text: err.Error()}
	if e := (*rutter.Error)(nil); errors.As(err, &e) && e.File != "" {
		// Text without the place, which Error would put before it again.
		bare := &rutter.Error{Message: e.Message, Err: e.Err}
		f.File, f.Line, f.Text = e.File, e.Line, bare.Error()
	}
	if len(f.Text) > maxFailure {
		f.Text = strings.ToValidUTF8(f.Text[:maxFailure], "") + "…"
	}
	return f
}

func (f *failure) err() error {
	if f == nil {
		return nil
	}
	e := &rutter.Error{Code: f.Code, Message: f.Text, File: f.File, Line: f.Line}
	if f.Absent {
		e.Message, e.Err = "", fmt.Errorf("%s%w", f.Text, absent{})
	}
	return e
}

// absent makes an error that has crossed the border be fs.ErrNotExist again.
type absent struct{}

func (absent) Error() string        { return "" }
func (absent) Is(target error) bool { return target == fs.ErrNotExist }

var errTooLong = errors.New("a message is longer than allowed")

func send(w io.Writer, m message) error {
	head, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	buf := make([]byte, 8, 8+len(head)+len(m.body))
	binary.BigEndian.PutUint32(buf, uint32(len(head)))       //nolint:gosec // a head has a few names
	binary.BigEndian.PutUint32(buf[4:], uint32(len(m.body))) //nolint:gosec // bodies are below the limits of a render
	buf = append(append(buf, head...), m.body...)
	if _, err := w.Write(buf); err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	return nil
}

// receive reads a message whose parts are not longer than allowed.
func receive(r io.Reader, maxHead, maxBody int64) (message, error) {
	var m message
	var sizes [8]byte
	if _, err := io.ReadFull(r, sizes[:]); err != nil {
		return m, fmt.Errorf("read a message: %w", err)
	}
	head, body := int64(binary.BigEndian.Uint32(sizes[:])), int64(binary.BigEndian.Uint32(sizes[4:]))
	if head > maxHead || body > maxBody {
		return m, errTooLong
	}
	buf := make([]byte, head+body)
	if _, err := io.ReadFull(r, buf); err != nil {
		return m, fmt.Errorf("read a message: %w", err)
	}
	if err := json.Unmarshal(buf[:head], &m); err != nil {
		return m, fmt.Errorf("read a message: %w", err)
	}
	m.body = buf[head:]
	return m, nil
}
