package helmparity

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rutterhq/rutter"
	render "github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/record"
)

// counts is what the suite prints at its end.
type counts struct {
	mu                      sync.Mutex
	equal, failBoth, random int
	stricter, noObjects     []string
}

func (n *counts) add(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// TestParity renders every chart with Rutter and with helm. (Scenario: "output
// equals helm template's".)
func TestParity(t *testing.T) {
	r := render.New(render.Limits{})
	ours, cached := &counts{}, &counts{}
	t.Run("all", func(t *testing.T) {
		for _, c := range ourCharts(t) {
			t.Run(c.name, func(t *testing.T) { t.Parallel(); compare(t, r, c, ours) })
		}
		for _, c := range helmsCharts(t) {
			t.Run(c.name, func(t *testing.T) { t.Parallel(); compare(t, r, c, cached) })
		}
	})
	for _, n := range []*counts{ours, cached} {
		slices.Sort(n.stricter)
		slices.Sort(n.noObjects)
	}
	report := fmt.Sprintf("helm parity: %d of ours, %d of the module cache, %d fail in both\n  %d of them with random fields, which are the only differences\n  %d of the module cache make what is no Kubernetes object, which Rutter refuses: %s\n  %d of ours are stricter here by intent: %s\n",
		ours.equal, cached.equal, ours.failBoth+cached.failBoth, ours.random+cached.random,
		len(cached.noObjects)+len(ours.noObjects), strings.Join(append(cached.noObjects, ours.noObjects...), ", "), len(ours.stricter), strings.Join(ours.stricter, ", "))
	fmt.Print(report)
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // only some of them were asked for
	}
	if total := ours.equal + ours.failBoth; total < 60 {
		t.Errorf("only %d charts of ours are equal, want 60", total)
	}
	if cached.equal < 40 {
		t.Errorf("only %d charts of the module cache are equal", cached.equal)
	}
}

// compare renders one chart with both.
func compare(t *testing.T, r *render.Renderer, c chartCase, n *counts) {
	t.Helper()
	got, gotErr := ours(t, r, c, record.Options{})
	want, wantErr := theirs(t, c)
	switch {
	case gotErr != nil && wantErr != nil:
		t.Logf("fails in both:\n  rutter: %v\n  helm:   %v", gotErr, wantErr)
		n.add(func() { n.failBoth++ })
		return
	case gotErr != nil && c.opts.Differs != "":
		n.add(func() { n.stricter = append(n.stricter, c.name+" ("+c.opts.Differs+")") })
		return
	case gotErr != nil && slices.ContainsFunc(want, func(m map[string]any) bool { return !isObject(m) }):
		t.Logf("no Kubernetes object: %v", gotErr)
		n.add(func() { n.noObjects = append(n.noObjects, c.name) })
		return
	case gotErr != nil:
		t.Fatalf("rutter fails, helm does not: %v", gotErr)
	case wantErr != nil:
		t.Fatalf("helm fails, rutter does not: %v", wantErr)
	}
	if len(got) != len(want) {
		t.Fatalf("rutter renders %d objects, helm %d\nrutter: %v\nhelm: %v", len(got), len(want), names(got), kinds(want))
	}
	random := false
	for i := range got {
		mine := runtime.DeepCopyJSON(got[i].Object)
		for _, pointer := range got[i].Random {
			random = true
			if a, b := remove(mine, pointer), remove(want[i], pointer); a == nil || b == nil {
				t.Errorf("object %d: %s is not in both: %v, %v", i, pointer, a, b)
			}
		}
		if diff := cmp.Diff(plain(t, want[i]), plain(t, mine)); diff != "" {
			t.Errorf("object %d (-helm +rutter):\n%s", i, diff)
		}
	}
	n.add(func() {
		n.equal++
		if random {
			n.random++
		}
	})
}

func names(objs []rutter.Object) (out []string) {
	for _, o := range objs {
		out = append(out, o.Ref().String())
	}
	return out
}

func kinds(objs []map[string]any) (out []string) {
	for _, o := range objs {
		out = append(out, fmt.Sprint(o["kind"]))
	}
	return out
}

// remove takes the field of a JSON pointer out of an object and returns it.
func remove(v any, pointer string) any {
	head, rest, more := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	head = strings.NewReplacer("~1", "/", "~0", "~").Replace(head)
	switch v := v.(type) {
	case map[string]any:
		if more {
			return remove(v[head], "/"+rest)
		}
		old := v[head]
		delete(v, head)
		return old
	case []any:
		var i int
		if _, err := fmt.Sscan(head, &i); err != nil || i >= len(v) {
			return nil
		}
		if more {
			return remove(v[i], "/"+rest)
		}
		old := v[i]
		v[i] = nil
		return old
	}
	return nil
}

// helmsCharts are the charts of Helm's own tests: folders, and archives unpacked.
func helmsCharts(t *testing.T) []chartCase {
	t.Helper()
	m, err := helmModule()
	if err != nil {
		t.Fatal(err)
	}
	var out []chartCase
	err = filepath.WalkDir(m.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(m.Dir, path)
		switch {
		case d.IsDir() || !strings.Contains(rel, "testdata"):
		case d.Name() == "Chart.yaml":
			out = append(out, chartCase{name: "module/" + filepath.Dir(rel), dir: filepath.Dir(path)})
		case strings.HasSuffix(d.Name(), ".tgz"):
			if dir := unpacked(t, path); dir != "" {
				out = append(out, chartCase{name: "module/" + rel, dir: dir})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// unpacked puts an archive into a folder; "" when it holds no single chart.
func unpacked(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", file, "-C", dir).CombinedOutput(); err != nil {
		t.Logf("%s is no archive of a chart: %s", file, out)
		return ""
	}
	found, err := filepath.Glob(filepath.Join(dir, "*", "Chart.yaml"))
	if err != nil || len(found) != 1 {
		t.Logf("%s holds no chart", file)
		return ""
	}
	if _, err := os.Stat(found[0]); err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(found[0])
}
