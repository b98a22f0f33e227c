package git

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// lookups makes sure that a remote is asked for its refs as seldom as the
// askers' wishes for freshness allow.
//
// An answer shows the remote as it was at some moment after the look-up began.
// It therefore satisfies who asks with an age of A at time T when it began at
// T-A or later; with no age at all, when it began after they asked. Who is not
// satisfied by a look-up that is running joins the one after it. A look-up
// waits a few milliseconds, before it begins, for all who ask at this moment.
type lookups struct {
	fetch func(ctx context.Context, r remote) (refs, error)

	mu sync.Mutex
	// good and bad are the last that succeeded and failed.
	good, bad *lookup
	running   *lookup
	next      *lookup
}

// lookup is one question to the remote. All but its result is guarded by
// lookups.mu; the result is written before done is closed.
type lookup struct {
	// remote is the newest asker's: of several credentials, the newest counts.
	remote remote
	// began is when git was about to be started; zero while company is awaited.
	began     time.Time
	joined    int
	waiting   int
	abandoned bool
	cancel    context.CancelFunc

	done chan struct{}
	refs refs
	err  error
}

const (
	// gatherQuiet and gatherMost bound how long a look-up waits for company.
	gatherQuiet = 4 * time.Millisecond
	gatherMost  = 100 * time.Millisecond
	// failureAge bounds how long a failure stands in for an answer, so that a
	// repository that is gone is asked again soon but not by every asker.
	failureAge = 10 * time.Second
)

var errAbandoned = errors.New("nobody waits for the answer any more")

// ask returns refs of r that are at most age old.
func (ls *lookups) ask(ctx context.Context, r remote, age time.Duration) (refs, error) {
	l := ls.join(ctx, r, max(age, 0))
	defer ls.leave(l)
	select {
	case <-l.done:
		return l.refs, l.err
	case <-ctx.Done():
		return refs{}, rutter.Errorf(rutter.CodeUnavailable, "repository %q: looking up its refs: %w", r.display(), context.Cause(ctx))
	}
}

// join finds or makes the look-up that satisfies an asker.
func (ls *lookups) join(ctx context.Context, r remote, age time.Duration) *lookup {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	now := time.Now()
	switch {
	case ls.good.satisfies(r, now, age):
		return ls.good.enter()
	case ls.bad.satisfies(r, now, min(age, failureAge)):
		return ls.bad.enter()
	case ls.running.satisfies(r, now, age):
		return ls.running.enter()
	case ls.next == nil:
		ls.next = &lookup{done: make(chan struct{})}
	}
	l := ls.next.enter()
	l.remote = r
	if ls.running == nil {
		ls.begin(context.WithoutCancel(ctx))
	}
	return l
}

// satisfies reports whether l's answer is one for r's credential and fresh
// enough for who asks at now. One that has not begun is as fresh as can be.
func (l *lookup) satisfies(r remote, now time.Time, age time.Duration) bool {
	return l != nil && !l.abandoned && l.remote.access.digest == r.access.digest && (l.began.IsZero() || !l.began.Before(now.Add(-age)))
}

func (l *lookup) enter() *lookup {
	l.joined++
	l.waiting++
	return l
}

// leave ends a look-up for which nobody waits.
func (ls *lookups) leave(l *lookup) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.waiting--; l.waiting > 0 {
		return
	}
	select {
	case <-l.done:
	default:
		l.abandoned = true
		if l.cancel != nil {
			l.cancel()
		}
		if ls.next == l {
			ls.next = nil
			l.err = errAbandoned
			close(l.done)
		}
	}
}

// begin starts the next look-up; ls.mu is held and none is running.
func (ls *lookups) begin(ctx context.Context) {
	l := ls.next
	ls.next, ls.running = nil, l
	run, cancel := context.WithCancel(ctx)
	l.cancel = cancel
	go ls.perform(ctx, run, l)
}

// perform carries out l, tells those who wait, and begins the next.
func (ls *lookups) perform(parent, ctx context.Context, l *lookup) {
	ls.gather(ctx, l)
	ls.mu.Lock()
	l.began = time.Now()
	r := l.remote
	ls.mu.Unlock()

	answer, err := ls.fetch(ctx, r)

	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.cancel()
	l.refs, l.err = answer, err
	switch {
	case err == nil:
		ls.good, ls.bad = l, nil
	case !l.abandoned:
		ls.bad = l
	}
	ls.running = nil
	if ls.next != nil {
		ls.begin(parent)
	}
	close(l.done)
}

// gather waits until nobody has joined for a moment.
func (ls *lookups) gather(ctx context.Context, l *lookup) {
	tick := time.NewTicker(gatherQuiet)
	defer tick.Stop()
	seen := 0
	for waited := time.Duration(0); waited < gatherMost; waited += gatherQuiet {
		ls.mu.Lock()
		joined := l.joined
		ls.mu.Unlock()
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
