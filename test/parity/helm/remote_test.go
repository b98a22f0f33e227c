package helmparity

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rutterhq/rutter"
	render "github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/osdir"
	"github.com/rutterhq/rutter/internal/render/record"
)

// chartServer is a Helm repository with charts sub 1.0.0, 1.1.0 and 2.0.0, and
// mid 1.0.0 that has a chart inside. It returns what each chart's folder is, too.
func chartServer(t *testing.T) (url string, folders map[string]string) {
	t.Helper()
	folders = map[string]string{}
	archives := map[string][]byte{}
	index := "apiVersion: v1\nentries:\n"
	add := func(name string, versions ...string) {
		index += "  " + name + ":\n"
		for _, v := range versions {
			files := []txtar.File{
				{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: " + name + "\nversion: " + v + "\n")},
				{Name: "values.yaml", Data: []byte("x: 0\n")},
				{Name: "templates/cm.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\ndata: {v: {{ .Chart.Version }}, x: '{{ .Values.x }}'}\n")},
			}
			if name == "mid" {
				files[0].Data = append(files[0].Data, "dependencies: [{name: leaf, version: 1.x, repository: 'https://nowhere.invalid'}]\n"...)
				files = append(files, txtar.File{Name: "charts/leaf/Chart.yaml", Data: []byte("apiVersion: v2\nname: leaf\nversion: 1.0.0\n")},
					txtar.File{Name: "charts/leaf/templates/cm.yaml", Data: files[2].Data})
			}
			dir := filepath.Join(t.TempDir(), name)
			write(t, dir, files)
			folders[name+" "+v] = dir
			for i := range files {
				files[i].Name = name + "/" + files[i].Name
			}
			file := "/" + name + "-" + v + ".tgz"
			archives[file] = packed(t, files)
			index += fmt.Sprintf("  - {apiVersion: v2, name: %s, version: %s, urls: [.%s]}\n", name, v, file)
		}
	}
	add("sub", "2.0.0", "1.1.0", "1.0.0")
	add("mid", "1.0.0")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/index.yaml" {
			_, _ = w.Write([]byte(index))
			return
		}
		if data, ok := archives[r.URL.Path]; ok {
			_, _ = w.Write(data)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, folders
}

// TestRemoteDependencies: helm resolves the dependencies, writes the lock and
// renders; Rutter renders the same from the lock, without charts/. A lock that
// helm finds stale is stale for Rutter, too.
func TestRemoteDependencies(t *testing.T) {
	url, folders := chartServer(t)
	tests := map[string]struct{ files, changed string }{
		"apiVersion v2": {
			files: "-- Chart.yaml --\napiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {name: sub, version: ~1.1.0, repository: URL, alias: one}\n- {name: sub, version: ~1.0.0, repository: URL, alias: two, tags: [a], condition: two.enabled}\n" +
				"- {name: sub, version: '>=2', repository: URL, import-values: [{child: y, parent: z}]}\n- {name: mid, version: ^1.0, repository: URL}\n-- values.yaml --\none: {x: 1}\ntwo: {x: 2, enabled: true}\nmid: {leaf: {x: 3}}\n",
			changed: "version: ^1.0",
		},
		"apiVersion v1": {
			files:   "-- Chart.yaml --\napiVersion: v1\nname: web\nversion: 1.0.0\n-- requirements.yaml --\ndependencies:\n- {name: sub, version: 1.x, repository: URL}\n",
			changed: "version: 1.x",
		},
		"beside one in the same tree": {
			files: "-- Chart.yaml --\napiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {name: sub, version: 1.0.0, repository: URL}\n- {name: local, version: 1.x, repository: 'file://lib/local'}\n" +
				"-- lib/local/Chart.yaml --\napiVersion: v2\nname: local\nversion: 1.3.0\n-- lib/local/templates/x.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: local}\n-- .helmignore --\nlib\n",
			changed: "version: 1.x",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := chartCase{dir: t.TempDir()}
			write(t, c.dir, txtar.Parse([]byte(strings.ReplaceAll(tt.files, "URL", url))).Files)
			if _, err := helm(t, "dependency", "update", c.dir); err != nil {
				t.Fatal(err)
			}
			want, err := theirs(t, c)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(c.dir, "charts")); err != nil {
				t.Fatal(err)
			}
			fetch := record.Options{Fetch: func(_ context.Context, repo rutter.Repo) (rutter.Snapshot, error) {
				dir, ok := folders[repo.Chart+" "+repo.Revision]
				if !ok || repo.URL != url {
					return nil, rutter.Errorf(rutter.CodeNotFound, "%s has no %s %s", repo.URL, repo.Chart, repo.Revision)
				}
				return osdir.Open(dir)
			}}
			got, err := ours(t, render.New(render.Limits{}), c, fetch)
			if err != nil {
				t.Fatal(err)
			}
			var have []map[string]any
			for _, o := range got {
				have = append(have, o.Object)
			}
			if diff := cmp.Diff(want, have); diff != "" || len(want) == 0 {
				t.Errorf("%d objects (-helm +rutter):\n%s", len(want), diff)
			}
			for _, file := range []string{"Chart.yaml", "requirements.yaml"} {
				path := filepath.Join(c.dir, file)
				data, err := os.ReadFile(path)
				if err != nil {
					continue
				}
				if err := os.WriteFile(path, []byte(strings.Replace(string(data), tt.changed, "version: '*'", 1)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := helm(t, "dependency", "build", c.dir); err == nil || !strings.Contains(err.Error(), "out of sync") {
				t.Errorf("helm: %v", err)
			}
			if _, err := ours(t, render.New(render.Limits{}), c, fetch); err == nil || !strings.Contains(err.Error(), "out of sync") {
				t.Errorf("rutter: %v", err)
			}
		})
	}
}
