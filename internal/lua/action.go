package lua

import (
	"maps"
	"slices"
	"time"

	glua "github.com/yuin/gopher-lua"

	"github.com/rutterhq/rutter"
)

const (
	// maxValues, maxText and maxDepth bound what a script may give back: the same
	// table may lie in it any number of times.
	maxValues = 200_000
	maxText   = 4 << 20
	maxDepth  = 100
)

// Discovery runs a script that says which actions an object has: it reads the global
// obj and returns a table by the names of actions.
func (s *Script) Discovery(obj map[string]any, now time.Time) (map[string]any, error) {
	out, err := s.give(map[string]any{"obj": obj}, now)
	if err != nil {
		return nil, err
	}
	switch x := out.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return x, nil
	case []any:
		if len(x) == 0 {
			return nil, nil
		}
	}
	return nil, rutter.Errorf(rutter.CodeInvalid, "%s: returns no table by the names of actions", s.name)
}

// Action runs the script of an action: it reads the globals obj and actionParams, and
// returns what it returns as JSON has it. An empty table is what the object has
// where the table comes from, and a list where the script made it.
func (s *Script) Action(obj map[string]any, params map[string]string, now time.Time) (any, error) {
	given := map[string]any{}
	for k, v := range params {
		given[k] = v
	}
	return s.give(map[string]any{"obj": obj, "actionParams": given}, now)
}

// give runs the script, and takes out of the interpreter what it returns.
func (s *Script) give(globals map[string]any, now time.Time) (any, error) {
	from := map[*glua.LTable]bool{}
	out, err := s.runFrom(globals, now, from)
	if err != nil {
		return nil, err
	}
	t := &taking{maps: from, values: maxValues, text: maxText}
	v, err := t.value(out, 0)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: %w", s.name, err)
	}
	return v, nil
}

// taking turns Lua's values into those of JSON.
type taking struct {
	// maps are the tables that were made from maps.
	maps         map[*glua.LTable]bool
	values, text int
}

func (t *taking) value(v glua.LValue, depth int) (any, error) {
	if t.values--; t.values < 0 || t.text < 0 || depth > maxDepth {
		return nil, rutter.Errorf(rutter.CodeInvalid, "gives back more than an object may be, or a table that lies in itself")
	}
	switch x := v.(type) {
	case *glua.LNilType:
		return nil, nil
	case glua.LBool:
		return bool(x), nil
	case glua.LNumber:
		if n := int64(x); glua.LNumber(n) == x {
			return n, nil
		}
		return float64(x), nil
	case glua.LString:
		t.text -= len(x)
		return string(x), nil
	case *glua.LTable:
		return t.table(x, depth)
	}
	return nil, rutter.Errorf(rutter.CodeInvalid, "gives back a %s, which no object can hold", v.Type())
}

// table is a list when its keys are 1 to n, as the reference has it.
func (t *taking) table(x *glua.LTable, depth int) (any, error) {
	entries := map[string]glua.LValue{}
	listed := 0
	x.ForEach(func(k, v glua.LValue) {
		if n, ok := k.(glua.LNumber); ok && n >= 1 && int(n) <= x.Len() && glua.LNumber(int(n)) == n {
			listed++
		}
		entries[k.String()] = v
	})
	if len(entries) == 0 && t.maps[x] {
		return map[string]any{}, nil
	}
	if listed == len(entries) {
		list := make([]any, 0, listed)
		for i := 1; i <= listed; i++ {
			v, err := t.value(x.RawGetInt(i), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	out := make(map[string]any, len(entries))
	for _, k := range slices.Sorted(maps.Keys(entries)) {
		v, err := t.value(entries[k], depth+1)
		if err != nil {
			return nil, err
		}
		t.text -= len(k)
		out[k] = v
	}
	return out, nil
}
