package apply

import (
	"sync/atomic"
	"testing"
)

func TestTogether(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, atOnce, 3*atOnce + 1} {
		var now, most, done atomic.Int64
		each := make([]atomic.Int64, n)
		together(n, atOnce, func(i int) {
			for at := now.Add(1); at > most.Load(); {
				most.Store(at)
			}
			each[i].Add(1)
			done.Add(1)
			now.Add(-1)
		})
		for i := range each {
			if each[i].Load() != 1 {
				t.Errorf("%d of %d was done %d times", i, n, each[i].Load())
			}
		}
		if int(done.Load()) != n || most.Load() > atOnce {
			t.Errorf("%d of %d done, %d at once", done.Load(), n, most.Load())
		}
	}
}
