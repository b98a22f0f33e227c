package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where the kernel puts what a filter looks at (struct seccomp_data).
const (
	offsetCall = 0
	offsetArch = 4
	offsetArg0 = 16 // its low half, on the little-endian machines that are listed below
)

// architectures are those whose system calls are known here.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// foreignCalls is the first number of amd64's second table of system calls.
const foreignCalls = 0x40000000

// forbidden are calls that no renderer needs: to look into other processes, to
// change mounts and namespaces, to make memory that no process is charged for,
// and the parts of the kernel in which most holes were found.
var forbidden = []uintptr{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT, unix.SYS_SYSLOG,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_MSGGET,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX,
	unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}

// absent are calls that programs try first and can do without, if they are told
// that the kernel has none. A filter cannot look into what they are given.
var absent = []uintptr{unix.SYS_IO_URING_SETUP, unix.SYS_CLONE3}

const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// filterCalls makes the kernel refuse system calls to this thread and to what it becomes.
func filterCalls(s spec) error {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		if s.Namespaces && s.Landlock {
			return nil // two walls without this one
		}
		return fmt.Errorf("it is not known for %s, and the weaker sandbox needs it", runtime.GOARCH)
	}
	prog := program(arch, s.domains())
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}                                       //nolint:gosec // some hundred
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&f)), 0, 0) //nolint:gosec // how the kernel is told
	runtime.KeepAlive(prog)
	if err != nil {
		return fmt.Errorf("install the filter: %w", err)
	}
	return nil
}

// filter is a program of the kernel's packet filter.
type filter []unix.SockFilter

const (
	opLoad    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	opEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	opAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	opAnyBit  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	opReturn  = unix.BPF_RET | unix.BPF_K
)

func (f *filter) do(op uint16, k uint32) { *f = append(*f, unix.SockFilter{Code: op, K: k}) }

// when goes on with the next instruction if the test holds, else skips it.
func (f *filter) when(op uint16, k uint32) { *f = append(*f, unix.SockFilter{Code: op, K: k, Jf: 1}) }

// unless is the opposite.
func (f *filter) unless(op uint16, k uint32) { *f = append(*f, unix.SockFilter{Code: op, K: k, Jt: 1}) }

// call runs what follows for one call only; skip is how many instructions that is.
func (f *filter) call(nr uintptr, skip uint8) {
	*f = append(*f, unix.SockFilter{Code: opEqual, K: uint32(nr), Jf: skip}) //nolint:gosec // a call's number is small
}

func refuse(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) } //nolint:gosec // small

// domains are the families of sockets that a run may open; nil means all. A file
// system of its own hides the machine's local sockets; without, none may be opened.
func (s spec) domains() []uint32 {
	switch {
	case s.Namespaces && s.Network:
		return nil
	case s.Namespaces:
		return []uint32{unix.AF_UNIX}
	case s.Network:
		return []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	}
	return []uint32{}
}

// program writes the filter.
func program(arch uint32, domains []uint32) filter {
	var f filter
	f.do(opLoad, offsetArch)
	f.unless(opEqual, arch)
	f.do(opReturn, unix.SECCOMP_RET_KILL_PROCESS)
	f.do(opLoad, offsetCall)
	if arch == unix.AUDIT_ARCH_X86_64 {
		f.when(opAtLeast, foreignCalls)
		f.do(opReturn, refuse(unix.ENOSYS))
	}
	for _, nr := range forbidden {
		f.call(nr, 1)
		f.do(opReturn, refuse(unix.EPERM))
	}
	for _, nr := range absent {
		f.call(nr, 1)
		f.do(opReturn, refuse(unix.ENOSYS))
	}
	f.call(unix.SYS_CLONE, 4)
	f.do(opLoad, offsetArg0)
	f.when(opAnyBit, newNamespaces)
	f.do(opReturn, refuse(unix.EPERM))
	f.do(opReturn, unix.SECCOMP_RET_ALLOW)
	if domains != nil {
		f.call(unix.SYS_SOCKET, uint8(2+2*len(domains))) //nolint:gosec // a handful
		f.do(opLoad, offsetArg0)
		for _, d := range domains {
			f.when(opEqual, d)
			f.do(opReturn, unix.SECCOMP_RET_ALLOW)
		}
		f.do(opReturn, refuse(unix.EACCES))
	}
	f.do(opReturn, unix.SECCOMP_RET_ALLOW)
	return f
}
