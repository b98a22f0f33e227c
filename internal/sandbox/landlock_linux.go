package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a rule allows.
const (
	rightsRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// rightsFile are those that a rule about a file can hold.
	rightsFile   = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	rightsWrite  = rightsRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// landlockVersion is the kernel's, 0 when it has none.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// handled is all that a version of Landlock can forbid. Each added some.
func handled(version int, network bool) unix.LandlockRulesetAttr {
	a := unix.LandlockRulesetAttr{Handled_access_fs: 1<<13 - 1} // version 1: 13 rights
	for from, right := range map[int]uint64{
		2: unix.LANDLOCK_ACCESS_FS_REFER, 3: unix.LANDLOCK_ACCESS_FS_TRUNCATE, 5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
		9: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX,
	} {
		if version >= from {
			a.Handled_access_fs |= right
		}
	}
	if version >= 4 && !network {
		a.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		if version >= 10 {
			a.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP
		}
	}
	if version >= 6 {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return a
}

// restrict forbids this thread, and what it becomes, every file but those that
// a run is about.
func restrict(s spec) error {
	if !s.Landlock {
		return nil
	}
	attr := handled(landlockVersion(), s.Network)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // how the kernel is asked
	runtime.KeepAlive(&attr)
	if errno != 0 {
		return fmt.Errorf("make a set of rules: %w", errno)
	}
	defer unix.Close(int(fd)) //nolint:errcheck // it was only used here
	for _, r := range rules(s) {
		if err := r.add(fd, attr.Handled_access_fs); err != nil {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("apply the rules: %w", errno)
	}
	return nil
}

// rule allows something below a path.
type rule struct {
	path   string
	rights uint64
}

// rules are all that is allowed.
func rules(s spec) []rule {
	read := slices.Concat(systemDirs, systemFiles, s.Tools, s.Files)
	switch {
	case s.Namespaces:
		read = append(read, "/etc") // the root holds only what may be read
		if ownProc() {
			read = append(read, "/proc")
		}
	default:
		read = append(read, "/etc/passwd", "/etc/group", "/etc/hosts")
	}
	if s.Network {
		read = append(read, networkFiles...)
	}
	var out []rule
	for _, p := range read {
		out = append(out, rule{p, rightsRead})
	}
	for _, p := range devices {
		out = append(out, rule{p, rightsDevice})
	}
	for _, p := range s.folders() {
		out = append(out, rule{p, rightsWrite})
	}
	return out
}

func (r rule) add(set uintptr, handled uint64) error {
	fd, err := unix.Open(r.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil // what cannot be reached needs no rule
	}
	if err != nil {
		return &os.PathError{Op: "allow", Path: r.path, Err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // it was only used here
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "allow", Path: r.path, Err: err}
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: r.rights & handled, Parent_fd: int32(fd)} //nolint:gosec // a file descriptor is small
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		attr.Allowed_access &= rightsFile
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, set, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0) //nolint:gosec // how the kernel is asked
	runtime.KeepAlive(&attr)
	if errno != 0 {
		return &os.PathError{Op: "allow", Path: r.path, Err: errno}
	}
	return nil
}
