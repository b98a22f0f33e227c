package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

func TestAllAskersShareOneLookupAndOneFetch(t *testing.T) {
	const askers = 2000
	tests := []struct {
		age     time.Duration
		lookups int64
		reason  string
	}{
		{time.Minute, 1, "whoever comes late takes the answer that is there"},
		{0, 2, "an asker that the machine was slow to start comes after the look-up began: it needs the next, and all such share that"},
	}
	for _, tt := range tests {
		o := newOrigin(t)
		want := o.commit("main", "f", "1")
		f := newFetcher(t, Options{})
		var start, done sync.WaitGroup
		start.Add(1)
		errs := make(chan error, askers)
		for range askers {
			done.Go(func() {
				start.Wait()
				s, err := f.Snapshot(t.Context(), rutter.Repo{URL: o.url(), Revision: "main"}, rutter.ResolveOptions{MaxAge: int64(tt.age)})
				if err == nil && s.Revision() != want {
					err = fmt.Errorf("got %s", s.Revision())
				}
				errs <- err
			})
		}
		start.Done()
		done.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		if s := f.Stats(); s.Lookups > tt.lookups || s.Fetches != 1 {
			t.Errorf("%d askers with age %s made %d look-ups and %d fetches, want at most %d and 1 (%s)", askers, tt.age, s.Lookups, s.Fetches, tt.lookups, tt.reason)
		}
	}
}

func TestMaxAge(t *testing.T) {
	o := newOrigin(t)
	first := o.commit("main", "f", "1")
	f := newFetcher(t, Options{})
	ask := func(age time.Duration) string {
		t.Helper()
		commit, err := f.Resolve(t.Context(), rutter.Repo{URL: o.url(), Revision: "main"}, rutter.ResolveOptions{MaxAge: int64(age)})
		if err != nil {
			t.Fatal(err)
		}
		return commit
	}
	ask(0)
	second := o.commit("main", "f", "2")
	if got := ask(time.Hour); got != first || f.Stats().Lookups != 1 {
		t.Errorf("an answer from memory is %s after %d look-ups, want %s after 1", got, f.Stats().Lookups, first)
	}
	if got := ask(0); got != second || f.Stats().Lookups != 2 {
		t.Errorf("a fresh answer is %s after %d look-ups, want %s after 2", got, f.Stats().Lookups, second)
	}
	time.Sleep(20 * time.Millisecond)
	if ask(10 * time.Millisecond); f.Stats().Lookups != 3 {
		t.Errorf("%d look-ups; an answer older than asked for was used", f.Stats().Lookups)
	}
}

// TestPushBeforeAskIsSeen holds a look-up whose answer is already known back,
// pushes, and asks: the running answer must not be taken for the new asker's.
func TestPushBeforeAskIsSeen(t *testing.T) {
	o := newOrigin(t)
	first := o.commit("main", "f", "1")
	dir := t.TempDir()
	answered, release := filepath.Join(dir, "answered"), filepath.Join(dir, "release")
	f := newFetcher(t, Options{Git: wrapGit(t, `if test "$1" = ls-remote && test ! -e `+answered+`; then
out=$("$REAL" "$@"); touch `+answered+`
while test ! -e `+release+`; do sleep 0.01; done
printf '%s\n' "$out"; exit 0; fi`)})
	early := make(chan string, 1)
	go func() {
		commit, err := resolve(t.Context(), f, o.url(), "main")
		early <- commit + fmt.Sprint(err)
	}()
	waitFor(t, answered)
	second := o.commit("main", "f", "2")
	late := make(chan string, 1)
	go func() {
		commit, err := resolve(t.Context(), f, o.url(), "main")
		late <- commit + fmt.Sprint(err)
	}()
	select {
	case got := <-late:
		t.Errorf("the second asker was answered (%s) by a look-up from before", got)
	case <-time.After(50 * time.Millisecond):
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-early; got != first+"<nil>" {
		t.Errorf("the first asker got %s, want %s", got, first)
	}
	if got := <-late; got != second+"<nil>" {
		t.Errorf("the second asker got %s, want the pushed %s", got, second)
	}
}

func waitFor(t *testing.T, path string) {
	t.Helper()
	for range 1000 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s did not appear", path)
}

func TestCanceledAskerLeavesOthersAlone(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	gate := filepath.Join(t.TempDir(), "gate")
	f := newFetcher(t, Options{Git: wrapGit(t, `if test "$1" = ls-remote; then while test ! -e `+gate+`; do sleep 0.01; done; fi`)})
	ctx, cancel := context.WithCancel(t.Context())
	gone, stays := make(chan error, 1), make(chan error, 1)
	go func() { _, err := resolve(ctx, f, o.url(), "main"); gone <- err }()
	go func() { _, err := resolve(t.Context(), f, o.url(), "main"); stays <- err }()
	time.Sleep(60 * time.Millisecond)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) || rutter.CodeOf(err) != rutter.CodeUnavailable {
		t.Errorf("a canceled asker gets %v", err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-stays; err != nil {
		t.Errorf("the other asker gets %v", err)
	}
}

func TestHangingServerEnds(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	pid := filepath.Join(t.TempDir(), "pid")
	f := newFetcher(t, Options{LookupTimeout: 150 * time.Millisecond, Git: wrapGit(t, `if test "$1" = ls-remote; then sleep 60 & echo $! > `+pid+`; wait; fi`)})
	_, err := resolve(t.Context(), f, o.url(), "main")
	if rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "in time") {
		t.Errorf("a server that does not answer: %v", err)
	}
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		state, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("git's child still runs: the process group was not ended")
}

func TestMirroredCommitNeedsNoRemote(t *testing.T) {
	o := newOrigin(t)
	commit := o.commit("main", "f", "1")
	dir := t.TempDir()
	f := newFetcher(t, Options{Dir: dir})
	snap(t, f, o.url(), "main")
	snap(t, f, o.url(), commit)
	if s := f.Stats(); s.Fetches != 1 || s.Lookups != 1 {
		t.Errorf("%+v, want one of each", s)
	}
	if err := os.Rename(o.bare, o.bare+".away"); err != nil {
		t.Fatal(err)
	}
	again := newFetcher(t, Options{Dir: dir})
	r, err := again.remote(rutter.Repo{URL: o.url()})
	if err != nil {
		t.Fatal(err)
	}
	if r.mirror.dir != mirrorOf(t, f).dir {
		t.Fatal("another process looks for the mirror somewhere else")
	}
	wantFile(t, snap(t, again, o.url(), commit), "f", "1")
	if s := again.Stats(); s.Fetches != 0 {
		t.Errorf("a commit that is there was fetched again: %+v", s)
	}
	_, err = resolve(t.Context(), again, o.url(), "main")
	if rutter.CodeOf(err) != rutter.CodeNotFound || !strings.Contains(err.Error(), o.url()) {
		t.Errorf("a branch of a repository that is gone: %v", err)
	}
}

func TestForcePushAndDeletedBranch(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("main", "f", "base")
	o.commit("work", "f", "first", "only-old", "x")
	f := newFetcher(t, Options{KeepCommits: time.Nanosecond})
	old := snap(t, f, o.url(), "work")
	o.git("-C", o.work, "reset", "--quiet", "--hard", base)
	want := o.commit("work", "f", "rewritten")
	o.git("-C", o.bare, "reflog", "expire", "--expire=now", "--all")
	o.git("-C", o.bare, "gc", "--quiet", "--prune=now")
	fresh := snap(t, f, o.url(), "work")
	if fresh.Revision() != want {
		t.Errorf("after a force push the branch is at %s, want %s", fresh.Revision(), want)
	}
	wantFile(t, fresh, "f", "rewritten")
	o.git("-C", o.work, "push", "--quiet", "origin", ":work")
	if _, err := resolve(t.Context(), f, o.url(), "work"); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Errorf("a deleted branch: %v", err)
	}
	tidy(t, f)
	f.blobs, f.trees = newCache[[]byte](1<<20), newCache[*tree](1<<20)
	wantFile(t, old, "f", "first")
	wantFile(t, old, "only-old", "x")
	wantFile(t, fresh, "f", "rewritten")
	_, err := f.Snapshot(t.Context(), rutter.Repo{URL: o.url(), Revision: strings.Repeat("e", 40)}, rutter.ResolveOptions{})
	if rutter.CodeOf(err) != rutter.CodeNotFound || !strings.Contains(err.Error(), "has no commit") {
		t.Errorf("a commit that is not there: %v", err)
	}
	runtime.KeepAlive(old)
}

func tidy(t *testing.T, f *Fetcher) {
	t.Helper()
	m := mirrorOf(t, f)
	m.disk.Lock()
	defer m.disk.Unlock()
	if err := m.tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestTidyLetsUnreadCommitsGo(t *testing.T) {
	o := newOrigin(t)
	f := newFetcher(t, Options{KeepCommits: time.Nanosecond})
	var commits []string
	for i := range 12 {
		commits = append(commits, o.commit("main", "f", strconv.Itoa(i)))
		snap(t, f, o.url(), "main")
	}
	runtime.GC()
	runtime.GC()
	tidy(t, f)
	m := mirrorOf(t, f)
	if n := len(m.pins); n == 0 || n > 6 {
		t.Errorf("%d commits are kept, want the last few", n)
	}
	o.git("--git-dir", m.dir, "fsck", "--full", "--strict")
	wantFile(t, snap(t, f, o.url(), commits[0]), "f", "0")
	wantFile(t, snap(t, f, o.url(), "main"), "f", "11")
	if f.Stats().Rebuilds != 0 {
		t.Error("tidying up damaged the mirror")
	}
}

func TestCommitBehindTheTips(t *testing.T) {
	o := newOrigin(t)
	first := o.commit("main", "f", "1")
	o.commit("main", "f", "2")
	f := newFetcher(t, Options{})
	wantFile(t, snap(t, f, o.url(), first), "f", "1")
	wantFile(t, snap(t, f, o.url(), "main"), "f", "2")
}

// TestServerThatServesNoSingleCommits speaks the old protocol, where only tips
// may be asked for.
func TestServerThatServesNoSingleCommits(t *testing.T) {
	o := newOrigin(t)
	first := o.commit("main", "f", "1")
	o.commit("main", "f", "2")
	o.commit("main", "f", "3")
	f := newFetcher(t, Options{Git: wrapGit(t, `GIT_CONFIG_VALUE_0=0; export GIT_CONFIG_VALUE_0`)})
	if base()[0][0] != "protocol.version" {
		t.Fatal("the protocol's version is no longer the first setting")
	}
	wantFile(t, snap(t, f, o.url(), "main"), "f", "3")
	wantFile(t, snap(t, f, o.url(), first), "f", "1")
	o.commit("main", "f", "4")
	wantFile(t, snap(t, f, o.url(), "main"), "f", "4")
}

func TestKilledFetchIsRepaired(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	flag := filepath.Join(t.TempDir(), "kill")
	f := newFetcher(t, Options{Git: wrapGit(t, `if test "$1" = fetch && test -e `+flag+`; then
touch $GIT_DIR/shallow.lock $GIT_DIR/packed-refs.lock $GIT_DIR/objects/pack/tmp_pack_half $GIT_DIR/refs/rutter/x.lock
kill -9 $$; fi`)})
	old := snap(t, f, o.url(), "main")
	o.commit("main", "f", "2")
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Snapshot(t.Context(), rutter.Repo{URL: o.url(), Revision: "main"}, rutter.ResolveOptions{}); rutter.CodeOf(err) != rutter.CodeUnavailable {
		t.Errorf("a git that was killed: %v", err)
	}
	wantFile(t, old, "f", "1")
	if err := os.Remove(flag); err != nil {
		t.Fatal(err)
	}
	// The same locks as a process leaves that was killed itself.
	m := mirrorOf(t, f)
	for _, name := range []string{"shallow.lock", "packed-refs.lock", "config.lock"} {
		if err := os.WriteFile(filepath.Join(m.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	next := newFetcher(t, Options{Dir: f.opts.Dir})
	wantFile(t, snap(t, next, o.url(), "main"), "f", "2")
	if next.Stats().Rebuilds != 0 {
		t.Error("stale locks alone made the mirror be rebuilt")
	}
	left, _ := filepath.Glob(filepath.Join(m.dir, "objects/pack/tmp_*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDamagedMirrorIsFetchedAnew(t *testing.T) {
	tests := []struct {
		name   string
		break_ func(t *testing.T, dir string)
	}{
		{"HEAD is gone", func(t *testing.T, dir string) { remove(t, dir, "HEAD") }},
		{"objects are gone", func(t *testing.T, dir string) { remove(t, dir, "objects") }},
		{"objects are empty", func(t *testing.T, dir string) { rewrite(t, dir, "") }},
		{"objects are garbage", func(t *testing.T, dir string) { rewrite(t, dir, "garbage") }},
		{"config is garbage", func(t *testing.T, dir string) { put(t, dir, "config", "[[[") }},
		{"packed-refs is garbage", func(t *testing.T, dir string) { put(t, dir, "packed-refs", "garbage\n") }},
		{"the folder is empty", func(t *testing.T, dir string) { remove(t, dir, "."); put(t, dir, "x", "") }},
		{"the folder is gone", func(t *testing.T, dir string) { remove(t, dir, ".") }},
	}
	for _, tt := range tests {
		for _, restart := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, restart %v", tt.name, restart), func(t *testing.T) {
				o := newOrigin(t)
				o.commit("main", "f", "1", "d/g", "1")
				f := newFetcher(t, Options{})
				wantFile(t, snap(t, f, o.url(), "main"), "f", "1")
				m := mirrorOf(t, f)
				tt.break_(t, m.dir)
				o.commit("main", "h", "2")
				if restart {
					f = newFetcher(t, Options{Dir: f.opts.Dir})
				} else {
					f.blobs, f.trees = newCache[[]byte](1<<20), newCache[*tree](1<<20)
					m.objects.restart()
				}
				// A read may be the first to see the damage; the next Snapshot repairs it.
				if s, err := f.Snapshot(t.Context(), rutter.Repo{URL: o.url(), Revision: "main"}, rutter.ResolveOptions{}); err == nil {
					_, _ = s.ReadFile("f")
					_, _ = s.ReadFile("d/g")
				}
				s := snap(t, f, o.url(), "main")
				wantFile(t, s, "f", "1")
				wantFile(t, s, "d/g", "1")
				wantFile(t, s, "h", "2")
			})
		}
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Clean(filepath.Join(dir, name))); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rewrite overwrites every loose object and pack.
func rewrite(t *testing.T, dir, content string) {
	t.Helper()
	n := 0
	for _, pattern := range []string{"objects/??/*", "objects/pack/*.pack"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, path := range found {
			_ = os.Chmod(path, 0o600)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	if n == 0 {
		t.Fatal("there are no objects")
	}
}

func TestDamageWhileTheRemoteIsAway(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1", "g", "2")
	f := newFetcher(t, Options{})
	s := snap(t, f, o.url(), "main")
	wantFile(t, s, "f", "1")
	m := mirrorOf(t, f)
	m.damaged.Store(true)
	if err := os.Rename(o.bare, o.bare+".away"); err != nil {
		t.Fatal(err)
	}
	wantFile(t, snap(t, f, o.url(), s.Revision()), "g", "2")
	if err := os.Rename(o.bare+".away", o.bare); err != nil {
		t.Fatal(err)
	}
	wantFile(t, snap(t, f, o.url(), s.Revision()), "g", "2")
	if m.damaged.Load() {
		t.Error("the mirror is still said to be damaged")
	}
}

func TestDeadReaderIsReplaced(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1", "g", "2")
	f := newFetcher(t, Options{})
	s := snap(t, f, o.url(), "main")
	wantFile(t, s, "f", "1")
	m := mirrorOf(t, f)
	m.objects.mu.Lock()
	for _, pipes := range m.objects.idle {
		for _, p := range pipes {
			_ = p.cmd.Process.Kill()
		}
	}
	m.objects.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	wantFile(t, s, "g", "2")
	if m.damaged.Load() {
		t.Error("a reader that was killed counts as damage")
	}
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("a small file system cannot be mounted here (needs root): %s", out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	o := newOrigin(t)
	o.commit("main", "f", "1")
	f := newFetcher(t, Options{Dir: dir})
	old := snap(t, f, o.url(), "main")
	noise := make([]byte, 4<<20)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		noise[i] = byte(x)
	}
	o.commit("main", "big", string(noise))
	_, err := f.Snapshot(t.Context(), rutter.Repo{URL: o.url(), Revision: "main"}, rutter.ResolveOptions{})
	if rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("a full disk: %v", err)
	}
	f.blobs, f.trees = newCache[[]byte](1<<20), newCache[*tree](1<<20)
	wantFile(t, old, "f", "1")
	o.git("-C", o.work, "rm", "--quiet", "big")
	o.commit("main", "f", "2")
	wantFile(t, snap(t, f, o.url(), "main"), "f", "2")
}

func TestFetchBringsOnlyWhatChanged(t *testing.T) {
	o := newOrigin(t)
	var pairs []string
	for i := range 300 {
		pairs = append(pairs, fmt.Sprintf("apps/%03d/values.yaml", i), fmt.Sprintf("n: %d\n", i))
	}
	o.commit("main", pairs...)
	f := newFetcher(t, Options{})
	snap(t, f, o.url(), "main")
	m := mirrorOf(t, f)
	objects := func() int {
		return len(strings.Fields(o.git("--git-dir", m.dir, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")))
	}
	before := objects()
	o.commit("main", "apps/007/values.yaml", "changed\n")
	snap(t, f, o.url(), "main")
	// The commit, the file, and the three folders above it.
	if n := objects() - before; n != 5 {
		t.Errorf("a push of one file brought %d objects, want 5", n)
	}
}

func TestKilledProcessLeavesNoKeys(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "sessions", "s-dead")
	put(t, filepath.Join(dead, "tmp", "login-1"), "id", "PRIVATE KEY")
	put(t, dead, "lock", "")
	alive := newFetcher(t, Options{Dir: dir})
	if _, err := os.Stat(dead); err == nil {
		t.Error("the files of a process that was killed are still there")
	}
	newFetcher(t, Options{Dir: dir})
	if _, err := os.Stat(alive.git.tmp); err != nil {
		t.Error("the files of a process that lives are gone")
	}
}

func TestTwoProcessesShareAFolder(t *testing.T) {
	o := newOrigin(t)
	dir := t.TempDir()
	a, b := newFetcher(t, Options{Dir: dir}), newFetcher(t, Options{Dir: dir})
	var wg sync.WaitGroup
	for i := range 5 {
		o.commit("main", "f", strconv.Itoa(i))
		for _, f := range []*Fetcher{a, b} {
			wg.Go(func() {
				s, err := f.Snapshot(t.Context(), rutter.Repo{URL: o.url(), Revision: "main"}, rutter.ResolveOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				wantFile(t, s, "f", strconv.Itoa(i))
			})
		}
		wg.Wait()
	}
}

func TestTidyHappensByItself(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "0")
	f := newFetcher(t, Options{KeepCommits: time.Hour})
	snap(t, f, o.url(), "main")
	m := mirrorOf(t, f)
	m.disk.Lock()
	m.since = maintainEvery
	m.disk.Unlock()
	o.commit("main", "f", "1")
	s := snap(t, f, o.url(), "main")
	for range 200 {
		m.disk.Lock()
		since := m.since
		m.disk.Unlock()
		if since == 0 {
			if packs, _ := filepath.Glob(filepath.Join(m.dir, "objects/pack/*.pack")); len(packs) == 0 {
				t.Error("nothing was packed")
			}
			f.blobs, f.trees = newCache[[]byte](1<<20), newCache[*tree](1<<20)
			wantFile(t, s, "f", "1")
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the mirror was not tidied up")
}

func TestMissingCommitIsNotAskedForByEveryAsker(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	f := newFetcher(t, Options{})
	ask := func(age int64) int64 {
		t.Helper()
		_, err := f.Snapshot(t.Context(), rutter.Repo{URL: o.url(), Revision: strings.Repeat("e", 40)}, rutter.ResolveOptions{MaxAge: age})
		if rutter.CodeOf(err) != rutter.CodeNotFound {
			t.Errorf("a commit that is not there: %v", err)
		}
		return f.Stats().Fetches
	}
	first := ask(1 << 60)
	if n := ask(1 << 60); n != first {
		t.Errorf("the second asker made %d more fetches", n-first)
	}
	if n := ask(0); n == first {
		t.Error("who asks for a fresh answer got an old one")
	}
}
