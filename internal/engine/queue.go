package engine

import (
	"context"
	"sync"
	"time"
)

// queue hands out keys, each to one worker at a time. A key that is added
// while it is being worked on is handed out once more afterwards.
type queue[K comparable] struct {
	mu      sync.Mutex
	order   []K
	waiting map[K]bool // queued
	working map[K]bool // handed out; true when added again meanwhile
	timers  map[K]timer
	wake    chan struct{}
}

// timer is a pending addition.
type timer struct {
	*time.Timer
	due time.Time
}

func newQueue[K comparable]() *queue[K] {
	return &queue[K]{waiting: map[K]bool{}, working: map[K]bool{}, timers: map[K]timer{}, wake: make(chan struct{}, 1)}
}

// add queues k at the end, unless it is queued already.
func (q *queue[K]) add(k K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, busy := q.working[k]; busy {
		q.working[k] = true
		return
	}
	if q.waiting[k] {
		return
	}
	q.waiting[k] = true
	q.order = append(q.order, k)
	q.signal()
}

// addAfter queues k when d has passed; a sooner time for the same key wins.
func (q *queue[K]) addAfter(k K, d time.Duration) {
	if d <= 0 {
		q.add(k)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	due := time.Now().Add(d)
	if t, pending := q.timers[k]; pending {
		if !due.Before(t.due) {
			return
		}
		t.Stop()
	}
	q.timers[k] = timer{due: due, Timer: time.AfterFunc(d, func() {
		q.mu.Lock()
		delete(q.timers, k)
		q.mu.Unlock()
		q.add(k)
	})}
}

func (q *queue[K]) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next returns a key, waiting for one; false when ctx is done.
func (q *queue[K]) next(ctx context.Context) (K, bool) {
	for {
		q.mu.Lock()
		if len(q.order) > 0 {
			k := q.order[0]
			q.order = q.order[1:]
			delete(q.waiting, k)
			q.working[k] = false
			if len(q.order) > 0 {
				q.signal()
			}
			q.mu.Unlock()
			return k, true
		}
		q.mu.Unlock()
		select {
		case <-q.wake:
		case <-ctx.Done():
			var zero K
			return zero, false
		}
	}
}

// done ends the work on k.
func (q *queue[K]) done(k K) {
	q.mu.Lock()
	again := q.working[k]
	delete(q.working, k)
	q.mu.Unlock()
	if again {
		q.add(k)
	}
}

// idle reports whether nothing is queued nor worked on.
func (q *queue[K]) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.order) == 0 && len(q.working) == 0
}

// forget stops a pending timer of k.
func (q *queue[K]) forget(k K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t, pending := q.timers[k]; pending {
		t.Stop()
		delete(q.timers, k)
	}
}
