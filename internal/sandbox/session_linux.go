package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/rutterhq/rutter"
)

// session is this process's own folder of workspaces. Its lock is held as long
// as the process lives, so that what a killed one left can be told apart.
type session struct {
	dir  string
	lock *os.File
}

// openSession makes the folder, after it has removed what processes that are
// gone left behind.
func openSession(temp string) (*session, error) {
	base := filepath.Join(temp, fmt.Sprintf("rutter-sandbox-%d", os.Geteuid()))
	// As root our programs run as others and must pass through; the names below are random.
	if err := os.Mkdir(base, passable()); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, unavailable("make the folder for workspaces: %w", err)
	}
	if err := trusted(base); err != nil {
		return nil, err
	}
	if err := reachable(temp); err != nil {
		return nil, err
	}
	if err := os.Chmod(base, passable()); err != nil {
		return nil, unavailable("make the folder for workspaces: %w", err)
	}
	removeLeftovers(base)
	for {
		name, err := os.MkdirTemp(base, "lock-")
		if err != nil {
			return nil, unavailable("make the folder for workspaces: %w", err)
		}
		s, err := lockSession(base, strings.TrimPrefix(filepath.Base(name), "lock-"), name)
		if err != nil || s != nil {
			return s, err
		}
	}
}

// lockSession takes the lock, which is a folder, and makes the session's folder;
// nil when somebody has taken the lock for a leftover in the moment between.
func lockSession(base, id, lock string) (*session, error) {
	f, err := tryLock(lock)
	if err != nil {
		return nil, nil //nolint:nilerr // another process looks for leftovers: try again
	}
	if _, err := os.Stat(lock); err != nil {
		_ = f.Close()
		return nil, nil //nolint:nilerr // it was removed
	}
	s := &session{dir: filepath.Join(base, "s-"+id), lock: f}
	if err := os.Mkdir(s.dir, passable()); err != nil {
		_ = f.Close()
		return nil, unavailable("make the folder for workspaces: %w", err)
	}
	if err := os.Chmod(s.dir, passable()); err != nil {
		_ = f.Close()
		return nil, unavailable("make the folder for workspaces: %w", err)
	}
	return s, nil
}

func tryLock(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// removeLeftovers removes the sessions whose processes are gone.
func removeLeftovers(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		id, ok := strings.CutPrefix(e.Name(), "lock-")
		if !ok {
			continue
		}
		f, err := tryLock(filepath.Join(base, e.Name()))
		if err != nil {
			continue // it lives
		}
		wipe(filepath.Join(base, "s-"+id))
		_ = os.Remove(filepath.Join(base, e.Name()))
		_ = f.Close()
	}
}

func (s *session) close() error {
	wipe(s.dir)
	_, statErr := os.Lstat(s.dir)
	err := os.Remove(s.lock.Name())
	_ = s.lock.Close()
	if statErr == nil {
		return rutter.Errorf(rutter.CodeInternal, "the workspaces in %s could not all be removed", s.dir)
	}
	return err
}

// wipe removes a folder that a foreign program could write to. It follows no
// link, and opens what the program has closed to its owner.
func wipe(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) //nolint:gosec // it is a folder
			if err != nil {        // it could not be listed before
				wipe(p)
				return fs.SkipDir
			}
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// trusted refuses a folder that somebody else can change.
func trusted(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return unavailable("look at the folder for workspaces: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return unavailable("%s is there already and is not a folder that only this user can write to: remove it, or set another temporary folder", dir)
	}
	return nil
}

// reachable refuses a folder that the users of our programs cannot pass through.
func reachable(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return unavailable("find the folder for workspaces: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return unavailable("look at the folder for workspaces: %w", err)
		}
		if info.Mode().Perm()&1 == 0 {
			return unavailable("as root, programs run as a user of their own, who cannot pass through %s: set another temporary folder, or allow it (chmod o+x)", dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func passable() fs.FileMode {
	if os.Geteuid() == 0 {
		return 0o711
	}
	return 0o700
}

// account is the user and group, as the machine knows them, that a program runs as.
func account() (uid, gid int) {
	if os.Geteuid() != 0 {
		return os.Geteuid(), os.Getegid()
	}
	return unused("/proc/self/uid_map"), unused("/proc/self/gid_map")
}

const nobody = 65534

// unused picks a user that nobody is: one near the end of those that exist here.
// Each workspace has another, so that none can reach into its neighbour's.
func unused(mapping string) int {
	data, err := os.ReadFile(mapping)
	if err != nil {
		return nobody
	}
	first, last := 0, 0
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		start, err1 := strconv.Atoi(fields[0])
		n, err2 := strconv.Atoi(fields[2])
		if err1 == nil && err2 == nil && start+n > last {
			first, last = start, start+n
		}
	}
	last = min(last, 0x7fff0000)
	first = max(first, last-1<<24, 1<<14)
	if last-first < 2 {
		return nobody
	}
	return first + rand.IntN(last-first-1) //nolint:gosec // it need only differ from the others
}

func unavailable(format string, args ...any) error {
	return rutter.Errorf(rutter.CodeUnavailable, "sandbox: "+format, args...)
}
