package helm_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// elsewhere are repositories by URL, and what was asked of them.
type elsewhere struct {
	mu    sync.Mutex
	asked []rutter.Repo
	have  map[string]map[string]string
}

func (e *elsewhere) fetch(_ context.Context, repo rutter.Repo) (rutter.Snapshot, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, repo)
	if strings.Contains(repo.URL, "private") {
		return nil, rutter.Errorf(rutter.CodeForbidden, "repository %s: the credential registry-team was refused", repo.URL)
	}
	files, ok := e.have[strings.TrimSuffix(repo.URL+"/"+repo.Chart, "/")]
	if !ok {
		return nil, rutter.Errorf(rutter.CodeNotFound, "%s has no chart %s", repo.URL, repo.Chart)
	}
	return rendertest.Snapshot(files), nil
}

// inputFrom is input with repositories elsewhere.
func inputFrom(t *testing.T, files map[string]string, opts rutter.HelmOptions, e *elsewhere) helm.Input {
	t.Helper()
	in := input(t, files, opts)
	snap := rendertest.Snapshot(files)
	in.Repo = record.New(t.Context(), snap, record.Options{Fetch: e.fetch})
	in.Env = buildenv.New(rutter.RenderRequest{Snapshot: snap})
	in.Project = "team"
	return in
}

func subchart(name, version string) map[string]string {
	return map[string]string{
		"Chart.yaml":        "apiVersion: v2\nname: " + name + "\nversion: " + version + "\n",
		"values.yaml":       "x: 0\n",
		"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\ndata: {v: '{{ .Chart.Version }} {{ .Values.x }}'}\n",
	}
}

func contents(objs []rutter.Object) map[string]string {
	out := map[string]string{}
	for _, o := range objs {
		data, _ := o.Object["data"].(map[string]any)
		out[o.GetName()] = fmt.Sprint(data["v"])
	}
	return out
}

const head = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n"

func TestDependenciesFromElsewhere(t *testing.T) {
	nested := subchart("mid", "1.0.0")
	nested["Chart.yaml"] += "dependencies: [{name: leaf, version: 1.x, repository: 'https://charts.example.com'}]\n"
	for f, data := range subchart("leaf", "1.5.0") {
		nested["charts/leaf/"+f] = data
	}
	have := map[string]map[string]string{
		"https://charts.example.com/db":      subchart("db", "1.2.0"),
		"oci://registry.example.com/team/db": subchart("db", "1.3.0"),
		"@stable/db":                         subchart("db", "1.4.0"),
		"https://charts.example.com/mid":     nested,
		"https://charts.example.com/other":   subchart("impostor", "1.0.0"),
	}
	tests := map[string]struct {
		deps  string
		files map[string]string
		want  map[string]string
		asked []rutter.Repo
	}{
		"the range, when nothing is locked": {deps: "- {name: db, version: 1.x, repository: 'https://charts.example.com'}\n", want: map[string]string{"db": "1.2.0 0"},
			asked: []rutter.Repo{{URL: "https://charts.example.com", Chart: "db", Revision: "1.x", Project: "team"}}},
		"a registry": {deps: "- {name: db, version: 1.3.0, repository: 'oci://registry.example.com/team'}\n", want: map[string]string{"db": "1.3.0 0"},
			asked: []rutter.Repo{{URL: "oci://registry.example.com/team", Chart: "db", Revision: "1.3.0", Project: "team"}}},
		"a registered name": {deps: "- {name: db, version: 1.x, repository: 'alias:stable'}\n", want: map[string]string{"db": "1.4.0 0"},
			asked: []rutter.Repo{{URL: "@stable", Chart: "db", Revision: "1.x", Project: "team"}}},
		"two names for one chart": {deps: "- {name: db, version: 1.x, repository: 'https://charts.example.com', alias: a}\n- {name: db, version: 1.x, repository: 'https://charts.example.com', alias: b}\n",
			files: map[string]string{"values.yaml": "a: {x: 1}\nb: {x: 2}\n"}, want: map[string]string{"a": "1.2.0 1", "b": "1.2.0 2"},
			asked: []rutter.Repo{{URL: "https://charts.example.com", Chart: "db", Revision: "1.x", Project: "team"}}},
		"with its own dependencies inside": {deps: "- {name: mid, version: 1.x, repository: 'https://charts.example.com'}\n", want: map[string]string{"mid": "1.0.0 0", "leaf": "1.5.0 0"},
			asked: []rutter.Repo{{URL: "https://charts.example.com", Chart: "mid", Revision: "1.x", Project: "team"}}},
		"one that is off is fetched and left out": {deps: "- {name: db, version: 1.x, repository: 'https://charts.example.com', condition: db.enabled}\n", files: map[string]string{"values.yaml": "db: {enabled: false}\n"}, want: map[string]string{},
			asked: []rutter.Repo{{URL: "https://charts.example.com", Chart: "db", Revision: "1.x", Project: "team"}}},
		"one that is there is not fetched": {deps: "- {name: db, version: 1.x, repository: 'https://charts.example.com'}\n", files: map[string]string{"charts/db-1.0.0.tgz": packed(t, "db", subchart("db", "1.0.0"))}, want: map[string]string{"db": "1.0.0 0"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			files := chart(tt.files)
			files["chart/Chart.yaml"] = head + tt.deps
			e := &elsewhere{have: have}
			objs, _, err := render(t, inputFrom(t, files, rutter.HelmOptions{}, e))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, contents(objs)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.asked, e.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLock: what is locked is what is fetched, and a lock that belongs to other
// dependencies is refused. test/parity/helm has locks that helm itself made.
func TestLock(t *testing.T) {
	e := &elsewhere{have: map[string]map[string]string{"@stable/db": subchart("db", "1.2.0")}}
	files := map[string]string{
		"chart/Chart.yaml": head + "- {name: db, version: 1.x, repository: '@stable'}\n",
		"chart/Chart.lock": "dependencies:\n- {name: db, version: 1.2.0, repository: 'https://charts.example.com'}\ndigest: sha256:any\ngenerated: '2026-01-01T00:00:00Z'\n",
	}
	if _, _, err := render(t, inputFrom(t, files, rutter.HelmOptions{}, e)); err != nil {
		t.Fatal(err)
	}
	if e.asked[0].Revision != "1.2.0" {
		t.Errorf("asked for %s, want the locked version", e.asked[0].Revision)
	}
	for name, change := range map[string]map[string]string{
		"a digest of others":             {"chart/Chart.yaml": head + "- {name: db, version: 1.x, repository: 'https://charts.example.com'}\n"},
		"a version that does not fit":    {"chart/Chart.yaml": head + "- {name: db, version: 2.x, repository: '@stable'}\n"},
		"a dependency that is not in it": {"chart/Chart.yaml": files["chart/Chart.yaml"] + "- {name: more, version: 1.x, repository: '@stable'}\n"},
	} {
		_, _, err := render(t, inputFrom(t, rendertest.With(files, change), rutter.HelmOptions{}, e))
		if err == nil || !strings.Contains(err.Error(), "Chart.lock is out of sync") || !strings.Contains(err.Error(), "chart/Chart.yaml:5") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestB20CredentialsAreNamed is scenario B20's error: it comes from the source
// and must reach the user whole, with the place of the dependency.
func TestB20CredentialsAreNamed(t *testing.T) {
	files := map[string]string{"chart/Chart.yaml": head + "- name: db\n  version: 1.x\n  repository: oci://private.example.com/team\n"}
	_, _, err := render(t, inputFrom(t, files, rutter.HelmOptions{}, &elsewhere{}))
	if rutter.CodeOf(err) != rutter.CodeForbidden {
		t.Fatalf("code %q: %v", rutter.CodeOf(err), err)
	}
	for _, s := range []string{"chart/Chart.yaml:5", "dependency db 1.x (oci://private.example.com/team)", "registry-team"} {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("the error does not say %q: %v", s, err)
		}
	}
}

func TestDependencyErrors(t *testing.T) {
	e := &elsewhere{have: map[string]map[string]string{"https://charts.example.com/db": subchart("impostor", "1.0.0"), "https://charts.example.com/old": subchart("old", "0.1.0")}}
	tests := map[string]struct {
		dep  string
		code rutter.Code
		says string
	}{
		"another chart":          {"{name: db, version: 1.x, repository: 'https://charts.example.com'}", rutter.CodeInvalid, "what was found is chart impostor 1.0.0"},
		"another version":        {"{name: old, version: 1.x, repository: 'https://charts.example.com'}", rutter.CodeInvalid, "what was found is chart old 0.1.0"},
		"unknown there":          {"{name: nope, version: 1.x, repository: 'https://charts.example.com'}", rutter.CodeNotFound, "has no chart nope"},
		"no repository":          {"{name: db, version: 1.x}", rutter.CodeNotFound, "no repository is named"},
		"out of the tree":        {"{name: db, version: 1.x, repository: 'file://../../../etc'}", rutter.CodeInvalid, "leaves the repository"},
		"on this machine":        {"{name: db, version: 1.x, repository: 'file:///etc'}", rutter.CodeInvalid, "absolute path"},
		"itself":                 {"{name: web, version: 1.x, repository: 'file://.'}", rutter.CodeInvalid, "nested too deeply"},
		"a password in the URL":  {"{name: nope, version: 1.x, repository: 'https://user:hunter2@charts.example.com?token=hunter2'}", rutter.CodeNotFound, "(https://charts.example.com)"},
		"a folder without chart": {"{name: db, version: 1.x, repository: 'file://nothing'}", rutter.CodeNotFound, "holds no Chart.yaml"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := render(t, inputFrom(t, map[string]string{"chart/Chart.yaml": head + "- " + tt.dep + "\n"}, rutter.HelmOptions{}, e))
			if err == nil || rutter.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "chart/Chart.yaml:5") {
				t.Errorf("code %q, want %q, says %q: %v", rutter.CodeOf(err), tt.code, tt.says, err)
			}
		})
	}
}
