package apply

import (
	"sync"
	"sync/atomic"
)

// atOnce is how many steps are under way at most: more than any cluster lets write
// at a time, and few enough that a large sync does not hold all of its objects, and
// as many stacks, in memory.
const atOnce = 256

// together does n things side by side.
func together(n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, atOnce) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}
