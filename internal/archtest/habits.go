package archtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// emptyNames say nothing about what is inside.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "lib"}

// Habits says what is wrong with a package in itself.
func Habits(p Package) []string {
	var bad []string
	if p.Doc == "" && len(p.GoFiles) > 0 {
		bad = append(bad, p.ImportPath+" has no package comment: say what it does and in which ring it is")
	}
	for part := range strings.SplitSeq(rel(p.ImportPath)+"/"+p.Name, "/") {
		if slices.Contains(emptyNames, part) {
			bad = append(bad, p.ImportPath+" has a name that says nothing: a helper used by two lives in the lower one; used by three it is a concept, so name it")
			break
		}
	}
	return bad
}

// Module says what is wrong with the product's go.mod: a replace would break
// go install, and Kubernetes itself would weigh minutes on every build.
func Module(gomod []byte) []string {
	var bad []string
	for line := range strings.Lines(string(gomod)) {
		line = strings.TrimSpace(line)
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		switch {
		case line == "" || strings.HasPrefix(line, "//"):
		case fields[0] == "replace", strings.HasPrefix(line, "replace("):
			bad = append(bad, "go.mod: "+line+": no replace in the product's module")
		case fields[0] == "k8s.io/kubernetes", fields[0] == "go.etcd.io/etcd/server/v3", below(fields[0], module+"/localcluster"):
			bad = append(bad, "go.mod: "+line+": this belongs to the module localcluster")
		}
	}
	return bad
}

// unfinished are the marks of unfinished work: two are words of their own, the
// third is one only at the start of a comment (go test -run takes it to run nothing).
var unfinished = regexp.MustCompile(`\b(?:TO` + `DO|FIX` + `ME)\b|//\s*XX` + `X\b`)

// Unfinished finds marks of unfinished work in a Go file: what is not done is
// said in an issue, not in the code.
func Unfinished(name string, src []byte) []string {
	var bad []string
	for i, line := range bytes.Split(src, []byte("\n")) {
		// The context of that name has its own rule in .golangci.yaml.
		line = bytes.ReplaceAll(line, []byte("context.TO"+"DO"), nil)
		if mark := unfinished.Find(line); mark != nil {
			bad = append(bad, fmt.Sprintf("%s:%d: %s", name, i+1, mark))
		}
	}
	return bad
}

// Stale compares what a generator makes now with what is in the tree: files that
// differ, that are missing, and that nothing generates any more. generated says
// of a file in the tree whether a generator should have made it.
func Stale(fresh, tree fs.FS, generated func(name string, data []byte) bool) ([]string, error) {
	var bad []string
	err := fs.WalkDir(fresh, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		want, err := fs.ReadFile(fresh, name)
		if err != nil || !generated(name, want) {
			return err
		}
		if got, err := fs.ReadFile(tree, name); err != nil {
			bad = append(bad, name+" is missing: run make generate")
		} else if !bytes.Equal(want, got) {
			bad = append(bad, name+" is not fresh: run make generate")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil || !generated(name, data) {
			return err
		}
		if _, err := fs.Stat(fresh, name); err != nil {
			bad = append(bad, name+" is generated from nothing any more: remove it")
		}
		return nil
	})
	return bad, err
}
