package plugin

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/sandbox"
)

// writer copies the files that a plugin works on into its workspace. All that
// it copies are inputs of the render.
type writer struct {
	repo  *record.FS
	links fs.ReadLinkFS
	to    *sandbox.Workspace
	modes bool

	warnings []string
}

// write copies the whole repository, or only the application's folder.
func (w *writer) write(d Definition, dir string) error {
	if !d.PathOnly || dir == "." {
		return w.folder(".")
	}
	at := ""
	for part := range strings.SplitSeq(dir, "/") {
		if at = path.Join(at, part); w.to.Mkdir(at) != nil {
			return rutter.Errorf(rutter.CodeUnavailable, "the folder %s cannot be copied for the plugin", at)
		}
	}
	return w.folder(dir)
}

// folder copies what is in a folder, which is made already.
func (w *writer) folder(dir string) error {
	entries, err := w.repo.ReadDir(dir)
	if err != nil {
		return broken(dir, err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if err = w.to.Mkdir(name); err == nil {
				err = w.folder(name)
			}
		case e.Type().IsRegular():
			err = w.file(name, e)
		case e.Type()&fs.ModeSymlink != 0:
			err = w.link(name)
		}
		if err != nil {
			return broken(name, err)
		}
	}
	return nil
}

func (w *writer) file(name string, e fs.DirEntry) error {
	data, err := w.repo.ReadSealed(name)
	if err != nil {
		return err
	}
	executable := false
	if w.modes {
		info, err := e.Info()
		if err != nil {
			return err
		}
		executable = info.Mode()&0o111 != 0
	}
	return w.to.WriteFile(name, data, executable)
}

// link makes a symbolic link again that stays within the repository. What it
// leads to is looked at, too: it is what the plugin sees.
func (w *writer) link(name string) error {
	info, err := w.repo.Stat(name)
	if record.IsAbsent(err) {
		w.warnings = append(w.warnings, name+": the symbolic link leads to nothing inside the repository and was left out")
		return nil
	}
	if err != nil {
		return err
	}
	if w.links == nil {
		return w.follow(name, info)
	}
	target, err := w.links.ReadLink(name)
	if err != nil {
		return err
	}
	if to, err := record.Clean(path.Join(path.Dir(name), target)); err != nil || path.IsAbs(target) || to == "" {
		w.warnings = append(w.warnings, name+": the symbolic link leads out of the repository and was left out")
		return nil //nolint:nilerr // the warning tells of it
	}
	if info.IsDir() {
		_, err = w.repo.ReadDir(name)
	} else {
		_, err = w.repo.ReadSealed(name)
	}
	if err != nil {
		return err
	}
	return w.to.Symlink(target, name)
}

// follow copies the file that a link leads to, where links cannot be read.
func (w *writer) follow(name string, info fs.FileInfo) error {
	if info.IsDir() {
		w.warnings = append(w.warnings, name+": the symbolic link to a folder was left out")
		return nil
	}
	data, err := w.repo.ReadSealed(name)
	if err != nil {
		return err
	}
	return w.to.WriteFile(name, data, w.modes && info.Mode()&0o111 != 0)
}

// broken says which file could not be copied, once.
func broken(name string, err error) error {
	if e := (*rutter.Error)(nil); errors.As(err, &e) {
		return err
	}
	return &rutter.Error{Code: rutter.CodeUnavailable, File: name, Message: "cannot be copied for the plugin", Err: err}
}
