// Package recent keeps values that were used lately in memory: up to a size, and
// no longer than for a while after their last use, so that a process at rest holds
// nothing that it can read again.
//
// It is below the adapters that use it, and knows none of them.
package recent

import (
	"container/list"
	"sync"
	"time"
)

// Cache is safe for concurrent use.
type Cache[K comparable, V any] struct {
	limit int64
	idle  time.Duration

	mu    sync.Mutex
	size  int64
	order *list.List // of *item, last used first
	by    map[K]*list.Element
	timer *time.Timer // set while there is anything
}

type item[K comparable, V any] struct {
	key   K
	value V
	size  int64
	used  time.Time
}

// New returns a cache of values of a size in all, and for a time after their
// last use. The value that was used last stays whatever its size.
func New[K comparable, V any](limit int64, idle time.Duration) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, idle: idle, order: list.New(), by: map[K]*list.Element{}}
}

// Limit is the size in all.
func (c *Cache[K, V]) Limit() int64 { return c.limit }

// Get returns a value, which counts as a use.
func (c *Cache[K, V]) Get(k K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.by[k]
	if !ok {
		var none V
		return none, false
	}
	c.order.MoveToFront(e)
	x := c.at(e)
	x.used = time.Now()
	return x.value, true
}

// Put keeps a value under a key that has none, and lets go of the values that
// have not been used for longest where there are too many.
func (c *Cache[K, V]) Put(k K, v V, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.by[k]; ok {
		return
	}
	c.by[k] = c.order.PushFront(&item[K, V]{key: k, value: v, size: size, used: time.Now()})
	for c.size += size; c.size > c.limit && c.order.Len() > 1; {
		c.drop(c.order.Back())
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(c.idle, c.expire)
	}
}

// expire lets go of what has not been used for a while.
func (c *Cache[K, V]) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.order.Back(); e != nil; e = c.order.Back() {
		if left := c.idle - time.Since(c.at(e).used); left > 0 {
			c.timer.Reset(left)
			return
		}
		c.drop(e)
	}
	c.timer = nil
	c.by = map[K]*list.Element{} // a map never shrinks
}

func (c *Cache[K, V]) drop(e *list.Element) {
	x := c.at(e)
	c.order.Remove(e)
	delete(c.by, x.key)
	c.size -= x.size
}

func (c *Cache[K, V]) at(e *list.Element) *item[K, V] {
	return e.Value.(*item[K, V]) //nolint:forcetypeassert // nothing else is in the list
}
