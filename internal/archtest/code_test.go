package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// source parses one file of a package x; imports first, then the body.
func source(t *testing.T, fset *token.FileSet, imports, body string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(fset, "x.go", "package x\n"+imports+"\n"+body, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestImpure(t *testing.T) {
	for _, c := range []struct{ reason, imports, body, want string }{
		{"a goroutine", "", "func f() { go f() }", "starts a goroutine"},
		{"the clock", `import "time"`, "var now = time.Now()", "time.Now"},
		{"the clock as a value", `import "time"`, "var now = time.Now", "time.Now"},
		{"the clock by another name", `import clock "time"`, "func f() { clock.Sleep(1) }", "time.Sleep"},
		{"how long ago", `import "time"`, "func f(t time.Time) bool { return time.Since(t) > 0 }", "time.Since"},
		{"a timer", `import "time"`, "func f() { <-time.After(1) }", "time.After"},
		{"a duration is a number", `import "time"`, "const d = 3 * time.Second", ""},
		{"time as an argument", `import "time"`, "func f(now, t time.Time) bool { return now.After(t) }", ""},
		{"another package's Now", `import "example.com/clock"`, "var t = clock.Now()", ""},
	} {
		fset := token.NewFileSet()
		check(t, c.reason, Impure(fset, source(t, fset, c.imports, c.body)), c.want)
	}
}

func TestState(t *testing.T) {
	for _, c := range []struct{ reason, imports, body, want string }{
		{"an init function", "", "func init() {}", "init function"},
		{"a method called init", "", "type T struct{}\nfunc (T) init() {}", ""},
		{"a counter", "", "var n int\nfunc f() { n++ }", "writes n"},
		{"an assignment", "", "var n int\nfunc f() { n = 1 }", "writes n"},
		{"a map", "", "var m = map[string]int{}\nfunc f() { m[`a`] = 1 }", "writes m"},
		{"a field of an element", "", "var m [3]struct{ n int }\nfunc f() { m[1].n += 2 }", "writes m"},
		{"through a pointer", "", "var p *int\nfunc f() { (*p) = 2 }", "writes p"},
		{"delete", "", "var m = map[string]int{}\nfunc f() { delete(m, `a`) }", "writes m"},
		{"in a method, from a closure", "", "var n int\ntype T struct{}\nfunc (T) f() { func() { n = 1 }() }", "writes n"},
		{"a lock", `import "sync"`, "var mu sync.Mutex", "lock of the whole package"},
		{"an atomic", `import "sync/atomic"`, "var n atomic.Int64", "lock of the whole package"},
		{"a dot import", `import . "strings"`, "", "dot import"},
		{"a table", "", "var m = map[string]int{`a`: 1}\nfunc f() int { return m[`a`] }", ""},
		{"a pool", `import "sync"`, "var p sync.Pool", ""},
		{"a local of the same name", "", "var n int\nfunc f() { n := 1; n = 2; _ = n }", ""},
		{"a parameter of the same name", "", "var n int\nfunc f(n int) { n++ }", ""},
		{"a field of the same name", "", "var n int\ntype T struct{ n int }\nfunc (t *T) f() { t.n = 1 }", ""},
	} {
		fset := token.NewFileSet()
		check(t, c.reason, State(fset, "x", []*ast.File{source(t, fset, c.imports, c.body)}), c.want)
	}
}

// TestStateAcrossFiles: the variable is in one file, the write in another.
func TestStateAcrossFiles(t *testing.T) {
	fset := token.NewFileSet()
	files := []*ast.File{source(t, fset, "", "var n int"), source(t, fset, `import "fmt"`, "func f() { n = 1; fmt.Println(n) }")}
	check(t, "two files", State(fset, "x", files), "writes n")
}

// check wants exactly one finding with the text, or none where it is empty.
func check(t *testing.T, reason string, got []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("%s: %q", reason, got)
	case want != "" && (len(got) != 1 || !strings.Contains(got[0], want)):
		t.Errorf("%s: got %q, want one with %q", reason, got, want)
	}
}
