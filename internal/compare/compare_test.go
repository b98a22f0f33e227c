package compare_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

// ours are the options of every test that doesn't ignore anything.
var ours = compare.Options{Manager: rutter.FieldManager}

// sample is one object as it was declared, as a real API server (v1.37.2) shows
// it after our server-side apply, and as the server answers a dry run of
// applying it once more.
type sample struct {
	name                     string
	desired, live, predicted *unstructured.Unstructured
}

func load(t testing.TB, file string) *unstructured.Unstructured {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(b))
}

// parse decodes YAML the way objects reach us: integers as int64.
func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return u
}

func samples(t testing.TB) []sample {
	t.Helper()
	files, err := filepath.Glob("testdata/converged/*.desired.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("testdata/converged: %d samples, %v", len(files), err)
	}
	out := make([]sample, 0, len(files))
	for _, f := range files {
		stem := strings.TrimSuffix(f, ".desired.yaml")
		out = append(out, sample{
			name:    filepath.Base(stem),
			desired: load(t, f), live: load(t, stem+".live.yaml"), predicted: load(t, stem+".predicted.yaml"),
		})
	}
	return out
}

func sampleOf(t testing.TB, name string) sample {
	t.Helper()
	for _, s := range samples(t) {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("no sample %s", name)
	return sample{}
}

// paths returns the paths of a result.
func paths(r compare.Result) []string {
	out := []string{}
	for _, d := range r.Diffs {
		out = append(out, d.Path)
	}
	return out
}

// set writes a value at a path of field names and list indices.
func set(t testing.TB, u *unstructured.Unstructured, value any, steps ...any) {
	t.Helper()
	var at any = u.Object
	for i, s := range steps {
		last := i == len(steps)-1
		switch s := s.(type) {
		case string:
			m, ok := at.(map[string]any)
			if !ok {
				t.Fatalf("%v: %q is not in a map", steps, s)
			}
			switch {
			case last && value == nil:
				delete(m, s)
			case last:
				m[s] = value
			default:
				at = m[s]
			}
		case int:
			l, ok := at.([]any)
			if !ok || s >= len(l) {
				t.Fatalf("%v: no element %d", steps, s)
			}
			if last {
				l[s] = value
			} else {
				at = l[s]
			}
		}
	}
}
