package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rutterhq/rutter"
)

// Managed is a cluster that outlives the command that made it.
type Managed struct {
	Name       string    `json:"name"`
	Server     string    `json:"server"`
	PID        int       `json:"pid"`
	Started    uint64    `json:"started"` // start time of the process, in clock ticks since boot
	Shape      Shape     `json:"shape"`
	Created    time.Time `json:"created"`
	Kubeconfig string    `json:"kubeconfig"`
	Running    bool      `json:"-"`
}

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

const stateFile = "cluster.json"

// Create starts a cluster that goes on after this process, with its state in
// root/name. A cluster of that name that has been stopped is started again with
// its data; one that runs is an error.
func Create(ctx context.Context, root, name string, opts Options) (Managed, error) {
	if !validName.MatchString(name) {
		return Managed{}, rutter.Errorf(rutter.CodeInvalid, "%q is not a name for a cluster: use lower case letters, digits and dashes", name)
	}
	if m, err := read(root, name); err == nil && m.Running {
		return m, rutter.Errorf(rutter.CodeConflict, "cluster %q exists already at %s: delete it first, or choose another name", name, m.Server)
	}
	opts.Name, opts.Dir, opts.Detach, opts.Ephemeral, opts.Sync = name, filepath.Join(root, name), true, false, true
	c, err := Start(ctx, opts)
	if err != nil {
		return Managed{}, err
	}
	shape := opts.Shape
	if shape == "" {
		shape = Full
	}
	m := Managed{Name: name, Server: c.Server, PID: c.PID, Started: startTime(c.PID), Shape: shape, Created: time.Now().UTC(), Kubeconfig: c.Kubeconfig, Running: true}
	data, err := json.Marshal(m)
	if err != nil {
		return m, fmt.Errorf("encode the state of cluster %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(root, name, stateFile), data, 0o600); err != nil {
		return m, fmt.Errorf("write the state of cluster %s: %w", name, err)
	}
	return m, nil
}

// List returns the managed clusters under root, by name.
func List(root string) ([]Managed, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var out []Managed
	for _, e := range entries {
		if m, err := read(root, e.Name()); err == nil {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b Managed) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Delete stops a managed cluster and removes its data.
func Delete(ctx context.Context, root, name string) error {
	m, err := read(root, name)
	if err != nil {
		return err
	}
	if m.Running {
		if err := terminate(ctx, m); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
		return fmt.Errorf("remove the data of cluster %s: %w", name, err)
	}
	return nil
}

// Kubeconfig returns the kubeconfig of a managed cluster.
func Kubeconfig(root, name string) ([]byte, error) {
	m, err := read(root, name)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(m.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of cluster %s: %w", name, err)
	}
	return data, nil
}

func read(root, name string) (Managed, error) {
	var m Managed
	if !validName.MatchString(name) {
		return m, rutter.Errorf(rutter.CodeInvalid, "%q is not a name of a cluster", name)
	}
	data, err := os.ReadFile(filepath.Join(root, name, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, rutter.Errorf(rutter.CodeNotFound, "there is no cluster %q under %s", name, root)
	}
	if err != nil {
		return m, fmt.Errorf("read the state of cluster %s: %w", name, err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read the state of cluster %s: %w", name, err)
	}
	m.Running = m.Started != 0 && startTime(m.PID) == m.Started
	return m, nil
}

// terminate ends a cluster that is not our child. The start time guards against
// a process number that has been given to somebody else.
func terminate(ctx context.Context, m Managed) error {
	if err := syscall.Kill(m.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop cluster %s: %w", m.Name, err)
	}
	deadline := time.Now().Add(stopGrace)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for startTime(m.PID) == m.Started {
		if time.Now().After(deadline) || ctx.Err() != nil {
			_ = syscall.Kill(m.PID, syscall.SIGKILL) // it had its time
			return nil
		}
		<-tick.C
	}
	return nil
}

// startTime returns when a process started, in clock ticks since boot; 0 when
// there is none or it has ended.
func startTime(pid int) uint64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name of the program, in brackets, may hold anything.
	_, rest, ok := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	const state, started = 0, 19
	if !ok || len(fields) <= started || fields[state] == "Z" {
		return 0
	}
	n, err := strconv.ParseUint(fields[started], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
