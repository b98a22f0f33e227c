package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestLimiter(t *testing.T) {
	l := newLimiter(8)
	var now, most atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			release, err := l.acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(100 * time.Microsecond)
			now.Add(-1)
		})
	}
	wg.Wait()
	if most.Load() > 8 || l.used != 0 || l.waiting.Len() != 0 {
		t.Errorf("at most %d at a time, %d still in use", most.Load(), l.used)
	}
}

// TestLimiterShrinks: refusals of one moment halve it once, and good writes
// let it grow again.
func TestLimiterShrinks(t *testing.T) {
	l := newLimiter(32)
	for range 10 {
		l.busy(0)
	}
	if l.limit != 16 {
		t.Errorf("limit %v", l.limit)
	}
	for range 2000 {
		release, err := l.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	if l.limit != 32 {
		t.Errorf("limit %v after many good writes", l.limit)
	}
	l.busy(time.Minute)
	l.busy(time.Second)
	if l.hold() < 50*time.Second {
		t.Errorf("a shorter wait must not end a longer one: %s", l.hold())
	}
}

// TestLimiterCancel: who gives up waiting takes no turn with him.
func TestLimiterCancel(t *testing.T) {
	l := newLimiter(1)
	release, err := l.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		wg.Go(func() {
			defer cancel()
			if r, err := l.acquire(ctx); err == nil {
				r()
			}
		})
	}
	time.Sleep(time.Millisecond)
	release()
	wg.Wait()
	if l.used != 0 || l.waiting.Len() != 0 {
		t.Errorf("%d turns lost, %d waiting", l.used, l.waiting.Len())
	}
}
