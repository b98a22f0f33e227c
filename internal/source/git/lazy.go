package git

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/rutterhq/rutter"
)

// await waits for what is on its way, for as long as one read may take. A file
// system's methods have no context, and who reads holds up a whole render: what
// takes longer goes on by itself, within its own limit, and a later read finds it.
func await[T any](limit time.Duration, result <-chan singleflight.Result) (T, error) {
	t := time.NewTimer(limit)
	defer t.Stop()
	var none T
	select {
	case r := <-result:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(T), nil //nolint:forcetypeassert // who asks for a T has made one
	case <-t.C:
		return none, rutter.Errorf(rutter.CodeUnavailable, "it did not arrive within %s and is still being fetched: its server is slow", limit)
	}
}

const (
	// downloadsAtOnce bounds the downloads of LFS that are in memory at one time,
	// and downloadsOfHost those of them from one host, so that a slow one does
	// not stop the others.
	downloadsAtOnce = 8
	downloadsOfHost = 2
)

// slots are the downloads that may run at once.
type slots struct {
	all chan struct{}

	mu    sync.Mutex
	hosts map[string]*hostSlots
}

type hostSlots struct {
	free  chan struct{}
	users int
}

func newSlots() *slots {
	return &slots{all: make(chan struct{}, downloadsAtOnce), hosts: map[string]*hostSlots{}}
}

// take waits for a place until ctx ends. The place must be given back.
func (s *slots) take(ctx context.Context, host string) (giveBack func(), err error) {
	h := s.enter(host)
	select {
	case h.free <- struct{}{}:
	case <-ctx.Done():
		s.leave(host)
		return nil, rutter.Errorf(rutter.CodeUnavailable, "too many downloads from %s are on their way: its server is slow", host)
	}
	select {
	case s.all <- struct{}{}:
	case <-ctx.Done():
		<-h.free
		s.leave(host)
		return nil, rutter.Errorf(rutter.CodeUnavailable, "too many downloads are on their way")
	}
	return func() {
		<-s.all
		<-h.free
		s.leave(host)
	}, nil
}

func (s *slots) enter(host string) *hostSlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[host]
	if h == nil {
		h = &hostSlots{free: make(chan struct{}, downloadsOfHost)}
		s.hosts[host] = h
	}
	h.users++
	return h
}

func (s *slots) leave(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts[host].users--; s.hosts[host].users == 0 {
		delete(s.hosts, host)
	}
}

// siteName is the host that a repository is at, for people.
func siteName(repo rutter.Repo) string {
	l, err := parseLocation(repo.URL)
	if err != nil || l.host == "" {
		return "this machine"
	}
	return l.host
}
