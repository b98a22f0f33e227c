package git

import (
	"container/list"
	"sync"
)

// cache keeps the most recently used objects of all mirrors up to a number of
// bytes. Keys name the mirror too: an object is only ever read by who can read
// the repository that it came from.
type cache[V any] struct {
	mu    sync.Mutex
	limit int64
	used  int64
	order *list.List
	items map[objectKey]*list.Element
}

type objectKey struct {
	mirror *mirror
	id     objectID
}

type cached[V any] struct {
	key   objectKey
	value V
	size  int64
}

func newCache[V any](limit int64) *cache[V] {
	return &cache[V]{limit: limit, order: list.New(), items: map[objectKey]*list.Element{}}
}

func (c *cache[V]) get(k objectKey) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[k]
	if !ok {
		var none V
		return none, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached[V]).value, true
}

// put keeps a value, unless it alone would push out much of the rest.
func (c *cache[V]) put(k objectKey, v V, size int64) {
	const overhead = 200
	size += overhead
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.items[k]; ok || size > c.limit/4 {
		return
	}
	c.items[k] = c.order.PushFront(&cached[V]{key: k, value: v, size: size})
	for c.used += size; c.used > c.limit; {
		old := c.order.Remove(c.order.Back()).(*cached[V])
		delete(c.items, old.key)
		c.used -= old.size
	}
}
