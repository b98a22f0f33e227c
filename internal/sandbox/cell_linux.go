package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// cell gives up all rights and becomes the program. It returns only when that
// is not possible, after it has said why.
func cell() {
	unix.CloseOnExec(specFD)
	unix.CloseOnExec(statusFD)
	var s spec
	fail := func(r report) { _ = json.NewEncoder(os.NewFile(statusFD, "status")).Encode(r) } //nolint:errchkjson // without a reader there is nobody to tell
	if err := json.NewDecoder(os.NewFile(specFD, "spec")).Decode(&s); err != nil {
		fail(report{Setup: "read what to run: " + err.Error()})
		return
	}
	if err := os.Chdir(s.Dir); err != nil {
		fail(report{Missing: "the folder to run in is not there: " + err.Error()})
		return
	}
	unix.Umask(0o022)
	// The warden must get to look, however busy this is; so must everything else here.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 5)
	// Whatever the program may inherit, it is the standard three.
	if err := unix.CloseRange(statusFD+1, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		fail(report{Setup: "close files: " + err.Error()})
		return
	}
	for _, step := range []struct {
		what string
		do   func(spec) error
	}{{"give up capabilities", dropCapabilities}, {"enter Landlock", restrict}, {"set limits", setLimits}, {"filter system calls", filterCalls}} {
		if err := step.do(s); err != nil {
			fail(report{Setup: step.what + ": " + err.Error()})
			return
		}
	}
	fail(become(s))
}

// become runs the program in our place.
func become(s spec) report {
	var folders []string
	for _, kv := range s.Env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			folders = filepath.SplitList(v)
		}
	}
	found := error(nil)
	for _, p := range candidates(s.Args[0], s.Dir, folders) {
		err := syscall.Exec(p, s.Args, s.Env)
		if found == nil || !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.EACCES) {
			found = err
		}
	}
	if found == nil || errors.Is(found, syscall.ENOENT) {
		return report{Missing: fmt.Sprintf("%s: there is no such program in %s: install it, or name its folder to rutter", s.Args[0], strings.Join(folders, ":"))}
	}
	return report{Missing: fmt.Sprintf("%s: %v", s.Args[0], found)}
}

// dropCapabilities gives up every privilege for good, that of getting new ones
// by running a program included.
func dropCapabilities(spec) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("rule out new ones: %w", err)
	}
	for c := uintptr(0); c <= 63; c++ {
		// Outside of a namespace of ours we may not, and need not: nothing can add one any more.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // the last one that there is
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear those that programs inherit: %w", err)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("drop our own: %w", err)
	}
	return nil
}

// setLimits sets what the kernel watches for each process.
func setLimits(s spec) error {
	processes := uint64(s.Processes) //nolint:gosec // filled made it positive
	if !s.Namespaces && !s.OwnUser {
		processes += threads(os.Geteuid()) // all of the user's count
	}
	for _, l := range []struct {
		which int
		value uint64
	}{
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_NOFILE, uint64(s.OpenFiles)}, //nolint:gosec // filled made it positive
		{unix.RLIMIT_FSIZE, uint64(s.Disk)},       //nolint:gosec // likewise
		{unix.RLIMIT_CPU, uint64(s.CPU)},          //nolint:gosec // likewise
		{unix.RLIMIT_NPROC, processes},
		{unix.RLIMIT_MEMLOCK, 64 << 10},
		{unix.RLIMIT_MSGQUEUE, 0},
		// Address space is not memory: a runtime with WebAssembly reserves 10 GiB and
		// uses little. The warden watches what is used; this only ends what is absurd.
		{unix.RLIMIT_AS, 2*uint64(s.Memory) + 16<<30}, //nolint:gosec // likewise
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.which, &now); err != nil {
			return fmt.Errorf("read limit %d: %w", l.which, err)
		}
		v := min(l.value, now.Max)
		if err := unix.Prlimit(0, l.which, &unix.Rlimit{Cur: v, Max: v}, nil); err != nil {
			return fmt.Errorf("set limit %d to %d: %w", l.which, v, err)
		}
	}
	return nil
}

// threads counts those of a user's processes.
func threads(uid int) uint64 {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	var n uint64
	for _, e := range entries {
		if number(e.Name()) == 0 {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+e.Name(), &st) != nil || int(st.Uid) != uid {
			continue
		}
		if tasks, err := os.ReadDir("/proc/" + e.Name() + "/task"); err == nil {
			n += uint64(len(tasks))
		}
	}
	return n
}
