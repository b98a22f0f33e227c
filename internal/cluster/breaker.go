package cluster

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

const (
	// probeEvery is how often a quiet member is asked whether it still answers.
	probeEvery   = 15 * time.Second
	probeTimeout = 5 * time.Second
	// failuresToOpen in a row open the breaker.
	failuresToOpen = 2
	retryMin       = time.Second
	retryMax       = time.Minute
)

// breaker knows whether a member answers. While it does not, calls fail at
// once, and one probe at a time, with growing pauses, finds out when it does.
type breaker struct {
	m *member

	mu       sync.Mutex
	failures int
	open     bool
	cause    error
	since    time.Time
	last     time.Time // when the member last answered
	kick     chan struct{}
	restored chan struct{} // closed when it answers again
}

func newBreaker(m *member) *breaker {
	return &breaker{m: m, kick: make(chan struct{}, 1), restored: make(chan struct{}), last: time.Now()}
}

// check fails while the breaker is open.
func (b *breaker) check() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return nil
	}
	return rutter.Errorf(rutter.CodeUnavailable, "cluster %s does not answer since %s: %w", b.m.Info().Name, b.since.UTC().Format(time.RFC3339), b.cause)
}

// failed notes a call that got no answer, and has it verified at once.
func (b *breaker) failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	b.cause = bare(err)
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// answered notes a call that got an answer, whatever it was.
func (b *breaker) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		b.failures, b.last = 0, time.Now()
	}
}

// awaitClosed returns when the member answers, or ctx ends.
func (b *breaker) awaitClosed(ctx context.Context) error {
	b.mu.Lock()
	open, restored := b.open, b.restored
	b.mu.Unlock()
	if !open {
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
	delay := probeEvery
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
		idle := !b.open && b.failures == 0 && time.Since(b.last) < probeEvery/2
		b.mu.Unlock()
		if idle {
			delay = probeEvery
			continue
		}
		delay = b.settle(b.probe(), delay)
	}
}

// probe asks the cheapest question there is. Any answer is an answer.
func (b *breaker) probe() error {
	ctx, cancel := context.WithTimeout(b.m.ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.m.base+"/version", http.NoBody)
	if err != nil {
		return fmt.Errorf("build the probe: %w", err)
	}
	resp, err := b.m.http.Do(req)
	if err != nil {
		// A connection that has gone silent would be used again and again.
		b.m.http.CloseIdleConnections()
		return bare(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // so that the connection can be used again
	return nil
}

// settle takes a probe's result into account and returns the next pause.
func (b *breaker) settle(err error, delay time.Duration) time.Duration {
	if b.m.ctx.Err() != nil {
		return delay
	}
	b.mu.Lock()
	if err == nil {
		was := b.open
		b.failures, b.open, b.cause, b.last = 0, false, nil, time.Now()
		if was {
			close(b.restored)
			b.restored = make(chan struct{})
		}
		b.mu.Unlock()
		if was {
			b.m.log.Info("cluster answers again")
			b.m.sink.Reachable(b.m.server, nil)
		}
		return probeEvery
	}
	b.failures++
	b.cause = err
	opens := !b.open && b.failures >= failuresToOpen
	if opens {
		b.open, b.since = true, time.Now()
	}
	open := b.open
	b.mu.Unlock()
	if opens {
		b.m.log.Warn("cluster does not answer", "err", err)
		b.m.sink.Reachable(b.m.server, err)
	}
	if !open || opens || delay == probeEvery {
		delay = retryMin / 2
	}
	return min(2*delay, retryMax) + rand.N(retryMin/4) //nolint:gosec // spreads probes, not a secret
}
