package forge

import (
	"container/list"
	"net/http"
	"sync"
)

// shelf keeps the last answers to questions, each as one login saw it, so that
// the service need only say that one still holds. The least recently used leave
// first; what has left is read anew.
type shelf struct {
	budget int64

	mu    sync.Mutex
	used  int64
	order *list.List
	items map[string]*list.Element
}

// kept is an answer. It is not changed after it was put down.
type kept struct {
	key    string
	etag   string
	header http.Header
	body   []byte
}

func newShelf(budget int64) *shelf {
	return &shelf{budget: budget, order: list.New(), items: map[string]*list.Element{}}
}

// get returns what is kept for a question, or nil.
func (s *shelf) get(key string) *kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.items[key]
	if !ok {
		return nil
	}
	s.order.MoveToFront(e)
	return e.Value.(*kept)
}

// put keeps an answer that has a mark to ask by, in place of an older one.
func (s *shelf) put(key string, r *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.items[key]; ok {
		s.drop(e)
	}
	k := &kept{key: key, etag: r.header.Get("ETag"), header: http.Header{}, body: r.body}
	if k.etag == "" || len(k.etag) > 1024 || k.size() > s.budget/4 {
		return
	}
	for _, name := range []string{"Link", "X-Total", "X-Total-Count", "X-Ms-Continuationtoken"} {
		if v, ok := r.header[name]; ok {
			k.header[name] = v
		}
	}
	s.items[key] = s.order.PushFront(k)
	s.used += k.size()
	for s.used > s.budget {
		s.drop(s.order.Back())
	}
}

// drop is called with s.mu held.
func (s *shelf) drop(e *list.Element) {
	k := e.Value.(*kept)
	s.order.Remove(e)
	delete(s.items, k.key)
	s.used -= k.size()
}

// size is about what k takes in memory.
func (k *kept) size() int64 { return int64(len(k.body) + len(k.etag) + len(k.key) + 512) }
