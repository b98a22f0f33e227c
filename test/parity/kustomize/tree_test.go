package kustomizeparity

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// tree is one kustomization with all that lies around it.
type tree struct {
	name  string
	files map[string]string
	// build is the folder that is built.
	build string
	opts  treeOptions
	// strict says that it may only fail where that is what it is for.
	strict bool
}

// treeOptions is the file options.yaml of a tree.
type treeOptions struct {
	// From takes the files of another tree.
	From    string                  `json:"from"`
	Options rutter.KustomizeOptions `json:"options"`
	Build   rutter.KustomizeBuild   `json:"build"`
	// Charts takes the charts of another tree, into the folder ChartsIn.
	Charts   string `json:"charts"`
	ChartsIn string `json:"chartsIn"`
	// Fails says that both refuse it; a tree whose name says so needs no more.
	Fails bool `json:"fails"`
}

const optionsFile = "options.yaml"

// ourTrees reads the trees of testdata.
func ourTrees(t *testing.T) []tree {
	t.Helper()
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*tree{}
	for _, file := range archives {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			name, rest, _ := strings.Cut(f.Name, "/")
			if by[name] == nil {
				by[name] = &tree{name: name, files: map[string]string{}, strict: true}
			}
			by[name].files[rest] = string(f.Data)
		}
	}
	var out []tree
	for _, one := range by {
		if text, ok := one.files[optionsFile]; ok {
			if err := yaml.UnmarshalStrict([]byte(text), &one.opts); err != nil {
				t.Fatalf("%s: %v", one.name, err)
			}
		}
	}
	for _, one := range by {
		if one.opts.From != "" {
			one.files = by[one.opts.From].files
		}
		if one.opts.Charts != "" {
			for name, text := range by[one.opts.Charts].files {
				if strings.HasPrefix(name, "charts/") {
					one.files[path.Join(one.opts.ChartsIn, name)] = text
				}
			}
		}
		special(one)
		one.build = "."
		for f := range one.files {
			if strings.HasPrefix(f, "overlay/") {
				one.build = "overlay"
			}
		}
		if one.name != "helm-base" {
			out = append(out, *one)
		}
	}
	slices.SortFunc(out, func(a, b tree) int { return strings.Compare(a.name, b.name) })
	return out
}

// special puts in what an archive of text cannot hold.
func special(one *tree) {
	switch one.name {
	case "windows":
		one.files["a.yaml"] = strings.ReplaceAll(one.files["a.yaml"], "\n", "\r\n")
	case "generators":
		one.files["bin.dat"] = "\x00\xff\xfe\x01"
	}
}

// write puts the files of a tree into a new folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		full := filepath.Join(dir, filepath.FromSlash(path.Clean(name)))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
