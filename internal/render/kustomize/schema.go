package kustomize

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/rutterhq/rutter"
)

// schemaLock guards the library's global OpenAPI schema. A kustomization with an
// openapi field replaces it for everybody, so such a one renders alone and the
// schema is put back afterwards; all others render together.
//
// It is no plain RWMutex, because in that one who waits to be alone holds up all
// who come later, and one render that never ends would then stop every other.
// Here those who come later give way for a moment only.
type schemaLock struct {
	mu      sync.RWMutex
	waiting atomic.Int32
}

const (
	// step is how often one looks again, givingWay how often others let it go first.
	step      = 2 * time.Millisecond
	givingWay = 50
)

// together runs f beside others.
func (l *schemaLock) together(ctx context.Context, f func() error) error {
	for range givingWay {
		if l.waiting.Load() == 0 {
			break
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	for !l.mu.TryRLock() {
		if err := pause(ctx); err != nil {
			return err
		}
	}
	defer l.mu.RUnlock()
	return f()
}

// alone runs f while nobody else does.
func (l *schemaLock) alone(ctx context.Context, f func() error) error {
	l.waiting.Add(1)
	for !l.mu.TryLock() {
		if err := pause(ctx); err != nil {
			l.waiting.Add(-1)
			return err
		}
	}
	l.waiting.Add(-1)
	defer l.mu.Unlock()
	defer openapi.ResetOpenAPI()
	return f()
}

// pause waits a step, or says that the render's time is up.
func pause(ctx context.Context) error {
	t := time.NewTimer(step)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return rutter.Errorf(rutter.CodeUnavailable, "a kustomization with an openapi field renders alone, and the others took too long: %w", context.Cause(ctx))
	case <-t.C:
		return nil
	}
}
