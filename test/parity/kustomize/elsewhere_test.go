package kustomizeparity

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// remoteFiles is a repository that the trees name, by ref.
func remoteFiles() map[string]map[string]string {
	object := func(name, data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {at: " + data + "}\n"
	}
	files := func(at string) map[string]string {
		return map[string]string{
			"kustomization.yaml":       "resources: [base]\nnameSuffix: -root\n",
			"base/kustomization.yaml":  "resources: [a.yaml, ../more]\nnamePrefix: far-\nconfigMapGenerator: [{name: gen, files: [a.yaml]}]\n",
			"base/a.yaml":              object("a", at),
			"more/kustomization.yaml":  "resources: [b.yaml]\n",
			"more/b.yaml":              object("b", at),
			"part/kustomization.yaml":  "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {part: \"1\"}\n",
			"again/kustomization.yaml": "resources: ['http://HOST/org/repo.git//more?ref=v1']\nnamePrefix: again-\n",
			"loop/kustomization.yaml":  "resources: ['http://HOST/org/repo.git//loop?ref=v1']\n",
			"out/kustomization.yaml":   "resources: [../../../etc]\n",
			"above/kustomization.yaml": "configMapGenerator: [{name: x, files: [../base/a.yaml]}]\n",
		}
	}
	return map[string]map[string]string{"v1": files("v1"), "main": files("main")}
}

// serve serves the repository over Git's own HTTP, and one file.
func serve(t *testing.T) (host string, repos map[string]map[string]string) {
	t.Helper()
	execPath, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	backend := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(execPath)), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}, Stderr: io.Discard, Logger: log.New(io.Discard, "", 0)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/files/x.yaml" {
			_, _ = w.Write([]byte(remoteFiles()["v1"]["more/b.yaml"]))
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	work := t.TempDir()
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	repos = remoteFiles()
	for _, ref := range []string{"v1", "main"} {
		for name, text := range repos[ref] {
			text = strings.ReplaceAll(text, "HOST", host)
			repos[ref][name] = text
			full := filepath.Join(work, name)
			if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		git("add", "-A")
		git("commit", "-q", "-m", ref)
		if ref != "main" {
			git("tag", ref)
		}
	}
	git("clone", "-q", "--bare", ".", filepath.Join(root, "org", "repo.git"))
	return host, repos
}

// TestParityElsewhere compares trees with remote bases: kustomize fetches with
// git, over HTTP, and Rutter through the function that its sources are.
func TestParityElsewhere(t *testing.T) {
	host, repos := serve(t)
	k := tool{bin: kustomizeBinary(t), env: []string{"GIT_ALLOW_PROTOCOL=http", "HTTP_PROXY=", "GIT_CONFIG_GLOBAL=/dev/null"}}
	fetch := func(_ context.Context, repo rutter.Repo) (rutter.Snapshot, error) {
		switch {
		case repo.File && repo.URL == "http://"+host+"/files/x.yaml":
			return rendertest.Snapshot(map[string]string{"x.yaml": repos["v1"]["more/b.yaml"]}), nil
		case repo.File || repo.URL != "http://"+host+"/org/repo.git":
			return nil, rutter.Errorf(rutter.CodeNotFound, "no repository %s", repo.URL)
		case repo.Revision == "":
			repo.Revision = "main"
		}
		files, ok := repos[repo.Revision]
		if !ok {
			return nil, rutter.Errorf(rutter.CodeNotFound, "no ref %s", repo.Revision)
		}
		return rendertest.Snapshot(files), nil
	}
	const base = "resources: [a.yaml]\n"
	trees := map[string]string{
		"tag":           "resources: ['http://HOST/org/repo.git//base?ref=v1']",
		"branch":        "resources: ['http://HOST/org/repo.git//base?ref=main']",
		"no ref":        "resources: ['http://HOST/org/repo.git']",
		"without //":    "resources: ['http://HOST/org/repo.git/more?ref=v1']",
		"version":       "resources: ['http://HOST/org/repo.git//more?version=v1&submodules=false']",
		"beside ours":   base + "namePrefix: o-\nnamespace: ns\nbases: ['http://HOST/org/repo.git//base?ref=v1']",
		"component":     base + "components: ['http://HOST/org/repo.git//part?ref=v1']",
		"nested":        "resources: ['http://HOST/org/repo.git//again?ref=main']",
		"file":          "resources: ['http://HOST/files/x.yaml']",
		"file as data":  "configMapGenerator: [{name: c, files: ['http://HOST/files/x.yaml', 'k=http://HOST/files/x.yaml']}]",
		"file as patch": "resources: [b.yaml]\npatches: [{path: 'http://HOST/files/x.yaml'}]",
		"origins":       base + "resources: [a.yaml, 'http://HOST/org/repo.git//again?ref=main', 'http://HOST/org/repo.git//base?ref=v1']\nbuildMetadata: [originAnnotations, transformerAnnotations]",
		"fail: ref":     "resources: ['http://HOST/org/repo.git//base?ref=nope']",
		"fail: folder":  "resources: ['http://HOST/org/repo.git//nope?ref=v1']",
		"fail: repo":    "resources: ['http://HOST/org/none.git//x?ref=v1']",
		"fail: loop":    "resources: ['http://HOST/org/repo.git//loop?ref=v1']",
		"fail: out":     "resources: ['http://HOST/org/repo.git//out?ref=v1']",
		"fail: above":   "resources: ['http://HOST/org/repo.git//above?ref=v1']",
		"fail: file":    "resources: ['http://HOST/files/none.yaml']",
	}
	r := kustomize.New()
	var c counts
	for name, text := range trees {
		t.Run(name, func(t *testing.T) {
			text = strings.Replace(text, base+"resources: [a.yaml,", "resources: [a.yaml,", 1)
			files := map[string]string{"kustomization.yaml": strings.ReplaceAll(text, "HOST", host) + "\n",
				"a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: own}}\n", "b.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n"}
			want, wantErr := objectsOf(k.run(write(t, files), "build", "."))
			snap := rendertest.Snapshot(files)
			objs, _, err := r.Render(t.Context(), kustomize.Input{Repo: record.New(t.Context(), snap, record.Options{Fetch: fetch}), Path: path.Clean("."),
				Env: buildenv.New(rutter.RenderRequest{Snapshot: snap})})
			judge(t, tree{name: strings.Replace(name, "fail: ", "fail-", 1), strict: true}, want, wantErr, plain(objs), err, &c)
		})
	}
}
