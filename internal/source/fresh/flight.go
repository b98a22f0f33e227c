package fresh

import (
	"context"
	"sync"

	"github.com/rutterhq/rutter"
)

// Flight lets all who need the same thing at the same time share the making of
// it. The zero value is ready for use. Unlike an Answer it remembers nothing.
type Flight[T any] struct {
	mu  sync.Mutex
	now map[string]*flying[T]
}

type flying[T any] struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{}
	value   T
	err     error
}

// Do returns what work makes, or what it is making for somebody else under the
// same key. Work that nobody waits for any more is cancelled.
func (f *Flight[T]) Do(ctx context.Context, key string, work func(context.Context) (T, error)) (T, error) {
	w := f.join(ctx, key, work)
	defer f.leave(key, w)
	select {
	case <-w.done:
		return w.value, w.err
	case <-ctx.Done():
		var none T
		return none, rutter.Errorf(rutter.CodeUnavailable, "waiting for a download: %w", context.Cause(ctx))
	}
}

func (f *Flight[T]) join(ctx context.Context, key string, work func(context.Context) (T, error)) *flying[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w, ok := f.now[key]; ok {
		w.waiting++
		return w
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &flying[T]{waiting: 1, cancel: cancel, done: make(chan struct{})}
	if f.now == nil {
		f.now = map[string]*flying[T]{}
	}
	f.now[key] = w
	go func() {
		defer cancel()
		question := Question[T](func(ctx context.Context, _ T, _ bool) (T, error) { return work(ctx) })
		w.value, w.err = question.put(run, w.value, false)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.drop(key, w)
		close(w.done)
	}()
	return w
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
