package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// How often the warden looks at memory, and at the disk.
const (
	memoryEvery = 50 * time.Millisecond
	diskEvery   = 10 // times memoryEvery
)

// watch stops the run when everything in it together uses too much memory or
// disk. The limits that the kernel keeps are for one process or one file.
func (w *warden) watch(done <-chan struct{}) {
	base, err := usage(w.spec.folders())
	if err != nil {
		w.stop("its folder cannot be watched: " + err.Error())
		return
	}
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if used := memory(descendants(w.self)); used > w.spec.Memory && memoryExactly(descendants(w.self)) > w.spec.Memory {
			w.stop("it used more memory than " + size(w.spec.Memory))
			return
		}
		if n%diskEvery != 0 {
			continue
		}
		used, err := usage(w.spec.folders())
		used += unlinked(descendants(w.self))
		switch {
		case err != nil:
			w.stop("it closed a folder to those who watch how much it writes: " + err.Error())
			return
		case used-base > w.spec.Disk:
			w.stop("it wrote more than " + size(w.spec.Disk) + " to the disk")
			return
		}
	}
}

// process is one that /proc shows.
type process struct {
	pid, parent int
}

// descendants are all processes below one.
func descendants(of int) []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []process
	for _, e := range entries {
		if pid := number(e.Name()); pid > 0 {
			if parent, ok := parentOf(pid); ok {
				all = append(all, process{pid: pid, parent: parent})
			}
		}
	}
	var out []process
	for below := map[int]bool{of: true}; ; {
		grew := false
		for _, p := range all {
			if below[p.parent] && !below[p.pid] {
				below[p.pid], grew = true, true
				out = append(out, p)
			}
		}
		if !grew {
			return out
		}
	}
}

// parentOf returns the parent of a process that is not dead yet.
func parentOf(pid int) (int, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// A name may hold anything but ends with the last parenthesis.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 2 || string(fields[0]) == "Z" || string(fields[0]) == "X" {
		return 0, false
	}
	return number(string(fields[1])), true
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// memory sums up what processes hold; pages that they share count for each.
func memory(ps []process) int64 {
	var sum int64
	for _, p := range ps {
		sum += fieldsOf(p.pid, "status", "RssAnon:", "RssShmem:")
	}
	return sum
}

// memoryExactly counts shared pages once. It takes the kernel longer.
func memoryExactly(ps []process) int64 {
	var sum int64
	for _, p := range ps {
		n := fieldsOf(p.pid, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:")
		if n == 0 {
			n = fieldsOf(p.pid, "status", "RssAnon:", "RssShmem:")
		}
		sum += n
	}
	return sum
}

// fieldsOf sums up fields in kB of a file of a process, in bytes.
func fieldsOf(pid int, file string, names ...string) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0
	}
	var sum int64
	for line := range strings.Lines(string(data)) {
		for _, name := range names {
			if rest, ok := strings.CutPrefix(line, name); ok {
				sum += int64(number(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))) << 10
			}
		}
	}
	return sum
}

// usage is the disk space below folders.
func usage(folders []string) (int64, error) {
	var sum int64
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			}
			if info, err := d.Info(); err == nil {
				if st, ok := info.Sys().(*syscall.Stat_t); ok {
					sum += st.Blocks * 512
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return sum, nil
}

// unlinked is the disk space of files that processes hold open and that have
// no name any more.
func unlinked(ps []process) int64 {
	type file struct{ dev, ino uint64 }
	seen := map[file]bool{}
	var sum int64
	for _, p := range ps {
		dir := fmt.Sprintf("/proc/%d/fd/", p.pid)
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			var st syscall.Stat_t
			if syscall.Stat(dir+e.Name(), &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG || st.Nlink > 0 {
				continue
			}
			if f := (file{st.Dev, st.Ino}); !seen[f] {
				seen[f] = true
				sum += st.Blocks * 512
			}
		}
	}
	return sum
}
