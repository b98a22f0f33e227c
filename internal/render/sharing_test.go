package render_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render"
	"github.com/rutterhq/rutter/internal/render/rendertest"
	"github.com/rutterhq/rutter/internal/render/store"
)

// keysOfA opens files for project a only.
type keysOfA struct{ keys }

func (k *keysOfA) Decrypt(ctx context.Context, project, name string, data []byte) ([]byte, bool, error) {
	if project != "a" && strings.Contains(string(data), "sops-envelope") {
		return nil, true, &rutter.Error{Code: rutter.CodeForbidden, File: name, Message: "no key of the project opens it"}
	}
	return k.keys.Decrypt(ctx, project, name, data)
}

var sealedMap = map[string]string{"app/secret.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\ndata: {p: sops-envelope}\n"}

// TestDecryptedIsForItsProject: an equal file of a project without the key is
// not answered with what another project's key has opened, nor is anybody once
// the key is withdrawn.
func TestDecryptedIsForItsProject(t *testing.T) {
	s, err := store.Open(t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := &keysOfA{keys{generation: "1"}}
	r := render.New(render.Options{Store: s, Decrypter: k})
	a := request("app", sealedMap)
	a.Project = "a"
	mustRender(t, r, a)
	b := request("app", sealedMap)
	b.Project = "b"
	if res, err := r.Render(t.Context(), b); rutter.CodeOf(err) != rutter.CodeForbidden {
		t.Errorf("project b: %v, cached %v, %d objects", err, res.Cached, len(res.Objects))
	}
	if res := mustRender(t, r, a); !res.Cached {
		t.Error("project a is rendered again")
	}
	k.generation, k.err = "2", rutter.Errorf(rutter.CodeForbidden, "no key")
	if _, err := r.Render(t.Context(), a); rutter.CodeOf(err) != rutter.CodeForbidden {
		t.Errorf("after the key is withdrawn: %v", err)
	}
}

// TestManyVariantsOfOneDeclaration: equal declarations of many repositories
// don't push each other's renders out.
func TestManyVariantsOfOneDeclaration(t *testing.T) {
	r := newRenderer(t, t.TempDir())
	all := func() {
		for i := range 30 {
			q := request("deploy", map[string]string{"deploy/cm.yaml": fmt.Sprintf(configMap, fmt.Sprint("s", i), "x")})
			q.Source.RepoURL, q.Instance = fmt.Sprintf("https://git.example.com/%d", i), fmt.Sprint(i)
			mustRender(t, r, q)
		}
	}
	all()
	all() // the first of all was alone then, and is pushed out once
	before := r.Stats().Runs
	all()
	if n := r.Stats().Runs; n != before || n > 31 {
		t.Errorf("%d runs, then %d, for 30 sources that did not change", before, n)
	}
}

// version is a snapshot whose revision is a version, as a chart's is.
type version struct{ rutter.Snapshot }

func (version) Revision() string { return "1.0.0" }

// TestRepushedChartIsNoticed: a chart that is pushed again under its version
// is another input.
func TestRepushedChartIsNoticed(t *testing.T) {
	s, err := store.Open(t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	from := &elsewhere{}
	r := render.New(render.Options{Store: s, Sources: from})
	files := map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [{name: d, version: 1.0.0, repository: 'https://charts.example.com'}]\n"}
	for _, name := range []string{"one", "one", "two"} {
		from.snap = version{rendertest.Snapshot(map[string]string{"Chart.yaml": "apiVersion: v2\nname: d\nversion: 1.0.0\n",
			"templates/s.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"})}
		if res := mustRender(t, r, request("chart", files)); res.Objects[0].GetName() != name {
			t.Errorf("rendered %s, wanted %s; cached %v", res.Objects[0].GetName(), name, res.Cached)
		}
	}
	if n := r.Stats().Runs; n != 2 {
		t.Errorf("%d runs, wanted 2", n)
	}
}

// TestLookupIsAnInput: what was rendered while nobody allowed looking is no
// answer once somebody does, in a kustomization's chart too.
func TestLookupIsAnInput(t *testing.T) {
	r := newRenderer(t, t.TempDir())
	r.Set(rutter.RenderSettings{Kustomize: map[string]rutter.KustomizeBuild{"": {EnableHelm: true}}})
	files := map[string]string{"app/kustomization.yaml": "helmCharts: [{name: c, releaseName: r}]\n", "app/charts/c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n",
		"app/charts/c/templates/s.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\ndata: {p: '{{ (lookup \"v1\" \"ConfigMap\" \"x\" \"y\").found }}'}\n"}
	found := "yes"
	for _, want := range []string{"", "yes", "no", ""} {
		q := request("app", files)
		if want != "" {
			found = want
			q.Cluster = "c"
			q.Lookup = func(context.Context, string, string, string, string) (map[string]any, error) {
				return map[string]any{"found": found}, nil
			}
		}
		res := mustRender(t, r, q)
		if got := res.Objects[0].Object["data"].(map[string]any)["p"]; got != want {
			t.Errorf("found %q, wanted %q; cached %v", got, want, res.Cached)
		}
	}
}

// TestLimitOfDirectoriesCounts: a limit that is lifted, or lowered, is in force at once.
func TestLimitOfDirectoriesCounts(t *testing.T) {
	r := newRenderer(t, t.TempDir())
	q := request("plain", fleet())
	for _, limit := range []int64{10, -1, 10} {
		r.Set(rutter.RenderSettings{MaxDirectoryBytes: limit})
		if _, err := r.Render(t.Context(), q); (err != nil) != (limit == 10) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

// failing is a snapshot whose files cannot be read for a while.
type failing struct {
	rutter.Snapshot

	err *error
}

func (f failing) ReadFile(name string) ([]byte, error) {
	if *f.err != nil && strings.HasSuffix(name, "one.yaml") {
		return nil, &fs.PathError{Op: "read", Path: name, Err: *f.err}
	}
	return f.Snapshot.ReadFile(name)
}

// TestWhatMayPassIsNotKept: content of LFS that is pushed later, and files that
// could not be opened, are no failures of the input.
func TestWhatMayPassIsNotKept(t *testing.T) {
	for _, err := range []error{rutter.Errorf(rutter.CodeNotFound, "push it with git lfs push"), os.ErrPermission, rutter.Errorf(rutter.CodeUnavailable, "no answer")} {
		r := newRenderer(t, t.TempDir())
		q := request("plain", fleet())
		q.Snapshot = failing{q.Snapshot, &err}
		if _, got := r.Render(t.Context(), q); got == nil {
			t.Fatalf("%v: no error", err)
		}
		err = nil
		mustRender(t, r, q)
	}
}

// TestTimeOfFetchingIsNotTheTools: what a source takes to answer counts neither
// as the tool's time nor as a place among those who work.
func TestTimeOfFetchingIsNotTheTools(t *testing.T) {
	from := &elsewhere{files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: d\nversion: 1.0.0\n", "templates/s.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\n"}}
	from.wait = make(chan struct{})
	r := render.New(render.Options{Sources: from, Timeout: 300 * time.Millisecond, Parallel: 1})
	files := fleet()
	files["parent/Chart.yaml"] = "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [{name: d, version: 1.0.0, repository: 'https://charts.example.com'}]\n"
	done := make(chan error, 1)
	go func() {
		_, err := r.Render(context.WithoutCancel(t.Context()), request("parent", files))
		done <- err
	}()
	time.Sleep(400 * time.Millisecond) // longer than the tool may take
	mustRender(t, r, request("plain", files))
	close(from.wait)
	if err := <-done; err != nil {
		t.Errorf("the slow source is taken for a slow tool: %v", err)
	}
}

// TestPanicOutsideOfTools is one render's failure.
func TestPanicOutsideOfTools(t *testing.T) {
	r := newRenderer(t, t.TempDir())
	q := request("plain", fleet())
	q.Snapshot = panicking{q.Snapshot}
	if _, err := r.Render(t.Context(), q); rutter.CodeOf(err) != rutter.CodeInternal {
		t.Errorf("%v", err)
	}
	mustRender(t, r, request("plain", fleet()))
}

type panicking struct{ rutter.Snapshot }

func (panicking) Stat(string) (fs.FileInfo, error) { panic("a library's fault") }

// TestSealedFileInData: a sealed file that a chart puts into a Secret is not applied.
func TestSealedFileInData(t *testing.T) {
	sealed := "ENC[AES256_GCM,data:xx,iv:aa=,tag:bb=,type:str]"
	files := map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n",
		"chart/templates/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {f: {{ \"p: " + sealed + "\" | b64enc }}}\n",
		"other/Chart.yaml":       "apiVersion: v2\nname: c\nversion: 1.0.0\n",
		"other/templates/s.yaml": "apiVersion: x/v1\nkind: Foo\nmetadata: {name: s}\nspec: {password: '" + sealed + "'}\n"}
	r := render.New(render.Options{})
	for _, path := range []string{"chart", "other"} {
		if _, err := r.Render(t.Context(), request(path, files)); err == nil || !strings.Contains(err.Error(), "encrypted") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSealedOverrideIsNone: the source's own file is never opened, so that no
// secret gets into the name of a render.
func TestSealedOverrideIsNone(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := render.New(render.Options{Store: s, Decrypter: &keys{}})
	files := fleet()
	files["chart/.argocd-source.yaml"] = "helm:\n  parameters: [{name: color, value: sops-envelope}]\n"
	res := mustRender(t, r, request("chart", files))
	if got := res.Objects[0].Object["data"].(map[string]any)["color"]; got != "sops-envelope" {
		t.Errorf("the override was opened: %v", got)
	}
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if strings.Contains(string(data), "canary") {
			t.Errorf("%s holds plaintext", name)
		}
		return err
	})
}
