// Package lint_test checks rutter lint against the mistakes that the guides
// warn of (testdata/anti-patterns, one folder each, named by its rule) and
// against the example fleet, which has none.
package lint_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter/internal/lint"
)

var update = flag.Bool("update", false, "write the golden file")

// read returns all files below a folder.
func read(t *testing.T, root string) []lint.File {
	t.Helper()
	var files []lint.File
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !lint.Reads(name) {
			return err
		}
		content, err := os.ReadFile(name)
		rel, _ := filepath.Rel(root, name) // it lies below
		files = append(files, lint.File{Path: filepath.ToSlash(rel), Content: content})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func format(findings []lint.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s:%d:%d: %s: %s: %s [%s]\n    %s\n", f.File, f.Line, f.Column, f.Severity, f.Rule, f.Message, f.Object, f.Remedy)
	}
	return b.String()
}

func TestAntiPatterns(t *testing.T) {
	root := filepath.Join("testdata", "anti-patterns")
	golden := filepath.Join("testdata", "anti-patterns.golden")
	findings := lint.Check(read(t, root), lint.Options{})
	got := format(findings)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("findings (-want +got, -update writes them):\n%s", diff)
	}
	dirs, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	// Each folder is found by the rule that it is named after, and by it alone.
	for _, dir := range dirs {
		own := slices.ContainsFunc(findings, func(f lint.Finding) bool { return f.Rule == dir.Name() && strings.HasPrefix(f.File, dir.Name()+"/") })
		if !own {
			t.Errorf("nothing is found in %s", dir.Name())
		}
	}
	for _, f := range findings {
		if dir, _, _ := strings.Cut(f.File, "/"); dir != f.Rule {
			t.Errorf("%s is found in %s:%d too: %s", f.Rule, f.File, f.Line, f.Message)
		}
	}
	// Every rule is shown by a folder, but for those about lint's own settings and size.
	for _, r := range lint.Rules() {
		if _, err := os.Stat(filepath.Join(root, r.ID)); err != nil && !slices.Contains([]string{"config", "ignore-comment", "big-app-of-apps"}, r.ID) {
			t.Errorf("no folder shows the rule %s", r.ID)
		}
	}
}

func TestExampleFleetIsClean(t *testing.T) {
	if findings := lint.Check(read(t, filepath.Join("..", "..", "examples", "fleet")), lint.Options{}); len(findings) > 0 {
		t.Errorf("examples/fleet:\n%s", format(findings))
	}
}
