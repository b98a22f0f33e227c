package git

import (
	"time"

	"github.com/rutterhq/rutter/internal/recent"
)

// cacheFor is how long objects stay in memory after they were last used. All
// renders of a push read them within seconds, and nobody does between pushes.
const cacheFor = 30 * time.Second

// cache keeps the most recently used objects of all mirrors up to a number of
// bytes. Keys name the mirror too: an object is only ever read by who can read
// the repository that it came from.
type cache[V any] struct{ *recent.Cache[objectKey, V] }

type objectKey struct {
	mirror *mirror
	id     objectID
}

func newCache[V any](limit int64) *cache[V] {
	return &cache[V]{recent.New[objectKey, V](limit, cacheFor)}
}

// put keeps a value, unless it alone would push out much of the rest.
func (c *cache[V]) put(k objectKey, v V, size int64) {
	const overhead = 200
	if size += overhead; size <= c.Limit()/4 {
		c.Put(k, v, size)
	}
}
