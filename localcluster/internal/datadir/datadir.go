// Package datadir is the folder in which one local cluster keeps everything:
// it is claimed by one process at a time, and emptied of exactly what a cluster
// puts there.
package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Dir is a claimed folder.
type Dir struct {
	// Path is absolute.
	Path string
	lock *os.File
}

const lockName = "lock"

// own lists what a cluster puts into its folder.
func own() []string {
	return []string{"admin.kubeconfig", "etcd", "etcd.sock", "kubeconfig", lockName, "log", "peer.sock", "pki", "port"}
}

// Claim makes the folder and holds it until Release. With ephemeral, a folder
// with somebody else's files in it is refused, since it is going to be emptied.
func Claim(path string, ephemeral bool) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("--dir: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("--dir: make the cluster's folder: %w", err)
	}
	if ephemeral {
		if err := refuseForeign(path); err != nil {
			return nil, err
		}
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--dir: open the lock: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("--dir: a cluster runs in %s already: stop it first, or choose another folder", path)
		}
		return nil, fmt.Errorf("--dir: lock %s: %w", path, err)
	}
	return &Dir{Path: path, lock: lock}, nil
}

func refuseForeign(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	for _, e := range entries {
		if !slices.Contains(own(), e.Name()) {
			return fmt.Errorf("--ephemeral removes the folder at the end, but %s holds %q, which is not a cluster's: choose an empty folder", path, e.Name())
		}
	}
	return nil
}

// Join is the path of a file in the folder.
func (d *Dir) Join(name string) string { return filepath.Join(d.Path, name) }

// Release lets another process claim the folder.
func (d *Dir) Release() { d.lock.Close() }

// Remove deletes what a cluster puts into its folder, and the folder if nothing
// else is in it.
func (d *Dir) Remove() error {
	for _, name := range own() {
		if err := os.RemoveAll(d.Join(name)); err != nil {
			return fmt.Errorf("remove the cluster's data: %w", err)
		}
	}
	if err := os.Remove(d.Path); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		return fmt.Errorf("remove the cluster's folder: %w", err)
	}
	return nil
}

// AwaitRemoval returns nil when ctx ends, or an error once somebody has removed
// the folder: a cluster without its data would only hold memory.
func (d *Dir) AwaitRemoval(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if _, err := os.Stat(d.Join(lockName)); errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("the folder %s was removed while the cluster ran", d.Path)
			}
		}
	}
}
