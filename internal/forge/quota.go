package forge

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// quota is what one login may still ask of one host, as the host said last.
type quota struct {
	provider, host, login string

	mu sync.Mutex
	// limit and left are -1 until the host has named them.
	limit, left int64
	reset       time.Time
	// until is when the host wants to be asked again.
	until time.Time
	seen  bool
}

func newQuota(provider, host, login string) *quota {
	return &quota{provider: provider, host: host, login: login, limit: -1, left: -1}
}

// ledger keeps the quotas. It forgets one only when there are many.
type ledger struct {
	mu     sync.Mutex
	quotas map[string]*quota
}

const mostQuotas = 1000

// of returns the quota of a login at a host.
func (l *ledger) of(key string, make func() *quota) *quota {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q, ok := l.quotas[key]; ok {
		return q
	}
	if l.quotas == nil {
		l.quotas = map[string]*quota{}
	}
	for other := range l.quotas {
		if len(l.quotas) < mostQuotas {
			break
		}
		delete(l.quotas, other)
	}
	q := make()
	l.quotas[key] = q
	return q
}

func (l *ledger) all() []*quota {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.quotas))
}

// longestBan bounds what a host can keep itself from being asked.
const longestBan = 24 * time.Hour

// note reads what an answer says of the quota. limited is true for an answer
// that is a refusal for it.
func (q *quota) note(now time.Time, h http.Header, limited bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	left, known := number(h, "Remaining")
	if limit, ok := number(h, "Limit"); ok {
		q.limit = limit
	}
	reset := resetTime(now, h)
	if known {
		q.seen = true
		// Of answers that overtake each other, the smaller number is the newer one.
		if q.left < 0 || left < q.left || !reset.Equal(q.reset) {
			q.left = left
		}
		q.reset = reset
	}
	var until time.Time
	if wait, ok := retryAfter(now, h); ok {
		until = now.Add(wait)
	}
	if (known && left == 0 || limited) && until.IsZero() && reset.After(now) {
		until = reset
	}
	if limited && until.IsZero() {
		until = now.Add(time.Minute) // what to wait for is not said
	}
	if until.After(now.Add(longestBan)) {
		until = now.Add(longestBan)
	}
	if until.After(q.until) {
		q.until = until
	}
}

// number reads one of the headers of the two families that are in use.
func number(h http.Header, name string) (int64, bool) {
	for _, family := range []string{"X-Ratelimit-", "Ratelimit-"} {
		text, _, _ := strings.Cut(h.Get(family+name), ",")
		text, _, _ = strings.Cut(text, ";")
		if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && n >= 0 {
			return n, true
		}
	}
	return 0, false
}

// resetTime is when the quota is whole again: some write seconds since 1970,
// others seconds from now.
func resetTime(now time.Time, h http.Header) time.Time {
	n, ok := number(h, "Reset")
	switch {
	case !ok:
		return time.Time{}
	case n > 1_000_000_000 && n < 100_000_000_000:
		return time.Unix(n, 0)
	case n < int64(longestBan/time.Second):
		return now.Add(time.Duration(n) * time.Second)
	}
	return now.Add(longestBan)
}

// retryAfter reads seconds or a date.
func retryAfter(now time.Time, h http.Header) (time.Duration, bool) {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 {
		return time.Duration(min(n, longestBan.Seconds()) * float64(time.Second)), true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

// enter waits until the host may be asked, when that is soon enough.
func (c *Client) enter(ctx context.Context, q *quota) error {
	q.mu.Lock()
	until := q.until
	q.mu.Unlock()
	wait := until.Sub(c.opts.Now())
	if wait <= 0 {
		return nil
	}
	deadline, bounded := ctx.Deadline()
	if wait > c.opts.MaxWait || bounded && wait > time.Until(deadline) { //nolint:forbidigo // a context's deadline has this clock
		c.refused.Add(1)
		return rutter.Errorf(rutter.CodeUnavailable, "the service's quota for this login is used up; it may be asked again at %s", until.UTC().Format(time.RFC3339))
	}
	c.waits.Add(1)
	return sleep(ctx, wait)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return rutter.Errorf(rutter.CodeUnavailable, "waiting to ask again: %w", context.Cause(ctx))
	}
}

// Stats counts what was asked of hosting services since the start.
type Stats struct {
	// Requests were sent; NotModified of them were answered by saying that what
	// was known still holds.
	Requests, NotModified int64
	// Waits were made for a quota to come back; Refused are the requests that
	// were not sent because it would come back too late.
	Waits, Refused int64
	// Quotas are those that a service named, by host and login.
	Quotas []Quota
}

// Quota is what a login may ask of a host.
type Quota struct {
	Provider, Host string
	// Login is the name of the Secret that holds it.
	Login string
	// Limit and Left are -1 when the host does not name them.
	Limit, Left int64
	// Reset is when Left is Limit again; Until, when it lies ahead, is when the
	// host may be asked at all.
	Reset, Until time.Time
}

// Stats returns the counters.
func (c *Client) Stats() Stats {
	s := Stats{Requests: c.requests.Load(), NotModified: c.notModified.Load(), Waits: c.waits.Load(), Refused: c.refused.Load()}
	for _, q := range c.quotas.all() {
		q.mu.Lock()
		if q.seen || !q.until.IsZero() {
			s.Quotas = append(s.Quotas, Quota{q.provider, q.host, q.login, q.limit, q.left, q.reset, q.until})
		}
		q.mu.Unlock()
	}
	slices.SortFunc(s.Quotas, func(a, b Quota) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.Host, b.Host), strings.Compare(a.Login, b.Login))
	})
	return s
}
