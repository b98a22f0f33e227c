package helm

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

func TestCacheMakesOnceAndIsBounded(t *testing.T) {
	c := newCache[int](100)
	var made atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			v, err := c.get("k", func() (int, int64, error) { made.Add(1); return 7, 10, nil })
			if v != 7 || err != nil {
				t.Errorf("got %d, %v", v, err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
	for i := range 1000 {
		if _, err := c.get(fmt.Sprint(i), func() (int, int64, error) { return i, 10, nil }); err != nil {
			t.Fatal(err)
		}
		if c.used > 100 || len(c.by) > 10 || c.order.Len() != len(c.by) {
			t.Fatalf("%d used by %d", c.used, len(c.by))
		}
	}
	if _, err := c.get("too large", func() (int, int64, error) { return 1, 1000, nil }); err != nil || c.used > 100 {
		t.Errorf("%d used, %v", c.used, err)
	}
}

func TestCacheKeepsNoFailures(t *testing.T) {
	c := newCache[int](100)
	failed := errors.New("no")
	if _, err := c.get("k", func() (int, int64, error) { return 0, 5, failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = c.get("k", func() (int, int64, error) { panic("no") })
	}()
	if v, err := c.get("k", func() (int, int64, error) { return 3, 5, nil }); v != 3 || err != nil || c.used != 5 {
		t.Errorf("got %d, %v, %d used", v, err, c.used)
	}
}
