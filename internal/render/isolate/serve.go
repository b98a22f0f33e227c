package isolate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/rutterhq/rutter"
)

// Serve is the child: it does tasks until its input ends, and then ends the
// process. A program calls it first thing when its only argument is Command.
func Serve(tasks map[string]Task) {
	out := os.Stdout
	os.Stdout = os.Stderr // what a library prints must not get into the conversation
	c := &child{out: out, in: make(chan message)}
	go c.listen(os.Stdin)
	for m := range c.in {
		if err := send(out, c.do(m, tasks)); err != nil {
			break
		}
	}
	os.Exit(0)
}

type child struct {
	out     io.Writer
	in      chan message
	limited bool
}

// listen reads what the parent says. When the parent is gone, so is the child,
// whatever it is busy with.
func (c *child) listen(r io.Reader) {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		m, err := receive(in, 64<<20, 1<<31)
		if err != nil {
			os.Exit(0)
		}
		c.in <- m
	}
}

// do runs one task; a panic of it is its failure.
func (c *child) do(m message, tasks map[string]Task) (answer message) {
	answer.Kind = msgDone
	defer func() {
		if p := recover(); p != nil {
			answer = message{Kind: msgDone, Failure: failureOf(rutter.Errorf(rutter.CodeInternal, "%s failed unexpectedly: %v", m.Name, p))}
		}
	}()
	if !c.limited {
		c.limited = true
		// The runtime opens what it waits with when there is the first timer.
		time.AfterFunc(time.Hour, func() {}).Stop()
		if err := confine(m.Memory); err != nil {
			answer.Failure = failureOf(err)
			return answer
		}
		go watch(m.Memory)
	}
	task := tasks[m.Name]
	if task == nil {
		answer.Failure = failureOf(rutter.Errorf(rutter.CodeInternal, "no task is named %q", m.Name))
		return answer
	}
	body, err := task(c, m.body)
	answer.body, answer.Failure = body, failureOf(err)
	return answer
}

// watch ends the process when the heap outgrows its limit. The limits of the
// operating system are for what grows faster than this looks.
func watch(limit int64) {
	debug.SetMemoryLimit(limit)
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	much := false
	for range time.Tick(5 * time.Millisecond) {
		metrics.Read(sample)
		used := int64(sample[0].Value.Uint64() - sample[1].Value.Uint64()) //nolint:gosec // no memory is that large
		if used > limit+limit/8 {
			os.Exit(exitMemory)
		}
		if was := much; used > limit/2 {
			if much = true; !was {
				fmt.Fprintln(os.Stderr, muchMemory)
			}
			continue
		}
		much = false
	}
}

// ask puts one question about a path to the parent.
func (c *child) ask(kind, name string) (message, error) {
	if len(name) > maxQuestion/2 {
		return message{}, &fs.PathError{Op: kind, Path: name[:64], Err: fs.ErrNotExist}
	}
	if err := send(c.out, message{Kind: kind, Name: name}); err != nil {
		return message{}, err
	}
	m, ok := <-c.in
	if !ok {
		return message{}, errors.New("the parent is gone")
	}
	return m, m.Failure.err()
}

// ReadFile implements Files.
func (c *child) ReadFile(name string) ([]byte, error) {
	m, err := c.ask(msgRead, name)
	if err != nil {
		return nil, err
	}
	return m.body, nil
}

// ReadDir implements Files.
func (c *child) ReadDir(name string) ([]fs.DirEntry, error) {
	m, err := c.ask(msgList, name)
	if err != nil {
		return nil, err
	}
	out := make([]fs.DirEntry, len(m.Entries))
	for i, e := range m.Entries {
		out[i] = e
	}
	return out, nil
}

// Stat implements Files.
func (c *child) Stat(name string) (fs.FileInfo, error) {
	m, err := c.ask(msgStat, name)
	if err != nil {
		return nil, err
	}
	if len(m.Entries) != 1 {
		return nil, fmt.Errorf("stat %s: no answer", name)
	}
	return m.Entries[0], nil
}
