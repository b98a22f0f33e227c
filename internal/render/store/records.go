package store

import (
	"container/list"
	"sync"
)

// records keeps the records of the declarations that were asked for last in
// memory, up to a size in bytes of their JSON. It is safe for concurrent use.
type records struct {
	max int64

	mu    sync.Mutex
	size  int64
	order *list.List // of *record, last used first
	by    map[string]*list.Element
}

type record struct {
	key   string
	known []Render
	size  int64
}

func newRecords(maxBytes int64) *records {
	return &records{max: maxBytes, order: list.New(), by: map[string]*list.Element{}}
}

func (c *records) get(key string) ([]Render, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.by[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	r, ok := e.Value.(*record)
	return r.known, ok
}

func (c *records) put(key string, known []Render, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.by[key]; ok {
		c.remove(e)
	}
	c.by[key] = c.order.PushFront(&record{key: key, known: known, size: size})
	c.size += size
	for c.size > c.max && c.order.Len() > 1 {
		c.remove(c.order.Back())
	}
}

// remove takes an entry out; c.mu is held.
func (c *records) remove(e *list.Element) {
	if r, ok := e.Value.(*record); ok {
		delete(c.by, r.key)
		c.size -= r.size
	}
	c.order.Remove(e)
}
