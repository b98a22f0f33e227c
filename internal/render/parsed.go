package render

import (
	"container/list"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rutterhq/rutter"
)

// stored is one object as it lies in the store.
type stored struct {
	Origin rutter.Origin  `json:"origin"`
	Random []string       `json:"random,omitempty"`
	Object map[string]any `json:"object"`
}

// encode is deterministic: JSON writes the keys of a map in order.
func encode(objs []rutter.Object) ([]byte, error) {
	out := make([]stored, len(objs))
	for i, o := range objs {
		out[i] = stored{Origin: o.Origin, Random: o.Random, Object: o.Object}
	}
	blob, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return blob, nil
}

func decode(blob []byte) ([]rutter.Object, error) {
	var in []stored
	if err := utiljson.Unmarshal(blob, &in); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	objs := make([]rutter.Object, len(in))
	for i, s := range in {
		if err := utiljson.ConvertMapNumbers(s.Object, 0); err != nil {
			return nil, fmt.Errorf("read numbers: %w", err)
		}
		objs[i] = rutter.Object{Unstructured: &unstructured.Unstructured{Object: s.Object}, Origin: s.Origin, Random: s.Random}
	}
	return objs, nil
}

// objects returns stored objects, from memory where they are still parsed.
func (r *Renderer) objects(digest string) ([]rutter.Object, error) {
	if objs, ok := r.parsed.get(digest); ok {
		return objs, nil
	}
	if r.opts.Store == nil {
		return nil, rutter.Errorf(rutter.CodeNotFound, "the manifests %s are no longer in memory, and there is no render store", digest)
	}
	blob, err := r.opts.Store.Blob(digest)
	if err != nil {
		return nil, fmt.Errorf("load manifests: %w", err)
	}
	objs, err := decode(blob)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "load manifests %s: %w", digest, err)
	}
	r.parsed.put(digest, objs, int64(len(blob)))
	return objs, nil
}

// parsedCache keeps the manifests that were used last, up to a size.
type parsedCache struct {
	max int64

	mu    sync.Mutex
	size  int64
	order *list.List // of *parsed, last used first
	by    map[string]*list.Element
}

type parsed struct {
	digest string
	objs   []rutter.Object
	size   int64
}

func newParsedCache(maxBytes int64) *parsedCache {
	return &parsedCache{max: maxBytes, order: list.New(), by: map[string]*list.Element{}}
}

func (c *parsedCache) get(digest string) ([]rutter.Object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.by[digest]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	p, ok := e.Value.(*parsed)
	return p.objs, ok
}

func (c *parsedCache) put(digest string, objs []rutter.Object, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.by[digest]; ok {
		c.order.MoveToFront(e)
		return
	}
	c.by[digest] = c.order.PushFront(&parsed{digest: digest, objs: objs, size: size})
	c.size += size
	for c.size > c.max && c.order.Len() > 1 {
		last := c.order.Back()
		if p, ok := last.Value.(*parsed); ok {
			delete(c.by, p.digest)
			c.size -= p.size
		}
		c.order.Remove(last)
	}
}
