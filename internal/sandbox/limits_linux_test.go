package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

func TestLimits(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		for name, tc := range map[string]struct {
			script string
			limits Limits
			want   string
		}{
			"time":                    {"sleep 100", Limits{Time: 200 * time.Millisecond, Grace: 5 * time.Second}, "stopped after 200ms"},
			"time, and it won't end":  {"trap '' TERM; while :; do sleep 0.05; done", Limits{Time: 200 * time.Millisecond, Grace: 200 * time.Millisecond}, "stopped after 200ms"},
			"memory of one process":   {"head -c 400m /dev/zero | tail -n 1 | wc -c", Limits{Memory: 64 << 20}, "more memory than 64 MiB"},
			"memory of many together": {"for i in 1 2 3 4; do (x=$(head -c 30m /dev/zero | tr '\\0' a); sleep 100) & done; wait", Limits{Memory: 64 << 20}, "more memory than 64 MiB"},
			"output":                  {"yes", Limits{Output: 1 << 20}, "more than 1 MiB"},
			"disk":                    {"for i in 1 2 3 4 5 6 7 8 9 10; do head -c 8m /dev/zero > $HOME/f$i; done; sleep 100", Limits{Disk: 32 << 20}, "more than 32 MiB"},
		} {
			t.Run(name, func(t *testing.T) {
				c := bash(tc.script)
				if tc.limits.Time == 0 {
					tc.limits.Time = 90 * time.Second
				}
				c.Limits = tc.limits
				start := time.Now()
				res, err := space(t, s).Run(t.Context(), c)
				if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v (exit %d, %s), want an error with %q", err, res.ExitCode, res.Stderr, tc.want)
				}
				if took := time.Since(start); took > time.Minute {
					t.Errorf("it took %s", took)
				}
			})
		}
		t.Run("disk without names", func(t *testing.T) {
			c := bash("for fd in 3 4 5 6 7; do eval \"exec $fd>f; rm f; head -c 8m /dev/zero >&$fd\"; done; sleep 100")
			c.Limits = Limits{Time: 90 * time.Second, Disk: 32 << 20}
			if _, err := space(t, s).Run(t.Context(), c); rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "more than 32 MiB") {
				t.Errorf("got %v", err)
			}
		})
		t.Run("one file", func(t *testing.T) {
			c := bash("head -c 8m /dev/zero > big; stat -c %s big")
			c.Disk = 4 << 20
			res, err := space(t, s).Run(t.Context(), c)
			if err != nil || strings.TrimSpace(string(res.Stdout)) != strconv.Itoa(4<<20) {
				t.Errorf("the file has %s bytes, %v", res.Stdout, err)
			}
		})
		t.Run("processes", func(t *testing.T) {
			c := bash("for i in $(seq 300); do sleep 5 & done 2>/dev/null; jobs -r | wc -l")
			c.Args = []string{"sh", "-c", "n=0; for i in $(seq 300); do (sleep 5) 2>/dev/null & done; ls -d /proc/[0-9]* 2>/dev/null | wc -l; echo done"}
			c.Processes = 40
			res, err := space(t, s).Run(t.Context(), c)
			if err != nil || strings.Contains(string(res.Stdout), "done") {
				t.Errorf("300 processes were started where 40 are allowed: %q, %v", res.Stdout, err)
			}
		})
		t.Run("fork bomb", func(t *testing.T) {
			c := bash(":(){ :|:& };: " + nap(0) + "; sleep 10")
			c.Limits = Limits{Time: 400 * time.Millisecond, Grace: 200 * time.Millisecond, Processes: 50}
			_, err := space(t, s).Run(t.Context(), c)
			if rutter.CodeOf(err) != rutter.CodeInvalid {
				t.Errorf("got %v", err)
			}
			if n := processes(t, nap(0)); n > 0 {
				t.Errorf("%d of its processes live", n)
			}
		})
	})
}

func nap(seconds int) string { return fmt.Sprintf("%d.%d", seconds, 10_000_000+os.Getpid()) }

func TestNothingSurvives(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		res, err := space(t, s).Run(t.Context(), bash(strings.ReplaceAll("(setsid sleep LONG >/dev/null 2>&1 &) ; (sleep LONG &); nohup sleep LONG & sleep 0.1; echo out", "LONG", nap(9876))))
		if err != nil || string(res.Stdout) != "out\n" {
			t.Errorf("got %q, %v", res.Stdout, err)
		}
		if n := processes(t, nap(9876)); n > 0 {
			t.Errorf("%d processes live", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		if _, err := space(t, s).Run(ctx, bash("setsid sleep "+nap(9876)+" & sleep "+nap(9876))); rutter.CodeOf(err) != rutter.CodeUnavailable {
			t.Errorf("a run that is not wanted any more ends with %v", err)
		}
		if n := processes(t, nap(9876)); n > 0 {
			t.Errorf("%d processes live after a cancellation", n)
		}
	})
}

func processes(t *testing.T, text string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), text) && !strings.Contains(string(data), "test.run") {
			n++
		}
	}
	return n
}
