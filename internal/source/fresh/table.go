package fresh

import (
	"container/list"
	"sync"
)

// Table keeps what is known of the most recently used remotes, bounded by
// number and, where Cost is set, by size. What falls out is asked for again;
// who holds it goes on using it.
type Table[T any] struct {
	// Most is how many are kept.
	Most int
	// Cost is the size of one, as it is now; Budget bounds the sum. It is called
	// while the table is locked and must not use it.
	Cost   func(T) int64
	Budget int64

	mu    sync.Mutex
	order *list.List
	items map[string]*list.Element
}

type row[T any] struct {
	key   string
	value T
}

// Get returns what is kept under key; make makes it when there is nothing.
func (t *Table[T]) Get(key string, make func() T) T {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.items == nil {
		t.order, t.items = list.New(), map[string]*list.Element{}
	}
	if e, ok := t.items[key]; ok {
		t.order.MoveToFront(e)
		return e.Value.(*row[T]).value
	}
	v := make()
	t.items[key] = t.order.PushFront(&row[T]{key, v})
	t.shrink()
	return v
}

// Shrink drops what is over the budget: sizes may have grown since Get.
func (t *Table[T]) Shrink() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.items != nil {
		t.shrink()
	}
}

// shrink keeps the most recent one, however large it is.
func (t *Table[T]) shrink() {
	var used int64
	n := 0
	for e := t.order.Front(); e != nil; {
		r := e.Value.(*row[T])
		next := e.Next()
		n++
		if t.Cost != nil {
			used += t.Cost(r.value)
		}
		if n > 1 && (n > t.Most || t.Cost != nil && used > t.Budget) {
			t.order.Remove(e)
			delete(t.items, r.key)
		}
		e = next
	}
}

// Clear forgets all of them.
func (t *Table[T]) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.order, t.items = nil, nil
}
