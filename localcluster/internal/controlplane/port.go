package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
)

// Ports are chosen below those that the kernel gives to outgoing connections:
// one of these could sit on the port when the cluster comes back for it.
const lowestPort, highestPort = 20000, 29999

// listen takes the port of the last run, which kubeconfigs name, or a new one
// when there was none or somebody else has it. The listener is handed to the API
// server, so that nobody can come between.
func listen(file string) (net.Listener, error) {
	last, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the port of the last run: %w", err)
	}
	if port, err := strconv.Atoi(strings.TrimSpace(string(last))); err == nil {
		if l, err := loopback(port); err == nil {
			return l, nil
		}
	}
	l, err := newPort()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(portOf(l))), 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("remember the port: %w", err)
	}
	return l, nil
}

func newPort() (net.Listener, error) {
	const attempts = 50
	for range attempts {
		if l, err := loopback(lowestPort + rand.IntN(highestPort-lowestPort+1)); err == nil {
			return l, nil
		}
	}
	l, err := loopback(0)
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	return l, nil
}

func loopback(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

func portOf(l net.Listener) int {
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}
