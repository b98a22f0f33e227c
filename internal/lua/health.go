package lua

import (
	"slices"
	"time"

	glua "github.com/yuin/gopher-lua"

	"github.com/rutterhq/rutter"
)

// states are those that a script may say.
var states = []rutter.HealthState{rutter.Healthy, rutter.Progressing, rutter.Degraded, rutter.Suspended, rutter.Missing, rutter.HealthUnknown}

// Health assesses an object: the script reads the global obj and returns a table
// with status and message. An empty answer is no health. A script that fails, or
// says a status that is none, makes the object Unknown: never Healthy.
func (s *Script) Health(obj map[string]any, now time.Time) (rutter.Health, error) {
	out, err := s.run(map[string]any{"obj": obj}, now)
	if err != nil {
		return rutter.Health{Status: rutter.HealthUnknown, Reason: "ScriptFailed", Message: err.Error()}, err
	}
	t, ok := out.(*glua.LTable)
	if !ok {
		if out == glua.LNil {
			return rutter.Health{}, nil
		}
		err := rutter.Errorf(rutter.CodeInvalid, "%s: returns a %s, want a table with status and message", s.name, out.Type())
		return rutter.Health{Status: rutter.HealthUnknown, Reason: "ScriptFailed", Message: err.Error()}, err
	}
	h := rutter.Health{Message: textOf(t, "message")}
	status := textOf(t, "status")
	if status == "" {
		return h, nil
	}
	h.Status = rutter.HealthState(status)
	if !slices.Contains(states, h.Status) {
		return rutter.Health{Status: rutter.HealthUnknown, Reason: "InvalidStatus", Message: "Lua returned an invalid health status"}, nil
	}
	return h, nil
}

func textOf(t *glua.LTable, key string) string {
	if v := t.RawGetString(key); v.Type() == glua.LTString || v.Type() == glua.LTNumber {
		return v.String()
	}
	return ""
}
