package git

import (
	"bufio"
	"crypto/sha1" //nolint:gosec // that is how Git names things
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// objectID is a SHA-1 object name.
type objectID [20]byte

func (id objectID) String() string { return hex.EncodeToString(id[:]) }

func parseID(s string) (objectID, bool) {
	var id objectID
	if len(s) != 2*len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s))
	return id, err == nil
}

var (
	errMissing = errors.New("the object is missing")
	errDied    = errors.New("git cat-file ended")
	errTooBig  = errors.New("the object is too large")
)

// objects reads a mirror's objects by a few long-lived git processes, which
// are started when needed, started again when they die, and ended when nobody
// has read for a while.
type objects struct {
	m *mirror
	// slots bounds the processes that run at once.
	slots chan struct{}

	mu sync.Mutex
	// epoch changes when the mirror was replaced: what was opened before is stale.
	epoch int
	idle  map[string][]*pipe
	timer *time.Timer
	shut  bool
}

// The two ways in which a process answers: the whole object, or its size only.
const (
	whole = "--batch"
	sized = "--batch-check"
)

const (
	maxPipes  = 4
	idleAfter = time.Minute
)

func newObjects(m *mirror) *objects {
	return &objects{m: m, slots: make(chan struct{}, maxPipes), idle: map[string][]*pipe{}}
}

// read returns an object's kind and content, or, when mode is sized, its size.
// A process that died is replaced once: it may have been killed by mistake.
func (o *objects) read(mode string, id objectID) (kind string, data []byte, size int64, err error) {
	o.slots <- struct{}{}
	defer func() { <-o.slots }()
	for range 2 {
		var p *pipe
		if p, err = o.take(mode); err != nil {
			return "", nil, 0, err
		}
		kind, data, size, err = p.ask(id, mode == whole, o.m.f.opts.MaxFileBytes)
		o.put(mode, p, err == nil || errors.Is(err, errMissing))
		if !errors.Is(err, errDied) {
			break
		}
	}
	o.m.f.counts.reads.Add(1)
	return kind, data, size, err
}

func (o *objects) take(mode string) (*pipe, error) {
	o.mu.Lock()
	if o.shut {
		o.mu.Unlock()
		return nil, errClosed
	}
	epoch := o.epoch
	if n := len(o.idle[mode]); n > 0 {
		p := o.idle[mode][n-1]
		o.idle[mode] = o.idle[mode][:n-1]
		o.mu.Unlock()
		return p, nil
	}
	o.mu.Unlock()
	return o.m.f.git.openPipe(o.m.dir, mode, epoch)
}

// put keeps a working process for the next reader.
func (o *objects) put(mode string, p *pipe, usable bool) {
	o.mu.Lock()
	if usable && !o.shut && p.epoch == o.epoch {
		o.idle[mode] = append(o.idle[mode], p)
		p = nil
		if o.timer == nil {
			o.timer = time.AfterFunc(idleAfter, o.restart)
		} else {
			o.timer.Reset(idleAfter)
		}
	}
	o.mu.Unlock()
	if p != nil {
		p.close()
	}
}

// restart ends all processes; the next read starts a new one.
func (o *objects) restart() {
	o.mu.Lock()
	o.epoch++
	idle := o.idle
	o.idle = map[string][]*pipe{}
	o.mu.Unlock()
	for _, pipes := range idle {
		for _, p := range pipes {
			p.close()
		}
	}
}

func (o *objects) close() {
	o.mu.Lock()
	o.shut = true
	if o.timer != nil {
		o.timer.Stop()
	}
	o.mu.Unlock()
	o.restart()
}

// pipe is one git cat-file.
type pipe struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *bounded
	epoch  int
}

func (r *runner) openPipe(dir, mode string, epoch int) (*pipe, error) {
	cmd := exec.Command(r.bin, "cat-file", mode) //nolint:noctx // it lives longer than any request; the arguments are ours
	cmd.Dir = r.home
	cmd.Env = append(append(r.environ(), base().env()...), "GIT_DIR="+dir)
	cmd.SysProcAttr = groupAttributes()
	p := &pipe{cmd: cmd, stderr: &bounded{limit: maxStderr}, epoch: epoch}
	cmd.Stderr = p.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting git cat-file: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting git cat-file: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting git cat-file: %w", err)
	}
	p.in, p.out = in, bufio.NewReaderSize(out, 64<<10)
	return p, nil
}

// ask sends one name and reads the answer.
func (p *pipe) ask(id objectID, content bool, limit int64) (kind string, data []byte, size int64, err error) {
	if _, err := io.WriteString(p.in, id.String()+"\n"); err != nil {
		return "", nil, 0, errDied
	}
	head, err := p.out.ReadString('\n')
	if err != nil {
		return "", nil, 0, errDied
	}
	fields := strings.Fields(head)
	if len(fields) == 2 && fields[1] == "missing" {
		return "", nil, 0, errMissing
	}
	if len(fields) != 3 {
		return "", nil, 0, errDied
	}
	size, err = strconv.ParseInt(fields[2], 10, 64)
	if err != nil || size < 0 {
		return "", nil, 0, errDied
	}
	if !content {
		return fields[1], nil, size, nil
	}
	if size > limit {
		return "", nil, size, errTooBig
	}
	data = make([]byte, size+1)
	if _, err := io.ReadFull(p.out, data); err != nil {
		return "", nil, 0, errDied
	}
	return fields[1], data[:size:size], size, nil
}

func (p *pipe) close() {
	_ = p.in.Close()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed: its exit says nothing
}

// object returns the content of an object of a commit's tree. One that must be
// there and cannot be read means that the mirror is damaged: it will be made
// anew when the next Snapshot is asked for.
func (m *mirror) object(commit string, id objectID, kind string) ([]byte, error) {
	got, data, size, err := m.objects.read(whole, id)
	switch {
	case err == nil && got == kind && nameOf(kind, data) == id:
		return data, nil
	case err == nil && got == kind:
		err = fmt.Errorf("object %s has the content of another", id)
	case errors.Is(err, errTooBig):
		return nil, rutter.Errorf(rutter.CodeInvalid, "it has %d bytes, more than the %d that a file may have", size, m.f.opts.MaxFileBytes)
	case errors.Is(err, errClosed):
		return nil, rutter.Errorf(rutter.CodeUnavailable, "%w", err)
	case err == nil:
		err = fmt.Errorf("object %s is a %s and not a %s", id, got, kind)
	}
	m.suspect(commit)
	return nil, rutter.Errorf(rutter.CodeUnavailable, "the local copy of the repository is damaged and will be fetched anew: %w", err)
}

// nameOf is the name that Git gives to content. An object is looked at before
// it is used, since git cat-file believes what it finds under a name.
func nameOf(kind string, data []byte) objectID {
	h := sha1.New() //nolint:gosec // that is how Git names things
	fmt.Fprintf(h, "%s %d\x00", kind, len(data))
	h.Write(data)
	return objectID(h.Sum(nil))
}

// suspect marks the mirror as damaged, unless commit is one that it is not
// said to have: one that an earlier rebuild could not bring back.
func (m *mirror) suspect(commit string) {
	if m.pinnedHere(commit) {
		m.damaged.Store(true)
	}
}

func (m *mirror) size(commit string, id objectID) (int64, error) {
	if data, ok := m.f.blobs.Get(objectKey{m, id}); ok {
		return int64(len(data)), nil
	}
	_, _, size, err := m.objects.read(sized, id)
	if err == nil {
		return size, nil
	}
	if !errors.Is(err, errClosed) {
		m.suspect(commit)
	}
	return 0, rutter.Errorf(rutter.CodeUnavailable, "the local copy of the repository cannot be read: %w", err)
}

// blob returns a file's content, which must not be changed.
func (m *mirror) blob(commit string, id objectID) ([]byte, error) {
	key := objectKey{m, id}
	if data, ok := m.f.blobs.Get(key); ok {
		return data, nil
	}
	data, err := m.object(commit, id, "blob")
	if err != nil {
		return nil, err
	}
	m.f.blobs.put(key, data, int64(len(data)))
	return data, nil
}

func (m *mirror) tree(commit string, id objectID) (*tree, error) {
	key := objectKey{m, id}
	if t, ok := m.f.trees.Get(key); ok {
		return t, nil
	}
	data, err := m.object(commit, id, "tree")
	if err != nil {
		return nil, err
	}
	t, err := parseTree(data)
	if err != nil {
		return nil, err
	}
	m.f.trees.put(key, t, int64(2*len(data)))
	return t, nil
}
