package render

import (
	"context"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// The bounds of what is remembered of failed renders.
const (
	maxFailures  = 4096
	timeoutCache = 15 * time.Minute
)

// failures remembers renders that failed because of their inputs, one for each
// application and declaration, so that a broken chart costs one run a change and not one an evaluation. It is memory
// only: after a restart each is tried once more. Failures that may pass by
// themselves are never kept.
type failures struct {
	mu  sync.Mutex
	by  map[string]failed
	now func() time.Time
}

type failed struct {
	inputs []rutter.Input
	env    map[string]string
	until  time.Time
	err    error
}

func newFailures(now func() time.Time) *failures {
	return &failures{by: map[string]failed{}, now: now}
}

// get returns the failure of a job whose inputs are as they were, when same says so.
func (f *failures) get(key string, same func(failed) bool) error {
	f.mu.Lock()
	e, ok := f.by[key]
	f.mu.Unlock()
	if !ok || !e.until.IsZero() && f.now().After(e.until) || !same(e) {
		return nil
	}
	return e.err
}

func (f *failures) put(key string, e failed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.by) >= maxFailures {
		for k := range f.by {
			delete(f.by, k) // any: it costs one more run
			break
		}
	}
	f.by[key] = e
}

func (f *failures) drop(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.by, key)
}

// timedOut stands among the variables of a failure for the revision in which
// a tool took too long: what it had read by then is not known.
const timedOut = "=revision"

// revision is the record of a render that was stopped.
func (j job) revision() map[string]string {
	return map[string]string{timedOut: j.req.Snapshot.Revision()}
}

// failsAgain reports whether a failure holds for the job as it is now.
func (r *Renderer) failsAgain(ctx context.Context, j job, f failed) bool {
	if rev, ok := f.env[timedOut]; ok {
		return rev == j.req.Snapshot.Revision()
	}
	return j.env.Same(f.env) && r.unchanged(ctx, j, f.inputs)
}

// ofInput reports whether an error comes from what was declared.
func ofInput(err error) bool {
	switch rutter.CodeOf(err) {
	case rutter.CodeInvalid, rutter.CodeNotFound, rutter.CodeUnsupported:
		return true
	default: // another place, or another time, may do better
		return false
	}
}

// orphans are runs that were stopped and go on, because no tool can be ended
// from outside. They hold no slot; until one has ended its application runs no
// other.
type orphans struct {
	mu sync.Mutex
	by map[string]bool
}

// enter reports whether nothing of that name runs, and notes that it does now.
func (o *orphans) enter(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by[name] {
		return false
	}
	if o.by == nil {
		o.by = map[string]bool{}
	}
	o.by[name] = true
	return true
}

func (o *orphans) leave(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.by, name)
}
