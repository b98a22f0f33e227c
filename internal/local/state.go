package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/rutterhq/rutter"
)

// Managed is a cluster that outlives the command that made it.
type Managed struct {
	Name string `json:"name"`
	// Server is empty until the cluster has been ready for the first time.
	Server      string    `json:"server,omitempty"`
	PID         int       `json:"pid"`
	Started     uint64    `json:"started"` // start time of the process, in clock ticks since boot
	Shape       Shape     `json:"shape"`
	Nodes       int       `json:"nodes,omitempty"`
	KubeVersion string    `json:"kubeVersion,omitempty"`
	Created     time.Time `json:"created"`
	Kubeconfig  string    `json:"kubeconfig"`
	Running     bool      `json:"-"`

	restarted bool
}

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func invalidName(name string) error {
	return rutter.Errorf(rutter.CodeInvalid, "%q is not a name for a cluster: use at most 63 lower case letters, digits and dashes", name)
}

const stateFile = "cluster.json"

// read returns the state of one cluster, and whether it runs.
func read(root, name string) (Managed, error) {
	var m Managed
	if !validName.MatchString(name) {
		return m, invalidName(name)
	}
	file := filepath.Join(root, name, stateFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return m, rutter.Errorf(rutter.CodeNotFound, "there is no cluster %q under %s", name, root)
	}
	if err != nil {
		return m, fmt.Errorf("read the state of cluster %s: %w", name, err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, rutter.Errorf(rutter.CodeInvalid, "the state of cluster %s in %s is damaged (%w): end its process, if it has one, and remove the folder", name, file, err)
	}
	m.Running = m.Started != 0 && startTime(m.PID) == m.Started
	if m.Server == "" {
		m.Server = serverOf(m.Kubeconfig)
	}
	return m, nil
}

// serverOf is the server that a kubeconfig names: the cluster may have become
// ready after the process that waited for it had ended.
func serverOf(kubeconfig string) string {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return ""
	}
	for _, c := range config.Clusters {
		return c.Server
	}
	return ""
}

// write replaces the state in one step: a reader sees the old or the new one.
func write(root string, m Managed) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode the state of cluster %s: %w", m.Name, err)
	}
	file := filepath.Join(root, m.Name, stateFile)
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return fmt.Errorf("write the state of cluster %s: %w", m.Name, err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("write the state of cluster %s: %w", m.Name, err)
	}
	return nil
}

// lock makes the processes that change what is under root wait for each other.
func lock(root string) (unlock func(), err error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of clusters: %w", err)
	}
	dir, err := os.Open(root)
	if err != nil {
		return nil, fmt.Errorf("open the folder of clusters: %w", err)
	}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", root, errors.Join(err, dir.Close()))
	}
	return func() { dir.Close() }, nil
}

// startTime returns when a process started, in clock ticks since boot; 0 when
// there is none or it has ended.
func startTime(pid int) uint64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name of the program, in brackets, may hold anything.
	text := string(data)
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	const state, threads, started = 0, 17, 19
	if len(fields) <= started {
		return 0
	}
	// A process that was killed is a zombie as soon as its first thread has ended;
	// its locks are held until the last one has.
	if alive, err := strconv.Atoi(fields[threads]); fields[state] == "Z" && (err != nil || alive <= 1) {
		return 0
	}
	n, err := strconv.ParseUint(fields[started], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
