package cluster

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rutterhq/rutter"
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

// TestLimiterTurns: a unit with one write does not wait for all those of another.
func TestLimiterTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(1)
		first, err := l.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		wait := func(ctx context.Context, unit string) {
			release, err := l.acquire(rutter.OnBehalf(ctx, rutter.UnitID{Name: unit}))
			if err != nil {
				return
			}
			mu.Lock()
			order = append(order, unit)
			mu.Unlock()
			release()
		}
		gone, leave := context.WithCancel(t.Context())
		for range 3 {
			go wait(t.Context(), "large")
			synctest.Wait()
		}
		go wait(gone, "left")
		synctest.Wait()
		for _, unit := range []string{"small", "large", "other"} {
			go wait(t.Context(), unit)
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		first()
		synctest.Wait()
		want := []string{"large", "small", "other", "large", "large", "large"}
		if !slices.Equal(order, want) || l.used != 0 || l.waiting.Len() != 0 || len(l.waiting.lanes)+l.waiting.order.Len() != 0 {
			t.Errorf("the order was %v, wanted %v; %d in use, %d waiting", order, want, l.used, l.waiting.Len())
		}
	})
}
