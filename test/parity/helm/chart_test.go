package helmparity

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// options are a case's: those of the source, and what the cluster is.
type options struct {
	rutter.HelmOptions

	// Chart is the folder of the chart within the case, when others lie beside it.
	Chart string `json:"chart"`
	// Differs says why Rutter is stricter than helm in this case.
	Differs string `json:"differs"`
}

// chartCase is one chart on disk.
type chartCase struct {
	name string
	dir  string
	opts options
}

// kubeVersion is the version of the cluster that all charts see.
const kubeVersion = "v1.37.2"

// ourCharts writes the charts of testdata to disk. In an archive, the first
// part of a name is the case; a folder that is called like an archive becomes one.
func ourCharts(t *testing.T) []chartCase {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	var out []chartCase
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		topic := strings.TrimSuffix(filepath.Base(file), ".txtar")
		names, cases := byCase(ar)
		for _, name := range names {
			c := chartCase{name: topic + "/" + name, dir: filepath.Join(root, topic, name)}
			for _, f := range cases[name] {
				if f.Name == "options.yaml" {
					if err := yaml.UnmarshalStrict(f.Data, &c.opts); err != nil {
						t.Fatalf("%s: %v", c.name, err)
					}
				}
			}
			write(t, c.dir, cases[name])
			out = append(out, c)
		}
	}
	return out
}

func byCase(ar *txtar.Archive) (names []string, cases map[string][]txtar.File) {
	cases = map[string][]txtar.File{}
	for _, f := range ar.Files {
		name, rest, _ := strings.Cut(f.Name, "/")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		cases[name] = append(cases[name], txtar.File{Name: rest, Data: f.Data})
	}
	return names, cases
}

// write puts files below dir. Charts are complete with a Chart.yaml that a case
// need not repeat.
func write(t *testing.T, dir string, files []txtar.File) {
	t.Helper()
	archives := map[string][]txtar.File{}
	hasChart := false
	put := func(name string, data []byte) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		hasChart = hasChart || strings.HasSuffix(f.Name, "Chart.yaml") && !strings.Contains(f.Name, "charts/")
		if before, inside, ok := strings.Cut(f.Name, ".tgz/"); ok {
			archives[before+".tgz"] = append(archives[before+".tgz"], txtar.File{Name: inside, Data: f.Data})
			continue
		}
		if f.Name != "options.yaml" {
			put(f.Name, bytes.ReplaceAll(f.Data, []byte("<BOM>"), []byte("\xEF\xBB\xBF")))
		}
	}
	if !hasChart {
		put("Chart.yaml", []byte("apiVersion: v2\nname: web\nversion: 1.2.3\nappVersion: \"4.5\"\n"))
	}
	for name, members := range archives {
		put(name, packed(t, members))
	}
}

// packed is a chart as `helm package` makes it.
func packed(t *testing.T, files []txtar.File) []byte {
	t.Helper()
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	out := tar.NewWriter(zip)
	for _, f := range files {
		err := out.WriteHeader(&tar.Header{Name: f.Name, Mode: 0o644, Size: int64(len(f.Data))})
		if err == nil {
			_, err = out.Write(f.Data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(out.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
