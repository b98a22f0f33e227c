package render

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// maxFetching bounds all that is fetched for one render; the sources have
// limits of their own, and this one is for what has none.
const maxFetching = 20 * time.Minute

// shift is a tool's time at work: it has one of the slots, and a limit. While
// something is fetched for it neither counts: a slow registry is not the
// tool's fault, has limits of its own, and must not keep others waiting. When
// the time is up the slot is free again, whether the tool has noticed or not.
type shift struct {
	slots *semaphore.Weighted
	end   context.CancelCauseFunc

	mu      sync.Mutex
	left    time.Duration
	began   time.Time
	timer   *time.Timer
	working bool // has a slot, and the time runs
	fetches int
	over    bool
}

// begin waits for a slot and starts the time, which ends the context that it returns.
func begin(ctx context.Context, slots *semaphore.Weighted, limit time.Duration) (context.Context, *shift, error) {
	if err := slots.Acquire(ctx, 1); err != nil {
		return nil, nil, err //nolint:wrapcheck // the caller says what was waiting
	}
	ctx, end := context.WithCancelCause(ctx)
	whole := time.AfterFunc(limit+maxFetching, func() { end(errTimeout) })
	context.AfterFunc(ctx, func() { whole.Stop() })
	s := &shift{slots: slots, end: end, left: limit}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run()
	return ctx, s, nil
}

// run starts the time; s.mu is held, and a slot is taken.
func (s *shift) run() {
	s.working, s.began = true, time.Now() //nolint:forbidigo // it measures, it does not decide by the date
	s.timer = time.AfterFunc(s.left, func() {
		s.stop(errTimeout)
	})
}

// rest stops the time and gives the slot back; s.mu is held.
func (s *shift) rest() {
	if !s.working {
		return
	}
	s.working = false
	s.timer.Stop()
	s.left = max(s.left-time.Since(s.began), time.Millisecond) //nolint:forbidigo // see run
	s.slots.Release(1)
}

// stop ends the shift for good.
func (s *shift) stop(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		s.rest()
		s.end(cause)
	}
}

// fetching reports whether something is being fetched at the moment.
func (s *shift) fetching() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches > 0
}

// aside does something that is not the tool's work, outside of its time.
func (s *shift) aside(ctx context.Context, fetch func()) error {
	s.mu.Lock()
	if s.fetches++; s.fetches == 1 && !s.over {
		s.rest()
	}
	s.mu.Unlock()
	fetch()
	s.mu.Lock()
	s.fetches--
	back := s.fetches == 0 && !s.over
	s.mu.Unlock()
	if !back {
		return nil
	}
	if err := s.slots.Acquire(ctx, 1); err != nil {
		return err //nolint:wrapcheck // the render has ended
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.working {
		s.slots.Release(1)
		return nil
	}
	s.run()
	return nil
}
