package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

var (
	// systemDirs are the programs of the system, and what they need to run.
	systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
	// systemFiles are settings that hold no secret.
	systemFiles = []string{
		"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/alternatives", "/etc/ld.so.cache",
		"/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/nsswitch.conf",
	}
	networkFiles = []string{"/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf"}
	devices      = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
	deviceLinks  = map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
)

// builder makes the root that a run sees: a small file system in memory, onto
// which what it may see is mounted.
type builder struct {
	spec spec
	root string
}

// buildRoot replaces the root of the warden's mount namespace. What is not in
// the new one does not exist for the program, neither as a file nor as a socket.
func buildRoot(s spec) error {
	b := builder{spec: s, root: s.Root}
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	for _, step := range []func() error{b.empty, b.system, b.devices, b.accounts, b.workspace, b.operators, b.processes, b.enter} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// empty mounts the small file system.
func (b builder) empty() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	if err := unix.Mount("sandbox", b.root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=4m,nr_inodes=4k"); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	return nil
}

func (b builder) system() error {
	for _, p := range systemDirs {
		if target, err := os.Readlink(p); err == nil {
			if err := os.Symlink(target, b.in(p)); err != nil {
				return fmt.Errorf("link %s: %w", p, err)
			}
			continue
		}
		if err := b.show(p, false); err != nil {
			return err
		}
	}
	files := systemFiles
	if b.spec.Network {
		files = append(slices.Clip(files), networkFiles...)
	}
	for _, p := range files {
		if err := b.show(p, false); err != nil {
			return err
		}
	}
	return nil
}

func (b builder) in(p string) string { return filepath.Join(b.root, p) }

// show mounts a file or folder read-only in its place. What is not there is
// left out, unless it must be.
func (b builder) show(p string, must bool) error {
	info, err := os.Stat(p)
	if err != nil {
		if !must && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("%s: %w: it must be there, and everybody must be able to read it", p, err)
	}
	return b.bind(p, p, info.IsDir(), unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// bind mounts a file or folder with all that is mounted below it.
func (b builder) bind(from, to string, dir bool, attr uint64) error {
	at := b.in(to)
	if dir {
		if err := os.MkdirAll(at, 0o755); err != nil { //nolint:gosec // the program must get through
			return fmt.Errorf("place %s: %w", to, err)
		}
	} else {
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // likewise
			return fmt.Errorf("place %s: %w", to, err)
		}
		f, err := os.OpenFile(at, os.O_CREATE|os.O_RDONLY, 0o644) //nolint:gosec // what is mounted here has its own
		if err != nil {
			return fmt.Errorf("place %s: %w", to, err)
		}
		_ = f.Close()
	}
	if err := unix.Mount(from, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", to, err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, at, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr}); err != nil {
		return fmt.Errorf("protect %s: %w", to, err)
	}
	return nil
}

func (b builder) devices() error {
	for _, p := range devices {
		if err := b.bind(p, p, false, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return err
		}
	}
	for name, target := range deviceLinks {
		if err := os.Symlink(target, b.in("/dev/"+name)); err != nil {
			return fmt.Errorf("link /dev/%s: %w", name, err)
		}
	}
	return nil
}

// accounts tells programs who they are; the machine's own users are none of their business.
func (b builder) accounts() error {
	files := map[string]string{
		"/etc/passwd": fmt.Sprintf("rutter:x:%d:%d::%s:/bin/sh\n", insideID, insideID, b.spec.inside().home),
		"/etc/group":  fmt.Sprintf("rutter:x:%d:\n", insideID),
	}
	if !b.spec.Network {
		files["/etc/hosts"] = "127.0.0.1 localhost\n::1 localhost\n"
	}
	for p, text := range files {
		if err := os.MkdirAll(filepath.Dir(b.in(p)), 0o755); err != nil { //nolint:gosec // everybody may read it
			return fmt.Errorf("write %s: %w", p, err)
		}
		if err := os.WriteFile(b.in(p), []byte(text), 0o644); err != nil { //nolint:gosec // everybody may read it
			return fmt.Errorf("write %s: %w", p, err)
		}
	}
	return nil
}

func (b builder) workspace() error {
	in := b.spec.inside()
	for from, to := range map[string]string{b.spec.Tree: in.tree, b.spec.Home: in.home, b.spec.Temp: in.temp} {
		if err := b.bind(from, to, true, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
			return fmt.Errorf("%w: everybody must be able to pass through the folder for temporary files (mode o+x)", err)
		}
	}
	return nil
}

// operators shows what the operator has listed.
func (b builder) operators() error {
	for _, p := range append(slices.Clip(b.spec.Tools), b.spec.Files...) {
		if err := b.show(p, true); err != nil {
			return err
		}
	}
	return nil
}

// processes mounts /proc for the new process namespace. In some containers
// that is not allowed; the old one is only good enough for ourselves, and the
// cell may not look into it.
func (b builder) processes() error {
	if err := os.MkdirAll(b.in("/proc"), 0o755); err != nil { //nolint:gosec // the program must get through
		return fmt.Errorf("place /proc: %w", err)
	}
	err := unix.Mount("proc", b.in("/proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err == nil || !b.spec.Landlock {
		return wrapped("mount /proc", err)
	}
	return wrapped("mount /proc", unix.Mount("/proc", b.in("/proc"), "", unix.MS_BIND|unix.MS_REC, ""))
}

func wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// enter makes the new root the root, and takes the old one away.
func (b builder) enter() error {
	if err := os.Chdir(b.root); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	// The old root is put on top of the new one, and taken off.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	return wrapped("protect the root", unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}))
}

// ownProc says whether /proc is that of our process namespace.
func ownProc() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && number(strings.TrimSpace(self)) == os.Getpid()
}
