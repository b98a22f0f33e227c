package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

const (
	// slowWrite is the time that a write may take before the server counts as busy.
	slowWrite = 10 * time.Second
	// shrinkPause is the least time between two shrinkings, so that the refusals
	// of one moment count once.
	shrinkPause = time.Second
)

// limiter bounds the writes in flight to one cluster. It begins at the most,
// halves when the server says that it is busy or becomes slow, and grows by
// one for each round of writes that went well.
type limiter struct {
	most float64

	mu      sync.Mutex
	limit   float64
	used    int
	waiting turns
	shrunk  time.Time
	until   time.Time // nobody begins a call before this
}

func newLimiter(most int) *limiter { return &limiter{most: float64(most), limit: float64(most)} }

// acquire waits for a turn to write; release gives it back.
func (l *limiter) acquire(ctx context.Context) (release func(), err error) {
	l.mu.Lock()
	if l.waiting.Len() == 0 && l.used < int(l.limit) {
		l.used++
		l.mu.Unlock()
		return l.releaser(), nil
	}
	x := l.waiting.push(rutter.BehalfOf(ctx))
	l.mu.Unlock()
	select {
	case <-x.begin:
		return l.releaser(), nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if x.at == nil { // it came at the same moment: pass it on
		l.used--
		l.admit()
	} else {
		l.waiting.remove(x)
	}
	return nil, rutter.Errorf(rutter.CodeUnavailable, "stopped while waiting for a turn to write: %w", context.Cause(ctx))
}

func (l *limiter) releaser() func() {
	began := time.Now()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.used--
		if took := time.Since(began); took > slowWrite {
			l.shrink()
		} else {
			l.limit = min(l.most, l.limit+1/l.limit)
		}
		l.admit()
	}
}

// admit lets those in for whom there is room; l.mu is held.
func (l *limiter) admit() {
	for l.used < int(l.limit) && l.waiting.Len() > 0 {
		l.waiting.next()
		l.used++
	}
}

// busy notes that the server asked to be left alone for a while.
func (l *limiter) busy(wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := time.Now().Add(wait); until.After(l.until) {
		l.until = until
	}
	l.shrink()
}

// shrink halves the limit; l.mu is held.
func (l *limiter) shrink() {
	if time.Since(l.shrunk) >= shrinkPause {
		l.shrunk = time.Now()
		l.limit = max(1, l.limit/2)
	}
}

// hold is how long a call has to wait before it may begin.
func (l *limiter) hold() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.until)
}
