package render_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render"
	"github.com/rutterhq/rutter/internal/render/rendertest"
	"github.com/rutterhq/rutter/internal/render/store"
)

func TestFailuresOfTheInputAreKept(t *testing.T) {
	r := newRenderer(t, t.TempDir())
	files := fleet()
	files["chart/templates/cm.yaml"] = `{{ fail "no color" }}`
	for range 3 {
		if _, err := r.Render(t.Context(), request("chart", files)); rutter.CodeOf(err) != rutter.CodeInvalid {
			t.Fatalf("code %q: %v", rutter.CodeOf(err), err)
		}
		files["README.md"] += "more\n" // another commit, the same chart
	}
	if n := r.Stats().Runs; n != 1 {
		t.Errorf("a broken chart ran %d times without a change", n)
	}
	files["chart/values.yaml"] = "color: green\n"
	if _, err := r.Render(t.Context(), request("chart", files)); err == nil {
		t.Fatal("no error")
	}
	if n := r.Stats().Runs; n != 2 {
		t.Errorf("%d runs after a change of an input, want 2", n)
	}
	files["chart/templates/cm.yaml"] = fleet()["chart/templates/cm.yaml"]
	mustRender(t, r, request("chart", files))
}

// keys is a decrypter that knows one word; the real one is tested with SOPS.
type keys struct {
	err        error
	generation string
}

func (k *keys) Decrypt(_ context.Context, _, name string, data []byte) ([]byte, bool, error) {
	if !strings.Contains(string(data), "sops-envelope") {
		return nil, false, nil
	}
	if k.err != nil {
		return nil, true, &rutter.Error{Code: rutter.CodeOf(k.err), File: name, Message: "is sealed", Err: k.err}
	}
	return []byte(strings.ReplaceAll(string(data), "sops-envelope", "opened-canary")), true, nil
}

func (k *keys) DecryptObject(_ context.Context, _ string, obj map[string]any) (map[string]any, bool, error) {
	if k.err != nil {
		return nil, true, k.err
	}
	obj["data"] = map[string]any{"p": "b3BlbmVkLWNhbmFyeQ=="}
	delete(obj, "sops")
	return obj, true, nil
}

func (k *keys) Generation() string { return k.generation }

func TestWhatIsDecryptedIsNeverStoredInTheClear(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := &keys{}
	r := render.New(render.Options{Store: s, Decrypter: k})
	files := map[string]string{"app/secret.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\ndata: {p: sops-envelope}\n"}
	res := mustRender(t, r, request("app", files))
	if got := res.Objects[0].Object["data"].(map[string]any)["p"]; got != "opened-canary" {
		t.Fatalf("rendered %v", got)
	}
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if strings.Contains(string(data), "canary") {
			t.Errorf("%s holds plaintext", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if res := mustRender(t, r, request("app", files)); !res.Cached {
		t.Error("the same process renders it again")
	}
	s, err = store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	next := render.New(render.Options{Store: s, Decrypter: k})
	if res := mustRender(t, next, request("app", files)); res.Cached || len(res.Objects) != 1 {
		t.Error("the next process has read what it cannot open")
	}
}

func TestMissingKeyIsNoFailureOfTheInput(t *testing.T) {
	k := &keys{err: rutter.Errorf(rutter.CodeForbidden, "no key opens it")}
	r := render.New(render.Options{Decrypter: k})
	files := map[string]string{"app/secret.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\ndata: {p: sops-envelope}\n"}
	_, err := r.Render(t.Context(), request("app", files))
	if rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), "app/secret.yaml") {
		t.Fatalf("%q: %v", rutter.CodeOf(err), err)
	}
	k.err = nil
	mustRender(t, r, request("app", files))
}

func TestEnvelopeIsNeverApplied(t *testing.T) {
	sealed := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {p: 'ENC[AES256_GCM,data:xx,iv:aa=,tag:bb=,type:str]'}\n"
	files := map[string]string{
		"app/secret.yaml":  sealed + "sops: {mac: 'x', version: 3.9.0}\n",
		"bare/secret.yaml": sealed,
		"chart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "chart/templates/s.yaml": sealed,
	}
	r := render.New(render.Options{})
	for _, dir := range []string{"app", "bare", "chart"} {
		_, err := r.Render(t.Context(), request(dir, files))
		if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "encrypted") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	r = render.New(render.Options{Decrypter: &keys{}})
	if res := mustRender(t, r, request("chart", files)); res.Objects[0].Object["data"].(map[string]any)["p"] != "b3BlbmVkLWNhbmFyeQ==" {
		t.Error("what a tool put together is not opened")
	}
}

func TestDisabledToolsLeaveADirectory(t *testing.T) {
	r := newRenderer(t, t.TempDir())
	if res := mustRender(t, r, request("overlays/a", fleet())); res.SourceType != "Kustomize" {
		t.Fatal(res.SourceType)
	}
	r.Set(rutter.RenderSettings{KustomizeDisabled: true, HelmDisabled: true})
	files := fleet()
	files["overlays/a/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"
	delete(files, "overlays/a/kustomization.yaml")
	req := request("overlays/a", files)
	req.Source.Kustomize = &rutter.KustomizeOptions{NamePrefix: "x-"}
	if res := mustRender(t, r, req); res.SourceType != "Directory" || res.Objects[0].GetName() != "plain" {
		t.Errorf("%s %v", res.SourceType, names(res.Objects))
	}
}

// elsewhere is where a values file lies that a chart names by URL, or nowhere.
type elsewhere struct {
	files map[string]string
	snap  rutter.Snapshot
	wait  chan struct{}
	err   error
	asked []string
}

func (e *elsewhere) Snapshot(_ context.Context, repo rutter.Repo, _ rutter.ResolveOptions) (rutter.Snapshot, error) {
	e.asked = append(e.asked, repo.URL)
	if e.wait != nil {
		<-e.wait
	}
	if e.err != nil || e.snap != nil {
		return e.snap, e.err
	}
	return rendertest.Snapshot(e.files), nil
}

func TestProjectRulesWhatIsFetched(t *testing.T) {
	src := &elsewhere{files: map[string]string{"kustomization.yaml": "resources: [cm.yaml]\n", "cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: far}\n"}}
	r := render.New(render.Options{Sources: src})
	files := map[string]string{"app/kustomization.yaml": "resources:\n- https://git.example.com/far.git?ref=v1.0.0\n"}
	req := request("app", files)
	denied := errors.New("not in sourceRepos")
	req.Permit = func(repo rutter.Repo) error { return rutter.Errorf(rutter.CodeForbidden, "%s: %w", repo.URL, denied) }
	if _, err := r.Render(t.Context(), req); rutter.CodeOf(err) != rutter.CodeForbidden && !errors.Is(err, denied) || len(src.asked) > 0 {
		t.Fatalf("%v, asked %q", err, src.asked)
	}
}
