package kustomize

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/kustomize/api/resource"
)

// plain returns an object of the library as the JSON that it would print for it
// reads: whole numbers as int64, times as text. Going over the text itself would
// write and parse each object twice.
func plain(res *resource.Resource) (map[string]any, error) {
	m := map[string]any{}
	if err := res.YNode().Decode(&m); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	for k, v := range m {
		p, err := plainValue(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		m[k] = p
	}
	return m, nil
}

func plainValue(v any) (any, error) {
	switch x := v.(type) {
	case map[string]any:
		for k, item := range x {
			p, err := plainValue(item)
			if err != nil {
				return nil, err
			}
			x[k] = p
		}
	case []any:
		for i, item := range x {
			p, err := plainValue(item)
			if err != nil {
				return nil, err
			}
			x[i] = p
		}
	case string:
		return strings.ToValidUTF8(x, "\ufffd"), nil
	case int:
		return int64(x), nil
	case uint64:
		return float64(x), nil // beyond int64, else it would be an int
	case float64:
		return plainFloat(x)
	case time.Time:
		return x.Format(time.RFC3339Nano), nil
	case nil, bool, int64:
	default:
		return nil, fmt.Errorf("a value of type %T cannot be written as JSON: keys must be text, so put quotes around words such as y, n, yes, no, on and off", v)
	}
	return v, nil
}

// plainFloat is an int64 where JSON writes no fraction and the digits fit.
func plainFloat(f float64) (any, error) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, fmt.Errorf("%v cannot be written as JSON", f)
	case f != math.Trunc(f) || math.Abs(f) >= 1e21: // from there on JSON writes an exponent
		return f, nil
	case math.Abs(f) < 1<<53:
		return int64(f), nil
	}
	// Large ones are written with as few digits as tell them apart, which is
	// another whole number than the exact value.
	if n, err := strconv.ParseInt(strconv.FormatFloat(f, 'f', -1, 64), 10, 64); err == nil {
		return n, nil
	}
	return f, nil
}
