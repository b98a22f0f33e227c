package git

import (
	"bufio"
	"container/list"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/rutterhq/rutter"
)

// maxBlob bounds a single file; larger ones are not manifests.
const maxBlob = 64 << 20

// reader is one long-lived git cat-file --batch; it is started when first
// needed and again when it has ended.
type reader struct {
	git, dir string

	mu  sync.Mutex
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newReader(git, dir string) *reader { return &reader{git: git, dir: dir} }

// read returns the content of an object. A reader that has died is started
// once more.
func (r *reader) read(id string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	data, err := r.once(id)
	if err != nil {
		r.stop()
		data, err = r.once(id)
	}
	if err != nil {
		r.stop()
	}
	return data, err
}

func (r *reader) once(id string) ([]byte, error) {
	if r.cmd == nil {
		if err := r.start(); err != nil {
			return nil, err
		}
	}
	if _, err := io.WriteString(r.in, id+"\n"); err != nil {
		return nil, fmt.Errorf("ask git for object %s: %w", id, err)
	}
	head, err := r.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", id, err)
	}
	fields := strings.Fields(head)
	if len(fields) != 3 {
		return nil, rutter.Errorf(rutter.CodeNotFound, "object %s is missing in the mirror", id)
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || size > maxBlob {
		return nil, rutter.Errorf(rutter.CodeInvalid, "object %s is too large (%s bytes)", id, fields[2])
	}
	data := make([]byte, size+1) // and the line's end
	if _, err := io.ReadFull(r.out, data); err != nil {
		return nil, fmt.Errorf("read object %s: %w", id, err)
	}
	return data[:size], nil
}

func (r *reader) start() error {
	cmd := exec.Command(r.git, "cat-file", "--batch") //nolint:noctx // lives as long as the mirror
	cmd.Dir, cmd.Env = r.dir, append(baseEnv(), (&config{}).done()...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("make a pipe to git: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("make a pipe from git: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start git cat-file: %w", err)
	}
	r.cmd, r.in, r.out = cmd, in, bufio.NewReaderSize(out, 64<<10)
	return nil
}

func (r *reader) stop() {
	if r.cmd == nil {
		return
	}
	r.in.Close()
	_ = r.cmd.Process.Kill() // it may have ended by itself
	_ = r.cmd.Wait()
	r.cmd = nil
}

func (r *reader) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
}

// blob returns an object's content, from memory when it was read before. The
// content is shared and must not be changed.
func (m *mirror) blob(id string) ([]byte, error) {
	if data, ok := m.f.blobs.get(id); ok {
		return data, nil
	}
	data, err := m.reader.read(id)
	if err != nil {
		return nil, err
	}
	m.f.blobs.put(id, data)
	return data, nil
}

// blobCache keeps the most recently used contents up to a number of bytes.
type blobCache struct {
	mu    sync.Mutex
	limit int64
	size  int64
	order *list.List
	byID  map[string]*list.Element
}

type blob struct {
	id   string
	data []byte
}

func newBlobCache(limit int64) *blobCache {
	return &blobCache{limit: limit, order: list.New(), byID: map[string]*list.Element{}}
}

func (c *blobCache) get(id string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byID[id]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*blob).data, true //nolint:forcetypeassert // only blobs are put in
}

func (c *blobCache) put(id string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byID[id]; ok || int64(len(data)) > c.limit/4 {
		return
	}
	c.byID[id] = c.order.PushFront(&blob{id: id, data: data})
	for c.size += int64(len(data)); c.size > c.limit; {
		last := c.order.Back()
		b := c.order.Remove(last).(*blob) //nolint:forcetypeassert // only blobs are put in
		delete(c.byID, b.id)
		c.size -= int64(len(b.data))
	}
}
