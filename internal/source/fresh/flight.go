package fresh

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// Flight lets all who need the same thing at the same time share the making of
// it. The zero value is ready for use. Unlike an Answer it doesn't remember what
// was made, which is somebody's to keep; a failure it remembers as an Answer does.
type Flight[T any] struct {
	mu     sync.Mutex
	now    map[string]*flying[T]
	failed map[string]failure
}

type failure struct {
	at  time.Time
	err error
}

// mostFailures is how many are remembered before old ones are cleared away.
const mostFailures = 1000

type flying[T any] struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{}
	value   T
	err     error
}

// Do returns what work makes, or what it is making for somebody else under the
// same key, or why it failed at most age ago. Work that nobody waits for any
// more is cancelled.
func (f *Flight[T]) Do(ctx context.Context, key string, age time.Duration, work func(context.Context) (T, error)) (T, error) {
	w, err := f.join(ctx, key, age, work)
	if err != nil {
		var none T
		return none, err
	}
	defer f.leave(key, w)
	select {
	case <-w.done:
		return w.value, w.err
	case <-ctx.Done():
		var none T
		return none, rutter.Errorf(rutter.CodeUnavailable, "waiting for a download: %w", context.Cause(ctx))
	}
}

func (f *Flight[T]) join(ctx context.Context, key string, age time.Duration, work func(context.Context) (T, error)) (*flying[T], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w, ok := f.now[key]; ok {
		w.waiting++
		return w, nil
	}
	if past, ok := f.failed[key]; ok && time.Since(past.at) < min(age, FailureAge) {
		return nil, past.err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &flying[T]{waiting: 1, cancel: cancel, done: make(chan struct{})}
	if f.now == nil {
		f.now, f.failed = map[string]*flying[T]{}, map[string]failure{}
	}
	f.now[key] = w
	go func() {
		defer cancel()
		question := Question[T](func(ctx context.Context, _ T, _ bool) (T, error) { return work(ctx) })
		w.value, w.err = question.put(run, w.value, false)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.note(key, w)
		f.drop(key, w)
		close(w.done)
	}()
	return w, nil
}

// note remembers a failure, unless nobody waits for the work any more and it
// was cancelled; f.mu is held.
func (f *Flight[T]) note(key string, w *flying[T]) {
	delete(f.failed, key)
	if w.err == nil || w.waiting == 0 {
		return
	}
	if len(f.failed) >= mostFailures {
		maps.DeleteFunc(f.failed, func(_ string, past failure) bool { return time.Since(past.at) >= FailureAge })
	}
	if len(f.failed) < mostFailures {
		f.failed[key] = failure{time.Now(), w.err}
	}
}

// drop makes room for the next; f.mu is held.
func (f *Flight[T]) drop(key string, w *flying[T]) {
	if f.now[key] == w {
		delete(f.now, key)
	}
}

func (f *Flight[T]) leave(key string, w *flying[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.waiting--; w.waiting == 0 {
		w.cancel()
		// Who comes now must not wait for what was cancelled.
		f.drop(key, w)
	}
}
