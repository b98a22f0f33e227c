package archtest

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestHabits(t *testing.T) {
	for _, c := range []struct {
		reason string
		p      Package
		want   string
	}{
		{"no comment", Package{ImportPath: module + "/internal/x", Name: "x", GoFiles: []string{"x.go"}}, "no package comment"},
		{"tests alone need none", Package{ImportPath: module + "/test/x", Name: "x"}, ""},
		{"an empty name", Package{ImportPath: module + "/internal/util", Name: "util", Doc: "d"}, "a name that says nothing"},
		{"under another name", Package{ImportPath: module + "/internal/x", Name: "helpers", Doc: "d"}, "a name that says nothing"},
		{"a folder on the way", Package{ImportPath: module + "/internal/common/strings", Name: "strings", Doc: "d"}, "a name that says nothing"},
		{"in the other module", Package{ImportPath: module + "/localcluster/internal/misc", Name: "misc", Doc: "d"}, "a name that says nothing"},
		{"all is well", Package{ImportPath: module + "/internal/plan", Name: "plan", Doc: "d", GoFiles: []string{"x.go"}}, ""},
	} {
		check(t, c.reason, Habits(c.p), c.want)
	}
}

func TestModuleCatches(t *testing.T) {
	for _, c := range []struct{ reason, line, want string }{
		{"a replace", "replace k8s.io/api => ../api", "no replace"},
		{"a block of them", "replace (\n\tk8s.io/api => ../api\n)", "no replace"},
		{"Kubernetes itself", "require (\n\tk8s.io/kubernetes v1.37.2\n)", "module localcluster"},
		{"on one line", "require k8s.io/kubernetes v1.37.2", "module localcluster"},
		{"etcd", "require go.etcd.io/etcd/server/v3 v3.7.0 // indirect", "module localcluster"},
		{"the other module", "require github.com/rutterhq/rutter/localcluster v0.0.0", "module localcluster"},
		{"a word in a comment", "// replace nothing", ""},
		{"a library", "require k8s.io/kubernetes-sigs v1.0.0", ""},
	} {
		check(t, c.reason, Module([]byte("module github.com/rutterhq/rutter\n\ngo 1.26\n\n"+c.line+"\n")), c.want)
	}
}

func TestUnfinished(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"// TO" + "DO: later", "x.go:2: TO" + "DO"},
		{"f() // FIX" + "ME", "x.go:2: FIX" + "ME"},
		{"// XX" + "X", "x.go:2: // XX" + "X"},
		{"f() //XX" + "X: odd", "x.go:2: //XX" + "X"},
		{"// go test -run XX" + "X -bench .", ""},
		{"const TO" + "DOS = 1", ""},
		{"ctx := context.TO" + "DO()", ""},
		{"// what is to do is done", ""},
	} {
		check(t, c.line, Unfinished("x.go", []byte("package x\n"+c.line+"\n")), c.want)
	}
}

func TestStale(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	generated := func(_ string, data []byte) bool { return strings.HasPrefix(string(data), "generated") }
	fresh := fstest.MapFS{"a/same": file("generated 1"), "a/changed": file("generated 2"), "new": file("generated 3"), "by hand": file("4")}
	tree := fstest.MapFS{"a/same": file("generated 1"), "a/changed": file("generated 0"), "gone": file("generated 5"), "notes": file("6")}
	got, err := Stale(fresh, tree, generated)
	want := []string{"a/changed is not fresh: run make generate", "gone is generated from nothing any more: remove it", "new is missing: run make generate"}
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}
