package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Workspace is the folder of one render: a tree of files to work on, a home and
// a temporary folder. The programs that run in it one after the other see what
// the earlier ones wrote; nobody else does.
type Workspace struct {
	s        *Sandbox
	dir      string
	tree     *os.Root
	uid, gid int
}

// The folders of a workspace.
const (
	treeDir = "repo"
	homeDir = "home"
	tempDir = "tmp"
	// rootDir is where a run's root is mounted; nobody else sees what is in it.
	rootDir = "root"
)

// Workspace makes an empty workspace with a random name. It must be closed.
func (s *Sandbox) Workspace() (*Workspace, error) {
	dir, err := os.MkdirTemp(s.session.dir, "w-")
	if err != nil {
		return nil, unavailable("make a workspace: %w", err)
	}
	w := &Workspace{s: s, dir: dir}
	w.uid, w.gid = account()
	if err := w.prepare(); err != nil {
		wipe(dir)
		return nil, err
	}
	return w, nil
}

func (w *Workspace) prepare() error {
	for _, name := range []string{treeDir, homeDir, tempDir, rootDir} {
		if err := os.Mkdir(filepath.Join(w.dir, name), 0o700); err != nil {
			return unavailable("make a workspace: %w", err)
		}
	}
	for _, name := range []string{treeDir, homeDir, tempDir, rootDir, "."} {
		if err := w.chown(filepath.Join(w.dir, name)); err != nil {
			return err
		}
	}
	var err error
	if w.tree, err = os.OpenRoot(filepath.Join(w.dir, treeDir)); err != nil {
		return unavailable("make a workspace: %w", err)
	}
	return nil
}

// chown gives a file to the user of the sandbox, when that is another.
func (w *Workspace) chown(file string) error {
	if w.uid == os.Geteuid() {
		return nil
	}
	if err := os.Lchown(file, w.uid, w.gid); err != nil {
		return unavailable("give a workspace to a user of its own: %w (as root this needs CAP_CHOWN; or run rutter as another user)", err)
	}
	return nil
}

func (w *Workspace) own(name string) error {
	if w.uid == os.Geteuid() {
		return nil
	}
	if err := w.tree.Lchown(name, w.uid, w.gid); err != nil {
		return unavailable("give %s to a user of its own: %w", name, err)
	}
	return nil
}

// Mkdir makes a folder of the tree, whose parent must be there.
func (w *Workspace) Mkdir(name string) error {
	if err := w.tree.Mkdir(name, 0o755); err != nil {
		return fmt.Errorf("write to the workspace: %w", err)
	}
	return w.own(name)
}

// WriteFile writes a new file of the tree. It is an error if one is there.
func (w *Workspace) WriteFile(name string, data []byte, executable bool) error {
	mode := fs.FileMode(0o644)
	if executable {
		mode = 0o755
	}
	f, err := w.tree.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("write to the workspace: %w", err)
	}
	_, err = f.Write(data)
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err != nil {
		return fmt.Errorf("write to the workspace: %w", err)
	}
	return w.own(name)
}

// Symlink makes a symbolic link of the tree. A target that is absolute or leads
// out of the tree is refused.
func (w *Workspace) Symlink(target, name string) error {
	to := path.Join(path.Dir(name), target)
	if path.IsAbs(target) || to == ".." || len(to) > 2 && to[:3] == "../" {
		return fmt.Errorf("write to the workspace: %s: the link leads out of it", name)
	}
	if err := w.tree.Symlink(target, name); err != nil {
		return fmt.Errorf("write to the workspace: %w", err)
	}
	return w.own(name)
}

// Close removes the workspace with all that is in it.
func (w *Workspace) Close() error {
	_ = w.tree.Close()
	wipe(w.dir)
	if _, err := os.Lstat(w.dir); err == nil {
		return unavailable("the workspace %s could not be removed", w.dir)
	}
	return nil
}
