package fresh

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rutterhq/rutter"
)

// counted is a question that counts how often it is put.
func counted(n *atomic.Int64, takes time.Duration, err error) Question[int64] {
	return func(ctx context.Context, _ int64, _ bool) (int64, error) {
		v := n.Add(1)
		select {
		case <-time.After(takes):
			return v, err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func TestAnswer(t *testing.T) {
	tests := []struct {
		name   string
		reason string
		do     func(t *testing.T, a *Answer[int64], n *atomic.Int64)
		want   int64
	}{
		{"all at once", "they share one question", func(t *testing.T, a *Answer[int64], n *atomic.Int64) {
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					if v, err := a.Ask(t.Context(), 0, counted(n, time.Second, nil)); v != 1 || err != nil {
						t.Errorf("%d, %v", v, err)
					}
				})
			}
			all.Wait()
		}, 1},
		{"old enough", "an answer of before is used", func(t *testing.T, a *Answer[int64], n *atomic.Int64) {
			_, _ = a.Ask(t.Context(), 0, counted(n, time.Second, nil))
			time.Sleep(30 * time.Second)
			_, _ = a.Ask(t.Context(), time.Minute, counted(n, time.Second, nil))
		}, 1},
		{"too old", "", func(t *testing.T, a *Answer[int64], n *atomic.Int64) {
			_, _ = a.Ask(t.Context(), 0, counted(n, time.Second, nil))
			time.Sleep(2 * time.Minute)
			_, _ = a.Ask(t.Context(), time.Minute, counted(n, time.Second, nil))
		}, 2},
		{"while one runs", "it shows the remote as it was before they asked", func(t *testing.T, a *Answer[int64], n *atomic.Int64) {
			var all sync.WaitGroup
			all.Go(func() { _, _ = a.Ask(t.Context(), 0, counted(n, time.Second, nil)) })
			time.Sleep(500 * time.Millisecond)
			for range 10 {
				all.Go(func() {
					if v, _ := a.Ask(t.Context(), 0, counted(n, time.Second, nil)); v != 2 {
						t.Errorf("got the answer to question %d", v)
					}
				})
			}
			all.Go(func() {
				if v, _ := a.Ask(t.Context(), time.Minute, counted(n, time.Second, nil)); v != 1 {
					t.Errorf("the one that runs was good enough; got %d", v)
				}
			})
			all.Wait()
		}, 2},
		{"a failure", "stands in for an answer for a moment only", func(t *testing.T, a *Answer[int64], n *atomic.Int64) {
			down := rutter.Errorf(rutter.CodeUnavailable, "down")
			for range 5 {
				_, err := a.Ask(t.Context(), time.Hour, counted(n, 0, down))
				if !errors.Is(err, down) {
					t.Error(err)
				}
			}
			time.Sleep(FailureAge + time.Second)
			_, _ = a.Ask(t.Context(), time.Hour, counted(n, 0, down))
		}, 2},
		{"a refused login", "takes the older answer with it, and is not sent by every asker", func(t *testing.T, a *Answer[int64], n *atomic.Int64) {
			_, _ = a.Ask(t.Context(), 0, counted(n, 0, nil))
			time.Sleep(time.Second)
			_, _ = a.Ask(t.Context(), 0, counted(n, 0, rutter.Errorf(rutter.CodeForbidden, "no")))
			if _, ok := a.Last(); ok {
				t.Error("the answer of before was kept")
			}
			if _, err := a.Ask(t.Context(), time.Hour, counted(n, 0, nil)); rutter.CodeOf(err) != rutter.CodeForbidden {
				t.Error(err)
			}
			time.Sleep(time.Second)
			if v, err := a.Ask(t.Context(), 0, counted(n, 0, nil)); v != 3 || err != nil {
				t.Errorf("who wants to know now: %d, %v", v, err)
			}
		}, 3},
		{"nobody waits", "the question is cancelled, and the next one is put", func(t *testing.T, a *Answer[int64], n *atomic.Int64) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := a.Ask(ctx, 0, counted(n, time.Hour, nil)); rutter.CodeOf(err) != rutter.CodeUnavailable {
				t.Error(err)
			}
			if v, err := a.Ask(t.Context(), time.Hour, counted(n, 0, nil)); v != 2 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
		}, 2},
		{"a panic", "ends as an error of that answer", func(t *testing.T, a *Answer[int64], n *atomic.Int64) {
			_, err := a.Ask(t.Context(), 0, func(context.Context, int64, bool) (int64, error) {
				return make([]int64, 1)[n.Add(1)], nil
			})
			if rutter.CodeOf(err) != rutter.CodeInternal {
				t.Error(err)
			}
		}, 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var a Answer[int64]
				var n atomic.Int64
				tc.do(t, &a, &n)
				synctest.Wait()
				if n.Load() != tc.want {
					t.Errorf("asked %d times, want %d: %s", n.Load(), tc.want, tc.reason)
				}
			})
		})
	}
}

func TestFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Flight[string]
		var n, cancelled atomic.Int64
		work := func(err error) func(context.Context) (string, error) {
			return func(ctx context.Context) (string, error) {
				n.Add(1)
				select {
				case <-time.After(time.Second):
					return "made", err
				case <-ctx.Done():
					cancelled.Add(1)
					return "", ctx.Err()
				}
			}
		}
		expect := func(what string, want int64) {
			t.Helper()
			if got := n.Swap(0); got != want {
				t.Errorf("%s: worked %d times, want %d", what, got, want)
			}
		}
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if v, err := f.Do(t.Context(), "k", 0, work(nil)); v != "made" || err != nil {
					t.Errorf("%q, %v", v, err)
				}
			})
		}
		all.Wait()
		expect("together", 1)
		_, _ = f.Do(t.Context(), "k", time.Hour, work(nil))
		expect("success is not remembered", 1)

		bad := rutter.Errorf(rutter.CodeInvalid, "bad")
		for range 3 {
			if _, err := f.Do(t.Context(), "bad", time.Hour, work(bad)); !errors.Is(err, bad) {
				t.Error(err)
			}
		}
		expect("a failure is remembered", 1)
		_, _ = f.Do(t.Context(), "bad", 0, work(bad))
		expect("who wants to know now", 1)
		time.Sleep(FailureAge + time.Second)
		_, _ = f.Do(t.Context(), "bad", time.Hour, work(nil))
		expect("an old failure", 1)
		for range 2 {
			_, _ = f.Do(t.Context(), "login", time.Hour, work(rutter.Errorf(rutter.CodeForbidden, "no")))
		}
		expect("a refused login is not sent by every asker", 1)

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, _ = f.Do(ctx, "k", 0, work(nil))
		synctest.Wait()
		if cancelled.Load() != 1 {
			t.Error("work that nobody waits for went on")
		}
		if v, err := f.Do(t.Context(), "k", time.Hour, work(nil)); v != "made" || err != nil {
			t.Errorf("after it was cancelled: %q, %v", v, err)
		}
	})
}

func TestTable(t *testing.T) {
	table := Table[*int64]{Most: 3, Budget: 100, Cost: func(v *int64) int64 { return *v }}
	get := func(key string) *int64 { return table.Get(key, func() *int64 { return new(int64) }) }
	first := get("0")
	for i := range 3 {
		get(strconv.Itoa(i))
	}
	if get("0") != first {
		t.Error("one of the last three was dropped")
	}
	get("3")
	if len(table.items) != 3 {
		t.Errorf("%d kept", len(table.items))
	}
	if *get("0") = 90; get("0") != first {
		t.Error("what was used last was dropped")
	}
	*get("3") = 20
	table.Shrink()
	if len(table.items) != 1 || get("3") == first {
		t.Errorf("%d kept beyond the budget", len(table.items))
	}
	*get("3") = 1000
	table.Shrink()
	if len(table.items) != 1 {
		t.Error("the last one was dropped")
	}
}
