package argo

import (
	"context"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

const (
	// listTime is the longest that a list of a hosting service is waited for, and
	// lookTime that one look into a branch is.
	listTime = 5 * time.Minute
	lookTime = time.Minute
	// slowFailure is how long a failure must have taken to be held against the
	// service: one that refuses at once keeps nobody waiting.
	slowFailure = 10 * time.Second
	// outagePause is how long a service that let somebody wait in vain is left
	// alone, so that it does not hold back the sets that ask others.
	outagePause = time.Minute
)

// outages are the hosting services that do not answer. An evaluation keeps a
// worker busy while it waits; a set that asks a dead service a hundred times, or a
// hundred sets that do, must not leave the others without workers.
type outages struct {
	mu sync.Mutex
	by map[string]outage
}

type outage struct {
	until time.Time
	err   error
}

// serviceOf is what has an outage as one.
func serviceOf(q rutter.ForgeQuery) string { return q.Provider + " " + q.API + " " + q.Region }

// admit says whether a service may be asked now, and else why not. When its
// pause is over, one asks for all: were it still dead, they would all wait.
func (o *outages) admit(service string, now time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, ok := o.by[service]
	switch {
	case !ok:
		return nil
	case now.Before(last.until):
		return rutter.Errorf(rutter.CodeUnavailable, "it let another question wait in vain a moment ago and is left alone for a while: %w", last.err)
	}
	o.by[service] = outage{until: now.Add(listTime), err: last.err} // until the one has its answer
	return nil
}

// note remembers how an answer came that was waited for from began to now.
// Whatever comes without much waiting shows that the service is there.
func (o *outages) note(service string, began, now time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if rutter.CodeOf(err) != rutter.CodeUnavailable || now.Sub(began) < slowFailure {
		delete(o.by, service)
		return
	}
	if o.by == nil {
		o.by = map[string]outage{}
	}
	for name, old := range o.by { // there are as many as were named in a while
		if now.After(old.until.Add(listTime)) {
			delete(o.by, name)
		}
	}
	o.by[service] = outage{until: now.Add(outagePause), err: err}
}

// leave takes back a question that was given up by who asked.
func (o *outages) leave(service string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.by, service)
}

// patiently asks a service that is not known to be down, for some time.
func patiently[T any](f *facts, q rutter.ForgeQuery, patience time.Duration, ask func(context.Context) (T, error)) (T, error) {
	var none T
	s, service := f.set, serviceOf(q)
	if err := s.outages.admit(service, s.opts.Now()); err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(f.ctx, patience)
	defer cancel()
	began := s.opts.Now()
	answer, err := ask(ctx)
	if f.ctx.Err() != nil { // it was not the service that took long
		s.outages.leave(service)
	} else {
		s.outages.note(service, began, s.opts.Now(), err)
	}
	return answer, err
}
