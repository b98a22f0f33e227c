package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/rutterhq/rutter/internal/daemon"
)

// controller is the child process whose memory and processor time are counted:
// the same as `rutter controller`. It ends when its standard input does, which
// is when its parent does; a line there is an order, answered by a line.
func controller(ctx context.Context, kubeconfig, dir string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rc, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	rc.QPS = -1
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	go func() {
		if err := obey(os.Stdin, os.Stdout); err != nil {
			log.Error("cannot profile", "err", err)
		}
		cancel()
	}()
	// Polling would only blur the figures: pushes are announced.
	return daemon.Run(ctx, daemon.Config{
		REST: rc, DataDir: dir, Poll: 24 * time.Hour, AllowUnsigned: true, Logger: log,
		Listening: func(addr string) { fmt.Println(addr) },
	})
}

// The orders: to begin a CPU profile into a file, to end it, and to collect
// garbage and say what is left, which is profiled into a file where one is named.
const (
	orderProfile = "profile"
	orderHeap    = "heap"
)

func obey(in io.Reader, out io.Writer) error {
	var file *os.File
	for lines := bufio.NewScanner(in); lines.Scan(); {
		answer := "done"
		var err error
		switch order, name, _ := strings.Cut(lines.Text(), " "); {
		case order == orderHeap:
			answer, err = heapInUse(name)
		case name != "":
			if file, err = os.Create(name); err == nil {
				err = pprof.StartCPUProfile(file)
			}
		case file != nil:
			pprof.StopCPUProfile()
			err, file = file.Close(), nil
		}
		if err != nil {
			return fmt.Errorf("obey %q: %w", lines.Text(), err)
		}
		fmt.Fprintln(out, answer)
	}
	return nil
}

// heapInUse is how many bytes are reachable.
func heapInUse(profile string) (string, error) {
	runtime.GC()
	runtime.GC() // what finalizers have let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if profile != "" {
		file, err := os.Create(profile)
		if err != nil {
			return "", fmt.Errorf("make the profile: %w", err)
		}
		if err := errors.Join(pprof.WriteHeapProfile(file), file.Close()); err != nil {
			return "", fmt.Errorf("write the profile: %w", err)
		}
	}
	return strconv.FormatUint(m.HeapAlloc, 10), nil
}

// child is the controller as the benchmark sees it.
type child struct {
	pid    int
	url    string
	stdin  io.WriteCloser
	stdout *bufio.Reader
	cmd    *exec.Cmd
	ended  chan struct{}
	err    error
}

// startController starts this binary as the controller and waits until it is ready.
func startController(ctx context.Context, kubeconfig, dir string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the own binary: %w", err)
	}
	c := &child{cmd: exec.CommandContext(ctx, self, childArgument, kubeconfig, dir), ended: make(chan struct{})}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the controller: %w", err)
	}
	c.pid, c.stdout = c.cmd.Process.Pid, bufio.NewReader(out)
	line, err := c.stdout.ReadString('\n')
	go func() {
		state, err := c.cmd.Process.Wait() // not Cmd.Wait, which closes the pipe under the reader
		c.err = fmt.Errorf("the controller ended: %v", state)
		if err != nil {
			c.err = fmt.Errorf("the controller ended: %w", err)
		}
		close(c.ended)
	}()
	if err != nil {
		c.stop()
		return nil, fmt.Errorf("the controller ended while starting: %w", err)
	}
	c.url = "http://" + strings.TrimSpace(line)
	return c, c.ready(ctx)
}

func (c *child) ready(ctx context.Context) error {
	for {
		if _, err := c.get(ctx, "/readyz"); err == nil {
			return nil
		}
		if err := c.pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("wait for the controller: %w", err)
		}
	}
}

// pause waits; it ends early, with an error, when there is nothing to wait for.
func (c *child) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-c.ended:
		return c.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop ends the controller and waits for its end.
func (c *child) stop() {
	_ = c.stdin.Close() // it ends with its input
	select {
	case <-c.ended:
	case <-time.After(8 * time.Second):
		_ = c.cmd.Process.Kill() // may have ended this moment
		<-c.ended
	}
}

// profile begins a CPU profile into file, or ends it when file is empty.
func (c *child) profile(file string) error {
	_, err := c.order(orderProfile, file)
	return err
}

// heap has the controller collect its garbage and returns the bytes that are
// left; they are profiled into file where one is named.
func (c *child) heap(file string) (float64, error) {
	answer, err := c.order(orderHeap, file)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseFloat(answer, 64)
	if err != nil {
		return 0, fmt.Errorf("the controller answers %q for its heap: %w", answer, err)
	}
	return n, nil
}

func (c *child) order(order, file string) (string, error) {
	if _, err := fmt.Fprintln(c.stdin, strings.TrimSpace(order+" "+file)); err != nil {
		return "", fmt.Errorf("ask for a %s: %w", order, err)
	}
	answer, err := c.stdout.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("wait for the %s: %w", order, err)
	}
	return strings.TrimSpace(answer), nil
}

func (c *child) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("build the request: %w", err)
	}
	return c.do(req)
}

// pushed tells the controller of a push as GitHub does.
func (c *child) pushed(ctx context.Context, repo string) error {
	body := fmt.Sprintf(`{"ref":"refs/heads/main","repository":{"clone_url":%q,"default_branch":"main"}}`, repo)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/api/webhook", strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("build the webhook: %w", err)
	}
	req.Header.Set("X-Github-Event", "push")
	_, err = c.do(req)
	return err
}

func (c *child) do(req *http.Request) ([]byte, error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the controller: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the controller's answer: %w", err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: the controller answers %s: %s", req.Method, req.URL.Path, resp.Status, strings.TrimSpace(string(data)))
	}
	return data, nil
}
