package recent_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rutterhq/rutter/internal/recent"
)

func TestSize(t *testing.T) {
	t.Parallel()
	c := recent.New[string, int](10, time.Hour)
	c.Put("a", 1, 4)
	c.Put("b", 2, 4)
	if v, ok := c.Get("a"); !ok || v != 1 {
		t.Fatalf("a is %d, %v", v, ok)
	}
	c.Put("c", 3, 4)
	if _, ok := c.Get("b"); ok {
		t.Error("b was used least lately and is there")
	}
	c.Put("large", 4, 100)
	for key, want := range map[string]bool{"a": false, "c": false, "large": true} {
		if _, ok := c.Get(key); ok != want {
			t.Errorf("%s there: %v, wanted %v", key, ok, want)
		}
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := recent.New[string, int](10, time.Minute)
		c.Put("a", 1, 1)
		c.Put("b", 2, 1)
		for range 3 {
			time.Sleep(40 * time.Second)
			synctest.Wait()
			if _, ok := c.Get("a"); !ok {
				t.Fatal("a is used and gone")
			}
		}
		if _, ok := c.Get("b"); ok {
			t.Error("b has not been used for a minute and is there")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if _, ok := c.Get("a"); ok {
			t.Error("a has not been used for a minute and is there")
		}
		c.Put("a", 3, 1)
		if v, ok := c.Get("a"); !ok || v != 3 {
			t.Errorf("a is %d, %v", v, ok)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if _, ok := c.Get("a"); ok {
			t.Error("a is there, though it was not used after the cache had been empty once")
		}
	})
}
