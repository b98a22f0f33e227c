package lua

import (
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func object() map[string]any {
	return map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a", "generation": int64(3)},
		"status": map[string]any{"phase": "Ready", "conditions": []any{map[string]any{"type": "Ready", "status": "True", "message": "all is well"}}}}
}

// TestHealth: scripts as people write them into argocd-cm.
func TestHealth(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		open   bool
		want   rutter.Health
		err    string
	}{
		"conditions": {script: `hs = {}
if obj.status ~= nil and obj.status.conditions ~= nil then
  for i, condition in ipairs(obj.status.conditions) do
    if condition.type == "Ready" and condition.status == "True" then
      hs.status = "Healthy"
      hs.message = condition.message .. " (" .. i .. ")"
      return hs
    end
  end
end
hs.status = "Progressing"
return hs`, want: rutter.Health{Status: rutter.Healthy, Message: "all is well (1)"}},
		"numbers":          {script: `return {status = obj.metadata.generation == 3 and "Healthy" or "Degraded", message = obj.metadata.generation}`, want: rutter.Health{Status: rutter.Healthy, Message: "3"}},
		"nothing":          {script: `return nil`},
		"an empty answer":  {script: `return {}`},
		"no answer":        {script: `x = 1`},
		"a clock":          {script: `return {status = "Healthy", message = os.time() .. os.date("!%Y-%m-%dT%H:%M:%SZ")}`, want: rutter.Health{Status: rutter.Healthy, Message: "17855856002026-08-01T12:00:00Z"}},
		"a time":           {script: `return {status = "Healthy", message = os.time({year=2026, month=8, day=1, hour=12}) - os.time()}`, want: rutter.Health{Status: rutter.Healthy, Message: "0"}},
		"an order":         {script: `local s = "" for k in pairs(obj) do s = s .. k .. " " end return {status = "Healthy", message = s}`, want: rutter.Health{Status: rutter.Healthy, Message: "apiVersion kind metadata status "}},
		"table functions":  {script: `local t = {} table.insert(t, "a") table.insert(t, 2) return {status = "Suspended", message = table.concat(t, ",")}`, want: rutter.Health{Status: rutter.Suspended, Message: "a,2"}},
		"a made-up status": {script: `return {status = "Great"}`, want: rutter.Health{Status: rutter.HealthUnknown, Reason: "InvalidStatus", Message: "Lua returned an invalid health status"}},
		"open libraries":   {open: true, script: `return {status = "Healthy", message = string.format("%s %d", string.upper(obj.kind), math.floor(2.5)) .. ("x"):rep(3)}`, want: rutter.Health{Status: rutter.Healthy, Message: "THING 2xxx"}},
		"closed ones":      {script: `return {status = string.upper("x")}`, err: "attempt to index"},
		"a list":           {script: `return "Healthy"`, err: "returns a string"},
		"an error":         {script: `error("no luck")`, err: "no luck"},
		"nil fields":       {script: `return {status = obj.spec.replicas}`, err: "attempt to index"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile("health.lua", tc.script, tc.open)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // it may run again
				h, err := s.Health(object(), noon)
				if tc.err != "" {
					if err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), "health.lua") || h.Status != rutter.HealthUnknown {
						t.Errorf("%+v, %v; want %q", h, err, tc.err)
					}
					continue
				}
				if err != nil || h != tc.want {
					t.Errorf("%+v, %v; want %+v", h, err, tc.want)
				}
			}
		})
	}
}

// TestLimits: no script reaches the machine, runs for ever or fills the memory.
func TestLimits(t *testing.T) {
	for name, tc := range map[string]struct{ script, err string }{
		"for ever":           {`while true do end`, "instructions"},
		"for ever, guarded":  {`while true do pcall(function() while true do end end) end`, "instructions"},
		"repeat":             {`repeat local x = 1 until false`, "instructions"},
		"deep":               {`local function f() return 1 + f() end return f()`, "stack overflow"},
		"deep, guarded":      {`local function f() pcall(f) pcall(f) end f() return {status = "Healthy"}`, "instructions"},
		"doubling":           {`local s = "xxxxxxxxxxxxxxxx" while true do s = s .. s end`, "bytes of text"},
		"doubling in a call": {`local function d(s) return d(s .. s) end d("xxxxxxxxxxxxxxxx")`, "bytes of text"},
		"rep":                {`return {status = ("x"):rep(1e9)}`, "bytes of text"},
		"rep of rep":         {`local s = ("x"):rep(1e6) return {status = s:rep(1e6)}`, "bytes of text"},
		"gsub":               {`local s = ("x"):rep(1e5) while true do s = s:gsub("x", "xxxxxxxxxx") end`, "may take too long"},
		"a costly pattern":   {`return ("a"):rep(40):find(".-.-.-.-.-.-.-.-b")`, "may take too long"},
		"a long text":        {`return ("a"):rep(1e5):find("a+b")`, "may take too long"},
		"short texts":        {`local n = 0 for i = 1, 200 do if ("v1.30.2"):match("^v(%d+)%.(%d+)%.(%d+)$") then n = n + 1 end end assert(n == 200)`, ""},
		"gsub with a table":  {`local s = ("x"):rep(1e6) for i = 1, 100 do s = s:gsub("x", {x = "yy"}):sub(1, 1000000) end`, "may take too long"},
		"format":             {`return {status = string.format("%999999999d", 1)}`, ""},
		"concat":             {`local t = {} for i = 1, 100 do t[i] = ("x"):rep(1e5) end local s = "" while true do s = s .. table.concat(t) end`, "bytes of text"},
		"unpack":             {`return select("#", unpack({}, 1, 1e7))`, ""},
		"many keys":          {`local t = {} for i = 1, 1e9 do t[i] = i end`, "instructions"},
		"files":              {`return io.open("/etc/passwd")`, "attempt to index"},
		"processes":          {`return os.execute("id")`, "attempt to call"},
		"environment":        {`return os.getenv("HOME")`, "attempt to call"},
		"code":               {`return loadstring("return 1")`, "attempt to call"},
		"modules":            {`return require("os")`, "attempt to call"},
		"a file of code":     {`dofile("/etc/passwd")`, "attempt to call"},
		"itself":             {`local t = {} t.t = t return t`, ""},
		"a metatable":        {`local t = setmetatable({}, {__index = function(t, k) return t[k] end}) return {status = t.x}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile("health.lua", tc.script, true)
			if err != nil {
				t.Fatal(err)
			}
			h, err := s.Health(object(), noon)
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%+v, %v; want %q", h, err, tc.err)
			}
			if err != nil && h.Status != rutter.HealthUnknown {
				t.Errorf("a script that failed says %q", h.Status)
			}
		})
	}
	if _, err := Compile("x", strings.Repeat("(", 1<<20), false); rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Error(err)
	}
	if _, err := Compile("x", strings.Repeat("(", 100<<10)+"1"+strings.Repeat(")", 20<<10), false); rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Error(err)
	}
	if _, err := Compile("custom.lua", "return {", false); err == nil || !strings.Contains(err.Error(), "custom.lua") {
		t.Error(err)
	}
}

// FuzzHealth: whatever is written, it ends, and nothing panics.
func FuzzHealth(f *testing.F) {
	for _, s := range []string{`return {status = "Healthy"}`, `while true do end`, `local s = "a" for i = 1, 99 do s = s .. s end`, `return obj.status.conditions[1]`, `for k, v in pairs(obj) do obj[k] = nil end`} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, script string, open bool) {
		s, err := Compile("fuzz", script, open)
		if err != nil {
			return
		}
		if h, err := s.Health(object(), noon); err != nil && h.Status != rutter.HealthUnknown {
			t.Errorf("%v and %q", err, h.Status)
		}
	})
}

func BenchmarkHealth(b *testing.B) {
	s, err := Compile("health.lua", `for i, c in ipairs(obj.status.conditions) do if c.type == "Ready" then return {status = "Healthy", message = c.message} end end return {status = "Progressing"}`, false)
	if err != nil {
		b.Fatal(err)
	}
	obj := object()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Health(obj, noon); err != nil {
			b.Fatal(err)
		}
	}
}
