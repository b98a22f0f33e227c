package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rutterhq/rutter"
)

// Create starts a cluster that goes on after this process, with its state in
// root/name. A cluster of that name that has been stopped is started again with
// its data, and with its shape, nodes and version where opts leaves them open;
// one that runs is an error.
func Create(ctx context.Context, root, name string, opts Options) (Managed, error) {
	m, l, err := begin(root, name, opts)
	if err != nil {
		return m, err
	}
	c, err := l.await(ctx)
	if err != nil {
		if m.restarted {
			return Managed{}, err
		}
		return Managed{}, errors.Join(err, os.RemoveAll(filepath.Join(root, name)))
	}
	m.Server = c.Server
	return m, write(root, m)
}

// begin starts the process and writes down whose it is, so that it is known even
// if this process ends before it is ready. Of two at the same time one is told
// that the other was first.
func begin(root, name string, opts Options) (Managed, *launched, error) {
	if !validName.MatchString(name) {
		return Managed{}, nil, invalidName(name)
	}
	unlock, err := lock(root)
	if err != nil {
		return Managed{}, nil, err
	}
	defer unlock()
	old, err := read(root, name)
	switch {
	case err == nil && old.Running:
		return old, nil, rutter.Errorf(rutter.CodeConflict, "cluster %q exists already%s: delete it first, or choose another name", name, at(old))
	case err != nil && rutter.CodeOf(err) != rutter.CodeNotFound:
		return Managed{}, nil, err
	}
	opts.inherit(old)
	opts.Name, opts.Dir, opts.Detach, opts.Ephemeral, opts.Sync = name, filepath.Join(root, name), true, false, true
	l, err := launch(opts)
	if err != nil {
		return Managed{}, nil, err
	}
	m := Managed{Name: name, PID: l.cluster.PID, Started: startTime(l.cluster.PID), Shape: opts.Shape, Nodes: opts.Nodes, KubeVersion: opts.KubeVersion,
		Created: old.Created, Kubeconfig: l.cluster.Kubeconfig, Running: true, restarted: !old.Created.IsZero()}
	if !m.restarted {
		m.Created = time.Now().UTC()
	}
	if err := write(root, m); err != nil {
		l.cluster.Kill()
		l.close()
		return Managed{}, nil, err
	}
	return m, l, nil
}

// inherit takes from a cluster that is started again what was left open.
func (o *Options) inherit(old Managed) {
	if o.Shape == "" {
		o.Shape = old.Shape
	}
	if o.Shape == "" {
		o.Shape = Full
	}
	if o.Nodes == 0 {
		o.Nodes = old.Nodes
	}
	if o.KubeVersion == "" {
		o.KubeVersion = old.KubeVersion
	}
}

func at(m Managed) string {
	if m.Server == "" {
		return " and is starting"
	}
	return " at " + m.Server
}

// List returns the managed clusters under root, by name. One whose state cannot
// be read is in the error and keeps none of the others back.
func List(root string) ([]Managed, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var out []Managed
	var bad []error
	for _, e := range entries {
		if !e.IsDir() || !validName.MatchString(e.Name()) {
			continue
		}
		m, err := read(root, e.Name())
		switch {
		case err == nil:
			out = append(out, m)
		case rutter.CodeOf(err) != rutter.CodeNotFound:
			bad = append(bad, err)
		}
	}
	slices.SortFunc(out, func(a, b Managed) int { return strings.Compare(a.Name, b.Name) })
	return out, errors.Join(bad...)
}

// Delete stops a managed cluster and removes its data.
func Delete(ctx context.Context, root, name string) error {
	if _, err := read(root, name); err != nil {
		return err
	}
	unlock, err := lock(root)
	if err != nil {
		return err
	}
	defer unlock()
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
	if errors.Is(err, fs.ErrNotExist) {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "cluster %q is not ready yet", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of cluster %s: %w", name, err)
	}
	return data, nil
}

// terminate ends a cluster that is not our child and waits for its end. The
// start time guards against a process number that has been given to somebody else.
func terminate(ctx context.Context, m Managed) error {
	if err := syscall.Kill(m.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop cluster %s: %w", m.Name, err)
	}
	deadline := time.Now().Add(stopGrace)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for killed := false; startTime(m.PID) == m.Started; <-tick.C {
		switch late := time.Since(deadline); {
		case !killed && (late > 0 || ctx.Err() != nil):
			_ = syscall.Kill(m.PID, syscall.SIGKILL) // it had its time
			killed = true
		case late > stopGrace:
			return rutter.Errorf(rutter.CodeUnavailable, "cluster %q does not end: process %d", m.Name, m.PID)
		}
	}
	return nil
}
