// Package fresh makes sure that a remote is asked as seldom as those who want
// to know allow (ADAPTER ring; all adapters of sources use it). Everybody who asks for the same thing at the same moment
// shares one question, and an answer is remembered for those to whom an older
// one is good enough.
package fresh

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// Question asks the remote. It gets the last good answer, if there is one, so
// that it can ask whether that has changed.
type Question[T any] func(ctx context.Context, last T, ok bool) (T, error)

// Answer is one thing that a remote is asked for, as one login sees it. The
// zero value is ready for use.
//
// An answer shows the remote as it was at some moment after the question was
// put. It therefore satisfies who asks with an age of A at time T when it began
// at T-A or later; with no age at all, when it began after they asked. Who is
// not satisfied by a question that is on its way joins the one after it.
type Answer[T any] struct {
	mu sync.Mutex
	// good and bad are the last that succeeded and failed.
	good, bad *call[T]
	running   *call[T]
	next      *call[T]
}

// call is one question. All but its result is guarded by Answer.mu; the result
// is written before done is closed.
type call[T any] struct {
	ask Question[T]
	// began is when the question was about to be put; zero while company is awaited.
	began     time.Time
	joined    int
	waiting   int
	abandoned bool
	cancel    context.CancelFunc

	done  chan struct{}
	value T
	err   error
}

const (
	// gatherQuiet and gatherMost bound how long a question waits for company.
	gatherQuiet = 4 * time.Millisecond
	gatherMost  = 100 * time.Millisecond
)

// FailureAge bounds how long a failure stands in for an answer, so that a
// remote that is down, or refuses a login, is asked again soon but not by every
// asker. Who allows no age is told the truth of now.
const FailureAge = 10 * time.Second

var errAbandoned = errors.New("nobody waits for the answer any more")

// Ask returns an answer that is at most age old; ask puts the question.
func (a *Answer[T]) Ask(ctx context.Context, age time.Duration, ask Question[T]) (T, error) {
	c := a.join(ctx, max(age, 0), ask)
	defer a.leave(c)
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		var none T
		return none, rutter.Errorf(rutter.CodeUnavailable, "waiting for the answer: %w", context.Cause(ctx))
	}
}

// Last returns the last good answer without asking.
func (a *Answer[T]) Last() (T, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.good == nil {
		var none T
		return none, false
	}
	return a.good.value, true
}

// join finds or makes the call that satisfies an asker.
func (a *Answer[T]) join(ctx context.Context, age time.Duration, ask Question[T]) *call[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	switch {
	case a.good.satisfies(now, age):
		return a.good.enter()
	case a.bad.satisfies(now, min(age, FailureAge)):
		return a.bad.enter()
	case a.running.satisfies(now, age):
		return a.running.enter()
	case a.next == nil:
		a.next = &call[T]{done: make(chan struct{})}
	}
	c := a.next.enter()
	c.ask = ask
	if a.running == nil {
		a.begin(context.WithoutCancel(ctx))
	}
	return c
}

// satisfies reports whether c is fresh enough for who asks at now. One that
// has not begun is as fresh as can be.
func (c *call[T]) satisfies(now time.Time, age time.Duration) bool {
	return c != nil && !c.abandoned && (c.began.IsZero() || !c.began.Before(now.Add(-age)))
}

func (c *call[T]) enter() *call[T] {
	c.joined++
	c.waiting++
	return c
}

// leave ends a call for which nobody waits.
func (a *Answer[T]) leave(c *call[T]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.waiting--; c.waiting > 0 {
		return
	}
	select {
	case <-c.done:
		return
	default:
	}
	c.abandoned = true
	if c.cancel != nil {
		c.cancel()
	}
	if a.next == c {
		a.next = nil
		c.err = errAbandoned
		close(c.done)
	}
}

// begin starts the next call; a.mu is held and none is running.
func (a *Answer[T]) begin(ctx context.Context) {
	c := a.next
	a.next, a.running = nil, c
	run, cancel := context.WithCancel(ctx) //nolint:gosec // perform calls it at the end
	c.cancel = cancel
	go a.perform(ctx, run, c)
}

// perform carries out c, tells those who wait, and begins the next.
func (a *Answer[T]) perform(parent, ctx context.Context, c *call[T]) {
	a.gather(ctx, c)
	a.mu.Lock()
	c.began = time.Now()
	ask := c.ask
	var last T
	known := a.good != nil
	if known {
		last = a.good.value
	}
	a.mu.Unlock()

	value, err := ask.put(ctx, last, known)

	a.mu.Lock()
	defer a.mu.Unlock()
	c.cancel()
	c.value, c.err = value, err
	switch {
	case err == nil:
		a.good, a.bad = c, nil
	case !c.abandoned:
		if rutter.CodeOf(err) == rutter.CodeForbidden {
			a.good = nil // who may not look any more may not have the older answer either
		}
		a.bad = c
	}
	a.running = nil
	if a.next != nil {
		a.begin(parent)
	}
	close(c.done)
}

// put asks. What a remote sends is decoded here: a panic over it is that
// remote's error and must not end the process for all the others.
func (q Question[T]) put(ctx context.Context, last T, ok bool) (value T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = rutter.Errorf(rutter.CodeInternal, "reading the answer panicked (%v): please report this", r)
		}
	}()
	return q(ctx, last, ok)
}

// gather waits until nobody has joined for a moment.
func (a *Answer[T]) gather(ctx context.Context, c *call[T]) {
	tick := time.NewTicker(gatherQuiet)
	defer tick.Stop()
	seen := 0
	for waited := time.Duration(0); waited < gatherMost; waited += gatherQuiet {
		a.mu.Lock()
		joined := c.joined
		a.mu.Unlock()
		if joined == seen {
			return
		}
		seen = joined
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
