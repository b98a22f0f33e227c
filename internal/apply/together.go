package apply

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rutterhq/rutter"
)

const (
	// atOnce is how many steps are under way at most: as many as a cluster lets write
	// at a time, so that a large sync does not hold all of its objects in memory, and
	// as many stacks, which the runtime never gives back.
	atOnce = 32
	// waitingAtOnce may be more: a prune can wait for what other units declare, and a
	// hook for the one before it to go.
	waitingAtOnce = 256
)

// sideBySide is how many of some steps are under way at most.
func sideBySide(steps []rutter.Step) int {
	if slices.ContainsFunc(steps, func(s rutter.Step) bool { return s.Action == rutter.ActionPrune || s.Hook }) {
		return waitingAtOnce
	}
	return atOnce
}

// together does n things side by side, up to a limit.
func together(n, limit int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, limit) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}
