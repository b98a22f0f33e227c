package helm

import (
	"container/list"
	"errors"
	"sync"
)

var errUnfinished = errors.New("it was not finished")

// cache keeps what is made from content, by the content's hash, up to a cost.
// What many ask for at the same time is made once. It is safe for concurrent use.
type cache[V any] struct {
	mu    sync.Mutex
	max   int64
	used  int64
	by    map[string]*cached[V]
	order *list.List // the least recently used last
}

type cached[V any] struct {
	key  string
	once sync.Once
	v    V
	err  error
	// cost is what it was counted with; zero until it is finished.
	cost int64
	at   *list.Element
}

func newCache[V any](limit int64) *cache[V] {
	return &cache[V]{max: limit, by: map[string]*cached[V]{}, order: list.New()}
}

// get returns what is kept under key, or makes it. Failures are not kept.
func (c *cache[V]) get(key string, build func() (v V, cost int64, err error)) (V, error) {
	e := c.entry(key)
	e.once.Do(func() {
		e.err = errUnfinished // stays when build panics
		var cost int64
		defer func() { c.settle(e, cost) }()
		e.v, cost, e.err = build()
	})
	return e.v, e.err
}

func (c *cache[V]) entry(key string) *cached[V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.by[key]; ok {
		c.order.MoveToFront(e.at)
		return e
	}
	e := &cached[V]{key: key}
	e.at = c.order.PushFront(e)
	c.by[key] = e
	return e
}

// settle counts a new entry and makes room for it.
func (c *cache[V]) settle(e *cached[V], cost int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by[e.key] != e {
		return // it has been pushed out meanwhile
	}
	if e.err != nil {
		c.drop(e)
		return
	}
	e.cost = cost
	c.used += cost
	for last := c.order.Back(); c.used > c.max && last != nil; last = c.order.Back() {
		old, _ := last.Value.(*cached[V])
		c.drop(old)
	}
}

func (c *cache[V]) drop(e *cached[V]) {
	if c.by[e.key] == e {
		delete(c.by, e.key)
		c.order.Remove(e.at)
		c.used -= e.cost
	}
}
