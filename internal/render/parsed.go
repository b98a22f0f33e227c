package render

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/recent"
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
	if objs, ok := r.parsed.Get(digest); ok {
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
	r.parsed.Put(digest, objs, int64(len(blob)))
	return objs, nil
}

// parsedFor is how long manifests stay parsed after they were last used: the
// store has them, and a repair after a quiet time reads them again.
const parsedFor = 30 * time.Second

// parsedCache are the manifests that were used last, by digest.
type parsedCache = recent.Cache[string, []rutter.Object]

func newParsedCache(maxBytes int64) *parsedCache {
	return recent.New[string, []rutter.Object](maxBytes, parsedFor)
}
