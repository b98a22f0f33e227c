package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// failuresToOpen in a row open the breaker; the last of them is a probe's, so
// that no call's own trouble (a slow webhook, a caller's deadline) opens it.
const failuresToOpen = 2

// errLost ends what is in flight when the member stops answering.
var errLost = errors.New("the cluster stopped answering")

// outage is a time during which a member does not answer.
type outage struct {
	cause error
	since time.Time
}

// breaker knows whether a member answers. While it does not, calls fail at
// once, and one probe at a time, with growing pauses, finds out when it does.
type breaker struct {
	m    *member
	kick chan struct{}

	mu       sync.Mutex
	failures int
	outage   *outage
	last     time.Time       // when the member last answered
	alive    context.Context //nolint:containedctx // calls in flight end with it; done while there is an outage
	lose     context.CancelCauseFunc
	restored chan struct{} // closed when it answers again
}

func newBreaker(m *member) *breaker {
	b := &breaker{m: m, kick: make(chan struct{}, 1), restored: make(chan struct{}), last: time.Now()}
	b.alive, b.lose = context.WithCancelCause(m.ctx)
	return b
}

// inherit goes on with the outage of the member that this one replaces: only
// an answer ends it. It is called before run.
func (b *breaker) inherit(old *breaker) {
	if o := old.current(); o != nil {
		b.outage, b.failures = o, failuresToOpen
		b.lose(errLost)
		b.knock()
	}
}

// current is the outage, or nil.
func (b *breaker) current() *outage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outage
}

// check fails while the member does not answer.
func (b *breaker) check() error {
	if o := b.current(); o != nil {
		return rutter.Errorf(rutter.CodeUnavailable, "cluster %s does not answer since %s: %w", b.m.Info().Name, o.since.UTC().Format(time.RFC3339), o.cause)
	}
	return nil
}

// during is ctx, ended also when the member stops answering or is removed.
func (b *breaker) during(ctx context.Context) (context.Context, context.CancelFunc) {
	b.mu.Lock()
	alive := b.alive
	b.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(alive, func() { cancel(context.Cause(alive)) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// failed notes a call that got no answer, and has it verified at once.
func (b *breaker) failed(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, errLost) {
		return
	}
	b.mu.Lock()
	b.failures++
	b.mu.Unlock()
	b.knock()
}

func (b *breaker) knock() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// answered notes a call that got an answer, whatever it was.
func (b *breaker) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.outage == nil {
		b.failures, b.last = 0, time.Now()
	}
}

// awaitClosed returns when the member answers, or ctx ends.
func (b *breaker) awaitClosed(ctx context.Context) error {
	b.mu.Lock()
	down, restored := b.outage != nil, b.restored
	b.mu.Unlock()
	if !down {
		return nil
	}
	select {
	case <-restored:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopped while the cluster does not answer: %w", ctx.Err())
	}
}

// run probes until the member is closed.
func (b *breaker) run() {
	t := b.m.timing
	delay := t.probeEvery
	for {
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-b.kick:
			timer.Stop()
		case <-b.m.ctx.Done():
			timer.Stop()
			return
		}
		b.mu.Lock()
		idle := b.outage == nil && b.failures == 0 && time.Since(b.last) < t.probeEvery/2
		b.mu.Unlock()
		if idle {
			delay = t.probeEvery
			continue
		}
		err := b.probe()
		if b.m.ctx.Err() != nil {
			return
		}
		if err == nil {
			b.close()
			delay = t.probeEvery
			continue
		}
		delay = b.next(b.open(err), delay)
	}
}

// next is the pause before the next probe: short at first, then growing.
func (b *breaker) next(fresh bool, delay time.Duration) time.Duration {
	t := b.m.timing
	if fresh || b.current() == nil || delay == t.probeEvery {
		delay = t.retryMin / 2
	}
	return min(2*delay, t.retryMax) + rand.N(t.retryMin/4+1) //nolint:gosec // spreads probes, not a secret
}

// probe asks the cheapest question there is. Any answer is an answer.
func (b *breaker) probe() error {
	ctx, cancel := context.WithTimeout(b.m.ctx, b.m.timing.probe)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.m.link.base+"/version", http.NoBody)
	if err != nil {
		return fmt.Errorf("build the probe: %w", err)
	}
	b.m.requests.other.Add(1)
	resp, err := b.m.link.client.Do(req)
	if err != nil {
		// A connection that has gone silent would be used again and again.
		b.m.link.drop()
		return b.said(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err == nil && resp.StatusCode == http.StatusOK {
		b.m.discovery.saw(body)
	}
	return nil
}

// said puts the end of a probe's time into words.
func (b *breaker) said(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s: %w", b.m.timing.probe, context.DeadlineExceeded)
	}
	return bare(err)
}

// close notes that the member answers.
func (b *breaker) close() {
	b.mu.Lock()
	was := b.outage
	b.failures, b.outage, b.last = 0, nil, time.Now()
	if was != nil {
		b.alive, b.lose = context.WithCancelCause(b.m.ctx)
		close(b.restored)
		b.restored = make(chan struct{})
	}
	b.mu.Unlock()
	if was != nil {
		b.m.log.Info("cluster answers again", "after", time.Since(was.since).Round(time.Second))
		b.m.sink.Reachable(b.m.server, nil)
	}
}

// open notes a probe that failed; true when the outage begins with it.
func (b *breaker) open(cause error) bool {
	b.mu.Lock()
	b.failures++
	if b.failures < failuresToOpen {
		b.mu.Unlock()
		return false
	}
	if b.outage != nil {
		b.outage = &outage{cause: cause, since: b.outage.since}
		b.mu.Unlock()
		return false
	}
	b.outage = &outage{cause: cause, since: time.Now()}
	b.lose(errLost)
	b.mu.Unlock()
	b.m.log.Warn("cluster does not answer", "err", cause)
	b.m.sink.Reachable(b.m.server, cause)
	b.m.link.drop()
	return true
}
