package compare

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hashBuffer is the first size of the buffer that a canonical form is written
// into: enough for most objects, so that it is allocated once.
const hashBuffer = 4096

// Hash returns a stable hash of the content of a desired object: the same for
// every order of keys and every form of a number.
func Hash(desired *unstructured.Unstructured) string {
	if desired == nil {
		return ""
	}
	return digest(appendValue(make([]byte, 0, hashBuffer), desired.Object, nil))
}

// digest shortens a canonical form to 128 bits, which is plenty to tell apart
// the states of one object.
func digest(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:16])
}

// appendValue appends a canonical, unambiguous form of v without what skip
// names. Strings carry their length instead of quotes: nothing needs escaping.
func appendValue(b []byte, v any, skip pointers) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, 'n')
	case string:
		return appendString(b, v)
	case bool:
		if v {
			return append(b, 't')
		}
		return append(b, 'f')
	case map[string]any:
		return appendMap(b, v, skip)
	case []any:
		return appendList(b, v, skip)
	default:
		return appendScalar(b, v)
	}
}

func appendMap(b []byte, m map[string]any, skip pointers) []byte {
	var room [16]string
	keys := room[:0]
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b = append(b, '{')
	for _, k := range keys {
		next, hit := skip.step(k)
		if hit {
			continue
		}
		b = appendString(b, k)
		b = appendValue(b, m[k], next)
	}
	return append(b, '}')
}

func appendList(b []byte, list []any, skip pointers) []byte {
	b = append(b, '[')
	for i, v := range list {
		next, hit := skip.index(i)
		if hit {
			continue
		}
		b = appendValue(b, v, next)
	}
	return append(b, ']')
}

func appendString(b []byte, s string) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, ':')
	return append(b, s...)
}

// appendScalar appends numbers, and anything foreign that a caller built an object from.
func appendScalar(b []byte, v any) []byte {
	b = append(b, '#')
	if i, ok := asInt(v); ok {
		b = strconv.AppendInt(b, i, 10)
		return append(b, ';')
	}
	if f, ok := asFloat(v); ok {
		b = strconv.AppendFloat(b, f, 'g', -1, 64)
		return append(b, ';')
	}
	return appendString(b, fmt.Sprintf("%T %v", v, v))
}

// asInt returns v as an integer when it is one, in whichever form it was decoded.
func asInt(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case float64:
		if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			return int64(n), true
		}
	case float32:
		return asInt(float64(n))
	case json.Number:
		if i, err := n.Int64(); err == nil {
			return i, true
		}
		if f, err := n.Float64(); err == nil {
			return asInt(f)
		}
	}
	return 0, false
}

// asFloat returns v as a floating-point number when it is a number.
func asFloat(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case float32:
		return float64(n), true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	case uint64:
		return float64(n), true
	}
	if i, ok := asInt(v); ok {
		return float64(i), true
	}
	return 0, false
}
